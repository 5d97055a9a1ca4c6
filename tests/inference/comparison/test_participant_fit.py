"""Fits of the participant model: what simulated people and language models believe, the anchors, and one refit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.comparison import ParticipantPopulation, rounding_scheme
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.comparison.simulation.settings import SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.inference.comparison import participant_fit
from shannon_game.inference.comparison.anchors import Anchor
from shannon_game.inference.comparison.participant_fit import (
    ParticipantFit,
    design_matrix,
    fit_participants,
    top1_weights,
)
from shannon_game.inference.comparison.participant_gap import loss_gap
from shannon_game.inference.comparison.participant_sensitivity import leave_one_out
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.kept import keep_fits
from shannon_game.models.comparison.participant_data import participant_data
from shannon_game.models.comparison.participants import ParticipantPriors
from tests.models.comparison.participant_studies import believers, with_reports

FAR = 3.5
"""Standard deviations of the posterior at which a truth is found wanting: once in 2,000 studies."""


def off(draws: np.ndarray, truth: float) -> float:
    """Standard deviations between the posterior's mean and the truth."""
    return float(abs(draws.mean() - truth) / draws.std())


def true_gap(study: xr.Dataset, position: np.ndarray, model: str | None = None) -> float:
    own = study["human_target_logprob"] if model is None else study["target_logprob"].sel(model=model)
    of_generator = study["target_logprob"].sel(model=study.attrs["generator"])
    return float((of_generator.to_numpy() - own.to_numpy())[position].mean())


@pytest.fixture(scope="module")
def answered() -> xr.Dataset:
    people = ParticipantPopulation(slope_median=0.6)
    return believers(14, vocabulary=60, n_draws=6, n_answers=8, n_participants=16, people=people)


@pytest.fixture(scope="module")
def fit(answered: xr.Dataset) -> ParticipantFit:
    return fit_participants(participant_data(answered, "slider"), draws=150)


@pytest.fixture(scope="module")
def outcomes(answered: xr.Dataset) -> ParticipantFit:
    """The same reports without the answers' anchor."""
    return fit_participants(participant_data(answered, "slider"), anchor=Anchor("outcomes"), draws=30)


@pytest.mark.mcmc
def test_people_who_believe_the_generator_have_no_gap(fit: ParticipantFit, answered: xr.Dataset) -> None:
    assert fit.anchor.name == "answers"
    assert fit.convergence.passed, fit.convergence.reasons
    assert np.isnan(fit.scale)
    assert off(fit.gap_nats, 0.0) < FAR
    assert off(fit.item_gap_nats.mean(axis=1), 0.0) < FAR
    assert fit.gap_nats.std() < 0.3
    k0 = np.exp(np.log(answered["true_slope"].to_numpy()).mean())
    assert off(np.log(fit.k0), np.log(k0)) < FAR
    assert np.log(fit.k0).std() < 0.3
    # item by item, 5 to 95%
    low, high = np.quantile(fit.item_gap_nats, [0.05, 0.95], axis=0)
    assert ((low < 0) & (high > 0)).mean() > 0.7
    slope = np.log(np.asarray(group(fit.idata, "posterior")["slope"])).mean(axis=(0, 1))
    assert np.corrcoef(slope, np.log(answered["true_slope"].to_numpy()))[0, 1] > 0.6


@pytest.mark.mcmc
def test_what_follows_from_a_fit(fit: ParticipantFit) -> None:
    np.testing.assert_array_equal(fit.temperature, 1.0)
    np.testing.assert_allclose(
        fit.gap_at(1.0) - fit.gap_nats, (loss_gap(fit.belief, fit.k0) - fit.item_gap_nats).mean(axis=1)
    )
    # the upper bound is above by what people are apart
    low, high = fit.people_gap_bounds().T
    assert (low < high).all()
    rate = fit.top1_rate(np.random.default_rng(0))
    assert 0.05 < rate.mean() < 0.95
    asked, drawn, never = fit.belief.parts()
    for wanted in (np.median(fit.item_gap_nats.mean(axis=1)) - 0.02, np.median(fit.item_gap_nats.mean(axis=1)) + 0.1):
        factor = fit.tail_factor(wanted)
        total = np.log(asked + drawn + factor * never)
        assert np.median((fit.data.target_log_g + total).mean(axis=1)) == pytest.approx(wanted, abs=1e-6)
    assert fit.tail_factor(-100.0) == 0.0
    assert fit.tail_factor(100.0) == np.inf


@pytest.mark.mcmc
def test_anchors_give_one_belief_its_scale(outcomes: ParticipantFit, fit: ParticipantFit) -> None:
    assert outcomes.temperature.std() > 0.01
    np.testing.assert_allclose(outcomes.k0 * outcomes.temperature, outcomes.scale)
    np.testing.assert_allclose(outcomes.item_gap_nats, loss_gap(outcomes.belief, outcomes.temperature))
    assert off(outcomes.gap_nats, 0.0) < FAR
    assert off(np.log(outcomes.k0), np.median(np.log(fit.k0))) < FAR
    # few items do not fix a scale, and the check says so
    assert not outcomes.convergence.passed
    assert "outcomes" in outcomes.convergence.reasons[-1]


@pytest.mark.mcmc
def test_one_seed_one_fit_also_from_a_run_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = participant_data(comparison_study())
    given: dict[str, Any] = {"anchor": Anchor("assumed", k0=0.6), "draws": 8, "tune": 4, "seed": 3}

    def fitted(**more: Any) -> ParticipantFit:
        with keep_fits(tmp_path):
            return fit_participants(data, **given, **more)

    first, again = fitted(), fit_participants(data, **given)
    np.testing.assert_allclose(first.item_gap_nats, again.item_gap_nats, rtol=1e-9)
    np.testing.assert_array_equal(first.discrepancy, again.discrepancy)
    np.testing.assert_array_equal(first.temperature, 1.0)
    np.testing.assert_allclose(first.k0, 0.6)
    np.testing.assert_allclose(first.gap_at(0.6), first.gap_nats)

    def draw_none(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(participant_fit, "trajectories", draw_none)
    np.testing.assert_array_equal(first.gap_nats, fitted().gap_nats)
    # of other priors, or another report likelihood, there is none
    for more in ({"priors": ParticipantPriors(noise=1.0)}, {"report": "pulled"}):
        with pytest.raises(KeyboardInterrupt):
            fitted(**more)


@pytest.mark.mcmc
def test_draws_that_miss_the_thresholds_get_others() -> None:
    fit = fit_participants(participant_data(comparison_study()), anchor=Anchor("assumed"), draws=8, tune=8, retries=1)
    assert fit.gap_nats.size == 4 * 16
    # the belief of every draw is that of its parameters
    program, at = fit.compiled.program, fit.compiled._points(fit.idata).reshape(fit.belief.n_draws, -1)
    np.testing.assert_allclose(fit.belief.law, [program.wanted(x)[0] for x in at], rtol=1e-5, atol=1e-12)


@pytest.mark.mcmc
def test_fits_that_take_turns_at_one_compiled_model_are_as_if_each_had_one() -> None:
    data, wide = participant_data(comparison_study()), ParticipantPriors(noise=2.0, spread=1.0)
    other = with_reports(data, data.row_box[::-1])
    given: dict[str, Any] = {"anchor": Anchor("assumed", k0=0.6), "draws": 4, "tune": 2, "chains": 2}

    def without_the_first(fit: ParticipantFit) -> np.ndarray:
        return next(leave_one_out(fit, np.random.default_rng(0), n_draws=4)).gap_nats

    first = fit_participants(data, **given)
    before = without_the_first(first)
    turns = [fit_participants(data, priors=wide, **given | {"anchor": Anchor("assumed")})]
    turns.append(fit_participants(other, **given))
    assert {id(fit.compiled.program) for fit in turns} == {id(first.compiled.program)}
    np.testing.assert_array_equal(without_the_first(first), before)
    participant_fit._compiled.clear()
    alone = fit_participants(other, **given)
    assert alone.compiled.program is not first.compiled.program
    np.testing.assert_allclose(turns[1].item_gap_nats, alone.item_gap_nats, rtol=1e-9)
    again = fit_participants(data, priors=wide, **given | {"anchor": Anchor("assumed")})
    np.testing.assert_allclose(turns[0].item_gap_nats, again.item_gap_nats, rtol=1e-9)


def test_language_models_that_play_one_study_share_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted:
        def of(self, *_: Any) -> Counted:
            return self

    made: list[Counted] = []
    monkeypatch.setattr(participant_fit, "_compiled", {})
    monkeypatch.setattr(participant_fit, "participant_model", lambda *_, **__: None)
    monkeypatch.setattr(participant_fit, "Compiled", lambda *_, **__: made.append(Counted()) or made[-1])
    study, priors = comparison_study(), ParticipantPriors()
    how: dict[str, Any] = {"covariates": None, "report": "linear", "law": None}
    for player, rounding in (("lm-weak", None), ("lm-strong", None), ("lm-weak", "interface")):
        participant_fit.compiled_for(participant_data(study, player=player, rounding=rounding), priors, None, **how)
    participant_fit.compiled_for(participant_data(study), priors, 1.0, **how)
    assert len(made) == 2


@pytest.mark.mcmc
@pytest.mark.parametrize(("player", "rounding"), [("lm-weak", "interface"), ("lm-strong", None)])
def test_a_language_model_s_gap_is_recovered(player: str, rounding: str | None) -> None:
    settings = SimulationSettings(n_items=25, n_reference_items=25, vocab_size=400, n_candidates=60, n_participants=20)
    study = simulate_comparison_study(settings)
    data = participant_data(study, player=player, rounding=rounding)
    fit = fit_participants(data, draws=60)
    assert off(fit.gap_nats, true_gap(study, data.position, player)) < FAR
    assert fit.gap_nats.std() < 1
    assert np.isnan(fit.k0).all()


@pytest.mark.slow
def test_the_effect_of_a_covariate_is_recovered() -> None:
    """Two groups of twenty: the second is twice as steep."""
    people = ParticipantPopulation(slope_log_sd=0.2, noise_median_nats=0.5, lapses=False)
    study = believers(40, n_comparisons=20, n_draws=20, n_answers=10, n_participants=40, people=people)
    second = np.arange(40) >= 20
    names = study["participant_truth"].to_numpy().astype(str)
    report, scale = study["report"].to_numpy(), np.asarray(rounding_scheme("slider").values)
    steep = np.isin(study["participant"].to_numpy().astype(str), names[second])
    odds = (report / (1 - report)) ** np.where(steep, 2, 1)
    study["report"] = ("response", scale[np.abs(odds / (1 + odds) - scale[:, None]).argmin(axis=0)])
    covariates = pd.DataFrame({"second": second.astype(float)}, index=names)
    fit = fit_participants(participant_data(study, "slider"), covariates=covariates, draws=100)
    effect = np.ravel(group(fit.idata, "posterior")["slope_effect"])
    log_slope = np.log(study["true_slope"].to_numpy()) + np.log(2) * second
    assert off(effect, log_slope[second].mean() - log_slope[~second].mean()) < FAR
    assert effect.std() < 0.3
    assert effect.mean() > 0.2


def test_answers_that_nobody_gave_are_no_anchor() -> None:
    with pytest.raises(InputError, match="k0"):
        fit_participants(participant_data(comparison_study()), anchor=Anchor("answers"))


def test_formulas_give_columns_of_people() -> None:
    people = pd.DataFrame({"age": [20, 30, 50], "expert": ["no", "yes", "no"]}, index=["b", "a", "c"])
    found = design_matrix("age + expert", people)
    assert found.index.tolist() == ["b", "a", "c"]
    np.testing.assert_array_equal(found.to_numpy(), [[20, 0], [30, 1], [50, 0]])
    for formula, table in (("height", people), ("age", people.assign(age=[20, 30, np.nan])), ("1", people)):
        with pytest.raises(InputError, match="people"):
            design_matrix(formula, table)


def test_top1_weights_by_hand() -> None:
    weight = top1_weights([0.2, 0.3, 0.5], 0.3, 0.1)
    wanted = np.exp([-0.5, 0.0, -2.0])
    np.testing.assert_allclose(weight, wanted / wanted.sum())
    # far off, but still weights
    np.testing.assert_allclose(top1_weights([0.3, 0.3], 0.9, 1e-3), [0.5, 0.5])
    for rate in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match=r"top1\.rate"):
            top1_weights([0.2], rate, 0.1)
    for se in (0.0, float("inf")):
        with pytest.raises(InputError, match=r"top1\.se"):
            top1_weights([0.2], 0.3, se)
