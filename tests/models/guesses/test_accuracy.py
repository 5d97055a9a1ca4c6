"""The accuracy model against loops over guesses, what aggregation loses, and wrong input. No fits here."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses import with_model_answers
from shannon_game.inference.posterior.predictive import log_likelihood
from shannon_game.models.guesses.accuracy import accuracy_model
from shannon_game.models.guesses.accuracy_data import AccuracyData, accuracy_data, practice_amount
from shannon_game.models.guesses.accuracy_priors import AccuracyPriors
from tests.estimators.guesses.guess_studies import guess_study
from tests.oracles import accuracy as reference


def point_of(data: AccuracyData, seed: int) -> dict[str, object]:
    """Values of the free variables at random, on their own scale."""
    rng = np.random.default_rng(seed)
    return {
        "intercept": rng.normal(-1, 0.3),
        "ability_spread": 0.4,
        "ability_unit": rng.normal(0, 1, data.participant.size),
        "document_spread": 0.3,
        "document_effect_unit": rng.normal(0, 1, data.document.size),
        "practice_mean": 0.5,
        "practice_spread": 0.2,
        "practice_unit": rng.normal(0, 1, data.participant.size),
        "context_step": 0.3,
        "context_unit": rng.normal(0, 1, data.band.size - 1),
    }


def test_the_likelihood_is_that_of_single_guesses() -> None:
    """The reference adds effects up guess by guess; binomials differ from Bernoullis by their coefficients alone."""
    import pymc as pm
    from scipy.special import gammaln

    study, _ = reference.simulated_study(n_participants=4, n_documents=6, n_guesses=12, seed=1)
    data = accuracy_data(study)
    model = accuracy_model(data)
    point = point_of(data, 2)
    rows = log_likelihood(model)
    found = rows.at({name: np.asarray(point[name]) for name in rows.inputs})["hits"].sum()
    coefficient = (gammaln(data.n + 1) - gammaln(data.hits + 1) - gammaln(data.n - data.hits + 1)).sum()
    names = ["ability", "practice", "document_effect", "context_effect"]
    frozen = pm.do(model, {name: point[name] for name in rows.inputs})
    effects = {name: pm.draw(frozen[name]) for name in names}
    truth = {
        "intercept": point["intercept"],
        "ability": dict(zip(data.participant.tolist(), effects["ability"], strict=True)),
        "practice": dict(zip(data.participant.tolist(), effects["practice"], strict=True)),
        "document_effect": dict(zip(data.document.tolist(), effects["document_effect"], strict=True)),
        "context_effect": {at + 1: effect for at, effect in enumerate(effects["context_effect"])},
    }
    assert found - coefficient == pytest.approx(reference.log_likelihood(study, truth, data.practice_centre), rel=1e-10)
    # the walk is around its mean over guesses, practice effects around their mean
    assert data.band_share @ effects["context_effect"] == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(effects["practice"], 0.5 + 0.2 * np.asarray(point["practice_unit"]))


def test_the_sampler_s_coordinates_do_not_change_the_model() -> None:
    """Effects are N(0, spread) whatever the information on them: prior draws of both kinds have that spread."""
    import pymc as pm

    study, _ = reference.simulated_study(n_participants=3, n_documents=6, n_guesses=40, seed=1)
    model = accuracy_model(accuracy_data(study))
    ability, spread = pm.draw([model["ability"], model["ability_spread"]], draws=4000, random_seed=1)
    standard = ability / spread[:, None]
    # 12,000 standard normals: standard errors .009 and .0065; kurtosis .045
    assert standard.mean() == pytest.approx(0, abs=0.04)
    assert standard.std() == pytest.approx(1, abs=0.03)
    assert (standard**4).mean() == pytest.approx(3, abs=0.2)
    assert np.corrcoef(np.log(spread), np.abs(standard[:, 0]))[0, 1] == pytest.approx(0, abs=0.06)
    assert np.median(spread) == pytest.approx(AccuracyPriors().ability_spread, rel=0.06)


def test_blocks_of_practice_lose_next_to_nothing() -> None:
    study, _ = reference.simulated_study(n_participants=6, n_documents=9, n_guesses=200, seed=3)
    data = accuracy_data(study)
    assert data.n.size < study.sizes["response"] / 5
    assert data.n.sum() == study.sizes["response"]
    assert data.hits.sum() == int(study["correct"].sum())
    assert np.average(data.practice, weights=data.n) == pytest.approx(0, abs=1e-12)
    # every guess's practice is within half a block, a hundredth, and so is their mean
    raw = practice_amount(study["n_before"].values)
    assert abs(data.practice_centre - raw.mean()) < 0.01
    rows = np.unique(data.practice + data.practice_centre)
    assert np.abs(raw[:, None] - rows).min(axis=1).max() <= 0.01 + 1e-12


def test_surprisal_is_a_predictor_where_a_model_scored() -> None:
    study = with_model_answers(guess_study(), "lm", [1, 0, 0, np.nan], [0.5, 2.0, 3.5, np.nan])
    data = accuracy_data(study, surprisal_model="lm")
    assert (data.n.sum(), data.n_unscored, data.surprisal_model) == (4, 1, "lm")
    assert data.surprisal_centre == pytest.approx((0.5 + 0.5 + 2 + 3.5) / 4)
    assert data.surprisal is not None
    assert np.average(data.surprisal, weights=data.n) == pytest.approx(0)
    assert "surprisal_slope" in accuracy_model(data).named_vars
    assert "surprisal_slope" not in accuracy_model(accuracy_data(study)).named_vars
    with pytest.raises(InputError, match=r"choose one of: lm"):
        accuracy_data(study, surprisal_model="gpt")
    with pytest.raises(InputError, match=r"none in this study"):
        accuracy_data(guess_study(), surprisal_model="gpt")
    silent = with_model_answers(guess_study(), "lm", [1, 0, 0, 0])
    with pytest.raises(InputError, match="target_surprisal_nats: has none of model 'lm'"):
        accuracy_data(silent, surprisal_model="lm")
