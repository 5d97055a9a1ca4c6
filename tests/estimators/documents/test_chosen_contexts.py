"""A mean over contexts that were chosen with unequal, recorded probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.estimators.documents import chosen_context_terms, context_choice, crossed_mean
from shannon_game.estimators.errors import InputError


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 12))
def test_the_expected_term_is_the_mean_whatever_is_predicted(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    truth, predicted = 3 * rng.normal(size=n), 5 * rng.normal(size=n)
    probability = rng.dirichlet(np.ones(n)) * 0.9 + 0.1 / n
    terms = chosen_context_terms(truth, probability, predicted, np.full(n, predicted.mean()), n)
    assert probability @ terms == pytest.approx(truth.mean())


def test_a_perfect_prediction_leaves_no_variance() -> None:
    truth = np.array([1.0, 4.0, -2.0])
    terms = chosen_context_terms(truth, [0.1, 0.2, 0.7], truth, np.full(3, truth.mean()), 3)
    np.testing.assert_allclose(terms, 1.0)


def test_contexts_whose_answers_scatter_are_asked_more_and_none_is_forgotten() -> None:
    rng = np.random.default_rng(0)
    features = rng.random((50, 1))
    asked = rng.integers(0, 50, 400)
    value = 2 * features[asked, 0] + features[asked, 0] * rng.normal(size=400)
    probability, predicted = context_choice(features, asked, value, floor=0.2)
    assert probability.sum() == pytest.approx(1)
    assert (probability >= 0.2 / 50).all()
    order = np.argsort(features[:, 0])
    assert (np.diff(probability[order]) >= -1e-12).all()
    assert probability[order[-1]] > 2 * probability[order[0]]
    assert np.corrcoef(predicted, features[:, 0])[0, 1] > 0.99


@pytest.mark.slow
def test_intervals_cover_where_a_study_stops_at_a_width() -> None:
    """400 studies that look after every 20 answers; coverage of 90% by chance below 85% has a probability of .001."""
    base = np.random.default_rng(5)
    features = base.normal(size=(200, 2))
    truth = features[:, 0] + 0.5 * base.normal(size=200)
    inside = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        taste = 0.2 * rng.normal(size=40)
        probability, predicted = np.full(200, 1 / 200), np.zeros(200)
        parts = []
        narrow = 0
        while narrow < 2:
            context = rng.choice(200, 20, p=probability / probability.sum())
            person = (20 * len(parts) + np.arange(20)) % 40
            noise = np.exp(0.5 * features[context, 1]) * rng.normal(size=20)
            value = truth[context] + taste[person] + noise
            whole = np.full(20, predicted.mean())
            parts.append((value, probability[context], predicted[context], whole, person, context))
            x, p, m, w, who, where = (np.concatenate(each) for each in zip(*parts, strict=True))
            found = crossed_mean(chosen_context_terms(x, p, m, w, 200), who, where)
            narrow = narrow + 1 if found.upper - found.lower < 0.5 else 0
            probability, predicted = context_choice(features, where, x)
        inside.append(found.lower <= truth.mean() <= found.upper)
    assert 0.85 <= np.mean(inside) <= 0.97


@pytest.mark.parametrize(
    ("value", "probability", "message"),
    [([1.0], [0.0], "probability: should be above 0"), ([1.0, 2.0], [0.5], "value: have shapes")],
)
def test_terms_that_are_refused(value: list, probability: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chosen_context_terms(value, probability, np.zeros(len(value)), np.zeros(len(value)), 3)


@pytest.mark.parametrize(
    ("features", "asked", "value", "floor", "message"),
    [
        ([[0.0]], [0], [1.0], 0.0, "floor: is 0.0"),
        ([0.0], [0], [1.0], 0.2, "have shapes"),
        ([[0.0]], [], [], 0.2, "have shapes"),
    ],
)
def test_choices_that_are_refused(features: list, asked: list, value: list, floor: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        context_choice(features, asked, value, floor=floor)
