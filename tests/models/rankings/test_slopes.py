from __future__ import annotations

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.special import expit
from scipy.stats import multinomial, norm

from shannon_game.models.rankings.slope_priors import RankPriors
from shannon_game.models.rankings.slopes import log_category_probability, rank_data, rank_slope_model, set_counts


def study(lengths=(4, 8), models=("a", "b"), texts=("t", "u"), n=5) -> xr.Dataset:
    rows = [
        (model, text, length, "w", position)
        for model in models
        for text in texts
        for length in lengths
        for position in range(n)
    ]
    model, text, length, window, position = zip(*rows, strict=True)
    return xr.Dataset(
        {
            "model": ("token", list(model)),
            "text": ("token", list(text)),
            "context_length": ("token", list(length)),
            "window": ("token", list(window)),
            "position": ("token", list(position)),
        }
    )


def test_counts() -> None:
    given = study()
    rank = np.tile([1.0, 1.0, 3.0, np.inf, 2.5], 8)
    data = rank_data(given, rank, 3)
    assert data.count.shape == (8, 4)
    # none, rank 3, rank 2 (and a half), rank 1
    assert data.count.tolist() == [[1, 1, 1, 2]] * 8
    assert data.category_rank.tolist() == [np.inf, 3, 2, 1]
    assert data.model.tolist() == ["a", "b"]
    assert data.window_length[data.cell_window].tolist() == [4, 4, 8, 8, 4, 4, 8, 8]
    assert data.window_text[data.cell_window].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert data.centre == 2.5


@pytest.mark.parametrize("log_odds", [-30.0, -2.0, 0.0, 0.7, 30.0])
def test_probabilities_are_those_of_proportional_odds(log_odds: float) -> None:
    baseline = np.array([0.3, 0.05, 0.1, 0.05, 0.5])
    cut = np.log(np.cumsum(baseline)[:-1]) - np.log1p(-np.cumsum(baseline)[:-1])
    below = np.concatenate([[0], expit(cut - log_odds), [1]])
    found = np.exp(log_category_probability(log_odds, baseline))
    np.testing.assert_allclose(found, np.diff(below), atol=1e-12)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    # no cancellation where the difference of two cumulated probabilities has none of its digits left
    assert (log_category_probability(log_odds, baseline) > -70).all()


def compiled(model, outputs):
    """Python instead of compiled C: one evaluation is not worth a compiler."""
    inputs = model.value_vars
    return model.compile_fn(outputs, inputs=inputs, mode="FAST_COMPILE", on_unused_input="ignore")


def test_log_likelihood_of_the_program_is_the_multinomial() -> None:
    rng = np.random.default_rng(1)
    data = rank_data(study(), rng.choice([1.0, 2.0, 3.0, np.inf], 40), 3)
    model = rank_slope_model(data)
    values = model.replace_rvs_by_values([model["log_odds"], model["baseline"]])
    function = compiled(model, [*values, *model.logp(model.observed_RVs, sum=False)])
    constants = []
    for scale in (0.1, 0.5, 1.0):
        point = {
            name: value + scale * rng.normal(size=np.shape(value)) for name, value in model.initial_point().items()
        }
        log_odds, baseline, logp = function(point)
        probability = np.exp(log_category_probability(log_odds, baseline))
        constants.append(multinomial(n=5, p=probability / probability.sum(-1, keepdims=True)).logpmf(data.count) - logp)
    # up to the multinomial coefficient, which is the same everywhere
    np.testing.assert_allclose(constants[1:], [constants[0]] * 2, atol=1e-9)


def test_log_odds_are_a_sum_of_effects_and_these_have_their_priors() -> None:
    data = rank_data(study(models=("a", "b", "c")), np.ones(60), 3)
    model = rank_slope_model(data, RankPriors(slope=0.7))
    unit, window, cell = (np.random.default_rng(2).normal(size=n) for n in (3, 4, 12))
    spreads = {"slope_spread": 0.2, "window_spread": 0.5, "model_window_spread": 0.4}
    effects = {"model_effect": np.array([1, -0.4, -0.6]), "text_effect": np.array([0.2, -0.2]), "window_effect": window}
    units = {"slope_mean": 0.3, "slope_unit": unit, "model_window_unit": cell}
    found = pm.draw(pm.do(model, spreads | effects | units)["log_odds"], mode="FAST_COMPILE")
    for at, (m, w) in enumerate(zip(data.cell_model, data.cell_window, strict=True)):
        slope = (0.3 + 0.2 * unit[m]) * (np.log2(data.window_length[w]) - data.centre)
        places = effects["text_effect"][data.window_text[w]] + window[w] + 0.4 * cell[at]
        assert found[at] == pytest.approx(effects["model_effect"][m] + slope + places)
    sd = {"slope_mean": 0.7, "slope_unit": 1, "model_window_unit": 1, "window_effect": np.exp(0.3)}
    point = {name: np.full_like(value, 0.3) for name, value in model.initial_point().items()}
    log_p = model.compile_logp([model[name] for name in sd], sum=False, jacobian=False, mode="FAST_COMPILE")(point)
    for value, each in zip(log_p, sd.values(), strict=True):
        np.testing.assert_allclose(value, norm.logpdf(0.3, 0, each))


def test_counts_are_exchanged() -> None:
    data = rank_data(study(), np.ones(40), 3)
    other = data.with_counts(np.tile([5, 0, 0, 0], (8, 1)))
    model = rank_slope_model(data)
    point = {name: value + 0.3 for name, value in model.initial_point().items()}
    log_p = compiled(model, model.logp())
    before = log_p(point)
    set_counts(model, other)
    after = log_p(point)
    fresh = rank_slope_model(other)
    assert after == pytest.approx(compiled(fresh, fresh.logp())(point))
    assert after != pytest.approx(before)


@pytest.mark.parametrize("models", [("a",), ("a", "b", "c")])
@pytest.mark.parametrize("texts", [("t",), ("t", "u")])
def test_any_number_of_models_and_texts(models, texts) -> None:
    given = study(models=models, texts=texts)
    data = rank_data(given, np.ones(given.sizes["token"]), 3)
    model = rank_slope_model(data)
    assert np.isfinite(compiled(model, model.logp())(model.initial_point()))
    assert ("model_window_spread" in model.named_vars) == (len(models) > 1)
    assert ("text_effect" in model.named_vars) == (len(texts) > 1)
