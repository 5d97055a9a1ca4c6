"""Fits of the participant model on a small simulated study, the anchors, and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from estimators.comparison.simulation.study import simulate_comparison_study
from estimators.errors import InputError
from inference.comparison.participant_fit import (
    ANCHORS,
    Anchor,
    ParticipantFit,
    compile_participants,
    fit_participants,
    top1_weights,
)
from inference.comparison.participant_gap import loss_gap, outcome_temperature
from inference.posterior.arviz_adapter import group
from inference.posterior.convergence import GateThresholds
from inference.posterior.sampling import CompiledModel
from models.comparison.participant_data import ParticipantData, participant_data, with_reports, without_participants
from tests.truth import FAR, distance

SETTINGS: dict[str, Any] = {"draws": 1000, "tune": 300, "chains": 2, "cores": 1, "progress": False}


def design(**changed: Any) -> SimulationSettings:
    fields: dict[str, Any] = {
        "n_items": 15,
        "n_reference_items": 15,
        "vocab_size": 200,
        "n_candidates": 30,
        "n_participants": 6,
        "participants": ParticipantPopulation(slope_median=0.5),
    }
    return SimulationSettings(**(fields | changed))


@pytest.fixture(scope="module")
def study(seed_offset: int) -> xr.Dataset:
    return simulate_comparison_study(design(seed=seed_offset))


@pytest.fixture(scope="module")
def data(study: xr.Dataset) -> ParticipantData:
    return participant_data(study)


@pytest.fixture(scope="module")
def compiled(data: ParticipantData) -> CompiledModel:
    return compile_participants(data)


@pytest.fixture(scope="module")
def fits(data: ParticipantData, compiled: CompiledModel, seed_offset: int) -> dict[str, ParticipantFit]:
    """The only compilation: all fits share it."""
    settings = {**SETTINGS, "compiled": compiled, "seed": 1 + seed_offset}
    return {
        "outcomes": fit_participants(data, **settings),
        "assumed": fit_participants(data, anchor=Anchor("assumed", k0=0.5), **settings),
    }


@pytest.mark.mcmc
def test_the_default_anchor_is_the_outcomes(fits: dict[str, ParticipantFit], data: ParticipantData) -> None:
    fit = fits["outcomes"]
    assert fit.anchor == Anchor()
    assert fit.anchor.name == ANCHORS[0] == "outcomes"
    n = SETTINGS["draws"] * SETTINGS["chains"]
    assert fit.item_gap_nats.shape == (n, data.item.size)
    assert fit.temperature.shape == fit.gap_nats.shape == fit.k0.shape == (n,)
    # the bootstrap over items is in it
    assert fit.temperature.std() > 0.01
    np.testing.assert_allclose(fit.item_gap_nats, loss_gap(fit.belief, fit.temperature))
    np.testing.assert_allclose(fit.gap_nats, fit.item_gap_nats.mean(axis=1))
    np.testing.assert_allclose(fit.k0 * fit.temperature, fit.scale)
    assert np.isfinite(fit.item_gap_nats).all()
    # people answer one by one
    assert group(fit.idata, "posterior")["slope"].dims == ("chain", "draw", "participant")
    np.testing.assert_allclose(np.exp(np.log(group(fit.idata, "posterior")["slope"]).mean("participant")), fit.scale)


@pytest.mark.mcmc
def test_an_assumed_scale_is_kept(fits: dict[str, ParticipantFit]) -> None:
    fit = fits["assumed"]
    assert fit.scale == 0.5
    np.testing.assert_array_equal(fit.temperature, 1.0)
    np.testing.assert_array_equal(fit.k0, 0.5)
    np.testing.assert_allclose(fit.gap_at(0.5), fit.gap_nats)
    # any other scale stretches the same belief
    np.testing.assert_allclose(fit.gap_at(0.25), loss_gap(fit.belief, 2.0).mean(axis=1))
    rate = fit.top1_rate(np.random.default_rng(0))
    assert ((rate >= 0) & (rate <= 1)).all()
    assert 0.05 < rate.mean() < 0.95


@pytest.mark.mcmc
def test_the_gap_is_somewhere_near_the_truth(
    fits: dict[str, ParticipantFit], data: ParticipantData, study: xr.Dataset
) -> None:
    """Six people, fifteen questions: the posterior is wide, is near the truth, and says something."""
    target = study["target_logprob"].sel(model=data.generator).values - study["human_target_logprob"].values
    truth = target[np.searchsorted(study["item"].values, data.item)].mean()
    for name, fit in fits.items():
        gap = fit.gap_nats.reshape(SETTINGS["chains"], -1)
        assert distance(gap, truth) < FAR, name
        assert gap.std() < 2


@pytest.mark.mcmc
def test_the_same_seed_gives_the_same_fit_and_other_answers_another(
    fits: dict[str, ParticipantFit], data: ParticipantData, compiled: CompiledModel, seed_offset: int
) -> None:
    settings = {**SETTINGS, "anchor": Anchor("assumed", k0=0.5), "compiled": compiled, "seed": 1 + seed_offset}
    again = fit_participants(data, **settings)
    np.testing.assert_allclose(again.item_gap_nats, fits["assumed"].item_gap_nats, rtol=1e-6, atol=1e-6)
    flipped = with_reports(data, len(data.box_edges) - 1 - data.row_box)
    other = fit_participants(flipped, **settings)
    # who favours the candidates believes less in the targets
    assert np.median(other.gap_nats) > np.median(again.gap_nats) + 0.5


@pytest.mark.mcmc
def test_fewer_people_fit_without_another_compilation(
    data: ParticipantData, compiled: CompiledModel, seed_offset: int
) -> None:
    gone = str(data.participant[2])
    fit = fit_participants(
        without_participants(data, [gone]),
        anchor=Anchor("assumed"),
        compiled=compiled,
        seed=2 + seed_offset,
        keep=40,
        # what so short a chain always passes
        thresholds=GateThresholds(r_hat=100, ess_bulk=1, ess_tail=1, divergent=10_000, bfmi=1e-6),
        **SETTINGS,
    )
    assert fit.convergence.passed, fit.convergence.reasons
    assert fit.belief.n_draws == 40
    log_slope = np.log(group(fit.idata, "posterior")["slope"].sel(participant=data.participant != gone))
    np.testing.assert_allclose(log_slope.mean("participant"), 0, atol=1e-9)


@pytest.mark.mcmc
def test_short_chains_do_not_pass_the_gate(fits: dict[str, ParticipantFit]) -> None:
    """800 draws do not have 400 effective ones of every parameter, and the fit says so."""
    verdict = fits["outcomes"].convergence
    assert not verdict.passed
    assert any("ESS" in reason for reason in verdict.reasons)


@pytest.mark.mcmc
def test_a_model_of_other_questions_is_refused(data: ParticipantData, compiled: CompiledModel) -> None:
    other = participant_data(simulate_comparison_study(design(n_participants=5)))
    with pytest.raises(InputError, match="participants"):
        fit_participants(other, compiled=compiled, anchor=Anchor("assumed"), **SETTINGS)
    with pytest.raises(InputError, match="grid"):
        fit_participants(
            replace(data, box_edges=data.box_edges + 0.1), compiled=compiled, anchor=Anchor("assumed"), **SETTINGS
        )


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"name": "labels"}, "labels"),
        ({"k0": 0.0}, "k0"),
        ({"k0": 21.0}, "k0"),
        ({"k0": float("nan")}, "k0"),
        ({"objective": "best"}, "best"),
    ],
)
def test_wrong_anchors_are_named(settings: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError, match=part):
        Anchor(**settings)


def test_top1_weights_by_hand() -> None:
    weight = top1_weights([0.2, 0.3, 0.5], 0.3, 0.1)
    wanted = np.exp([-0.5, 0.0, -2.0])
    np.testing.assert_allclose(weight, wanted / wanted.sum())
    # far off, but still weights
    np.testing.assert_allclose(top1_weights(np.array([0.2, 0.9]), 0.3, 1e-3), [1.0, 0.0])
    np.testing.assert_allclose(top1_weights([0.3, 0.3], 0.9, 1e-3), [0.5, 0.5])
    for rate in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match=r"top1\.rate"):
            top1_weights([0.2], rate, 0.1)
    for se in (0.0, float("inf")):
        with pytest.raises(InputError, match=r"top1\.se"):
            top1_weights([0.2], 0.3, se)


@pytest.mark.slow
@pytest.mark.parametrize("k0", [0.4, 1.0])
def test_the_outcomes_find_the_scale_of_simulated_people(k0: float, seed_offset: int) -> None:
    """Twenty-four people on sixty questions: scale and gap are near the truth, and known to a factor and a few nats.

    What the outcomes can find is the slope of the people drawn (not of their population) over the temperature that
    fits the labels best of the simulated belief itself, which is over-confident: about .8 of its log-ratios.
    """
    settings = SimulationSettings(
        n_items=60,
        n_reference_items=60,
        vocab_size=1000,
        n_candidates=200,
        n_participants=24,
        participants=ParticipantPopulation(slope_median=k0),
        seed=seed_offset,
    )
    study = simulate_comparison_study(settings)
    data = participant_data(study)
    fit = fit_participants(data, draws=1000, tune=1000, chains=2, target_accept=0.9, seed=3 + seed_offset)
    gap = study["target_logprob"].sel(model=data.generator).values - study["human_target_logprob"].values
    truth = gap[np.searchsorted(study["item"].values, data.item)].mean()
    assert distance(fit.gap_nats.reshape(2, -1), truth) < FAR
    assert fit.gap_nats.std() < 0.75
    row = np.searchsorted(study["item"].values, data.item)[data.pair_item]
    ratio = study["human_candidate_logprob"].values[row, data.pair_column] - study["human_target_logprob"].values[row]
    known = replace(fit.belief, pair_log_ratio=ratio[None].astype(float), item_left=np.ones((1, data.item.size)))
    temperature = outcome_temperature(known, np.ones(data.item.size))[0]
    slope = np.exp(np.log(study["true_slope"].values).mean())
    log_k0 = np.log(fit.k0).reshape(2, -1)
    assert distance(log_k0, np.log(slope / temperature)) < FAR
    assert log_k0.std() < 0.45
