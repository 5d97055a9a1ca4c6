"""Predicted answers against the model's own prior, and against people and questions left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from estimators.comparison import SimulationSettings, simulate_comparison_study
from estimators.errors import InputError
from inference.comparison.participant_prediction import log_score, predicted_boxes
from inference.posterior.arviz_adapter import group
from models.comparison.participant_data import ParticipantData, participant_data, without_participants
from models.comparison.participants import ParticipantPriors

xr = pytest.importorskip("xarray")
pm = pytest.importorskip("pymc")


@pytest.fixture(scope="module")
def data() -> ParticipantData:
    study = simulate_comparison_study(
        SimulationSettings(n_items=6, n_reference_items=20, n_participants=5, n_candidates=20, vocab_size=200, seed=1)
    )
    return participant_data(study)


@pytest.fixture(scope="module")
def prior(data: ParticipantData) -> tuple[xr.Dataset, np.ndarray]:
    """Draws from the prior, and answers from it."""
    from models.comparison.participants import participant_model

    found = pm.sample_prior_predictive(draws=4000, model=participant_model(data), random_seed=3)
    answers = found.prior_predictive["box"].values.reshape(-1, data.row_pair.size)
    return found.prior, answers


def renamed(data: ParticipantData, *, people: bool, items: bool) -> ParticipantData:
    return replace(
        data,
        participant=np.array([f"new {name}" for name in data.participant]) if people else data.participant,
        item=data.item + 1000 if items else data.item,
    )


@pytest.mark.parametrize(("people", "items"), [(True, True), (False, True), (True, False), (False, False)])
def test_with_draws_from_the_prior_every_kind_of_prediction_is_the_prior_predictive(
    data: ParticipantData, prior: tuple[xr.Dataset, np.ndarray], people: bool, items: bool
) -> None:
    draws, answers = prior
    target = renamed(data, people=people, items=items)
    probability = predicted_boxes(draws, data, target, ParticipantPriors(), np.random.default_rng(0))
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-9)
    observed = np.stack([(answers == box).mean(axis=0) for box in range(len(data.box_edges))], axis=1)
    # a pair of the fit with one answer is predicted given that answer, of which these draws know nothing
    rows = np.full(data.row_pair.size, True) if items else data.row_pair < data.n_shared
    assert rows.sum() > 1
    # 4,000 draws: a share of .3 has a standard error of .007 on either side
    np.testing.assert_allclose(probability[rows], observed[rows], atol=0.045)
    np.testing.assert_allclose(probability[rows].mean(axis=0), observed[rows].mean(axis=0), atol=0.02)


def test_pairs_must_be_those_of_the_fit(data: ParticipantData, prior: tuple[xr.Dataset, np.ndarray]) -> None:
    target = replace(data, pair_column=data.pair_column + 500)
    with pytest.raises(InputError, match="fitted without the candidate"):
        predicted_boxes(prior[0], data, target, ParticipantPriors(), np.random.default_rng(0))
    other = replace(data, box_edges=data.box_edges + 0.1)
    with pytest.raises(InputError, match="grid"):
        predicted_boxes(prior[0], data, other, ParticipantPriors(), np.random.default_rng(0))


def test_log_score_is_the_mean_log_probability() -> None:
    probability = np.array([[0.2, 0.8], [0.5, 0.5]])
    assert log_score(probability, np.array([1, 0])) == pytest.approx((np.log(0.8) + np.log(0.5)) / 2)


@pytest.mark.slow
def test_people_and_questions_left_out_are_predicted_better_than_by_shares_alone() -> None:
    from inference.comparison.participant_fit import Anchor, fit_participants

    study = simulate_comparison_study(
        SimulationSettings(n_items=60, n_reference_items=100, n_participants=20, n_candidates=50, vocab_size=1000)
    )
    full = participant_data(study)
    gone = full.participant[:4].tolist()
    fitted = without_participants(full, gone)
    priors = ParticipantPriors()
    fit = fit_participants(fitted, priors=priors, anchor=Anchor("assumed"), draws=300, tune=300, chains=2, seed=1)
    target = without_participants(full, full.participant[4:].tolist())
    probability = predicted_boxes(group(fit.idata, "posterior"), fitted, target, priors, np.random.default_rng(0))
    shares = (np.bincount(fitted.row_box, minlength=len(full.box_edges)) + 0.5) / (fitted.row_box.size + 5.5)
    baseline = log_score(np.tile(shares, (target.row_box.size, 1)), target.row_box)
    assert log_score(probability, target.row_box) > baseline + 0.1
