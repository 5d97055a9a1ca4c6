"""The model behind the Bayesian TVD: its likelihood against a second one, and against numerical integration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
from pytensor.compile.mode import Mode

from shannon_game.estimators.cloze.distributions import WordCounts, count_words
from shannon_game.models.cloze.tvd import (
    WordPairPriors,
    set_word_pairs,
    simulate_with_sums,
    word_pair_data,
    word_pair_model,
)
from tests.oracles import word_pairs as reference

# a few evaluations are not worth a compiler; what makes logarithms of sums stable is
PLAIN = Mode(linker="py", optimizer="fast_run").excluding("fusion", "inplace")


def contexts(*pairs: tuple[list[int], list[int]]) -> tuple[WordCounts, WordCounts]:
    def made(side: int) -> WordCounts:
        rows = [(c, w, n) for c, pair in enumerate(pairs) for w, n in enumerate(pair[side]) if n]
        context, word, count = zip(*rows, strict=True)
        return count_words(context, word, count, n_contexts=len(pairs))

    return made(0), made(1)


TWO = contexts(([2, 3, 0, 1, 1], [1, 0, 2, 0, 0]), ([5, 1], [7, 1]))
OTHER = contexts(([1, 1, 400], [0, 1, 90]), ([3, 2000], [2, 1500]))


def values_of(model: pm.Model, *names: str) -> Any:
    """Function that gives deterministic variables at a point of the sampler's space."""
    found = model.replace_rvs_by_values([model[name] for name in names])
    return model.compile_fn(found, inputs=model.continuous_value_vars, mode=PLAIN, on_unused_input="ignore")


def a_point(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "population_mean": rng.normal(-0.2, 0.3, 6),
        "population_variance_log__": rng.normal(-2, 0.3, 6),
        "share_equal_logodds__": np.array(rng.normal()),
        "unit": rng.normal(size=(6, 2)),
        "scale": rng.normal(0, 0.5, (2, 2)),
        "unseen": np.array(0.1),
    }


@pytest.fixture(scope="module")
def compiled() -> Any:
    """A model, and what it is compiled to: its potential, its variables and its gradient at a point."""
    model = word_pair_model(word_pair_data(*TWO))
    variables = values_of(model, "theta", "log_u", "log_u_equal", "share_equal")
    inputs = {"inputs": model.continuous_value_vars, "mode": PLAIN, "on_unused_input": "ignore"}
    return model, model.compile_fn(model.potentiallogp, **inputs), variables, model.compile_dlogp(mode=PLAIN)


@pytest.mark.parametrize("seed", range(3))
def test_potential_is_the_likelihood_of_loops(compiled: Any, seed: int) -> None:
    model, potential, values, gradient = compiled
    for given in (word_pair_data(*TWO), word_pair_data(*OTHER)):
        set_word_pairs(model, given)
        point = a_point(seed)
        wanted = reference.log_likelihood(*values(point), given).sum()
        assert potential(point) == pytest.approx(wanted, abs=1e-2)
        assert np.isfinite(gradient(point)).all()


def test_alone_the_parameters_have_the_priors() -> None:
    model = word_pair_model(word_pair_data(*TWO), pooled=False)
    assert [variable.name for variable in model.free_RVs] == ["unseen", "unit", "scale"]
    point = {"unit": np.ones((6, 2)), "scale": np.zeros((2, 2)), "unseen": np.array(0.0)}
    (theta,) = values_of(model, "theta")(point)
    mean, sd = WordPairPriors().vectors()
    np.testing.assert_allclose(theta, np.tile((mean + sd)[:, None], 2))


@pytest.mark.parametrize("logits", [(40.0, 0.0), (800.0, 800.0), (-40.0, -800.0), (18.0, -18.0)])
def test_words_are_drawn_at_discounts_of_zero_and_one(logits: tuple[float, float]) -> None:
    """A posterior may hold discounts that are 1 in floats; all answers are drawn, and with one of 1 each is a word."""
    theta = np.array([[0.5], [-0.5], [-0.5], [logits[0]], [logits[1]], [-0.7]])
    data, _ = simulate_with_sums(theta, np.array([30]), np.array([20]), np.random.default_rng(0))
    assert (data.a * data.words).sum() == 30
    assert (data.b * data.words).sum() == 20
    if min(logits) > 30:
        assert data.a.max() <= 1
        assert data.b.max() <= 1
