"""Statistics of a few answers: against enumeration, against resampling, and their edge cases."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.estimators.cloze.answer_statistics import answer_statistics, half_split_terms, pooled_covariance
from shannon_game.estimators.cloze.distributions import WordCounts, count_words, entropy_nats, relative_frequencies


def counts_of(*contexts: list[int]) -> WordCounts:
    context = np.concatenate([np.full(len(c), i) for i, c in enumerate(contexts)])
    word = np.concatenate([np.arange(len(c)) for c in contexts])
    return count_words(context, word, np.concatenate(contexts), n_contexts=len(contexts))


def enumerated(counts: list[int]) -> float:
    """Mean TVD over all ways to split a list of answers into halves."""
    answers = np.repeat(np.arange(len(counts)), counts)
    n = len(answers)
    found = []
    for chosen in combinations(range(n), n // 2):
        first = np.bincount(answers[list(chosen)], minlength=len(counts))
        second = np.asarray(counts) - first
        found.append(0.5 * np.abs(first / (n // 2) - second / (n - n // 2)).sum())
    return float(np.mean(found))


@settings(max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda c: 3 <= sum(c) <= 9))
def test_oracle_tvd_is_the_mean_over_all_splits(counts: list[int]) -> None:
    found = answer_statistics(counts_of(counts))
    assert found.value[1, 0] == pytest.approx(enumerated(counts), abs=1e-12)
    expected = entropy_nats(relative_frequencies(counts_of(counts)))[0]
    assert found.value[0, 0] == pytest.approx(expected, abs=1e-12)


@settings(max_examples=20)
@given(st.lists(st.integers(1, 5), min_size=2, max_size=5).filter(lambda c: sum(c) >= 4))
def test_jackknife_is_that_of_answers_left_out_one_by_one(counts: list[int]) -> None:
    answers = np.repeat(np.arange(len(counts)), counts)
    n = len(answers)
    left = []
    for out in range(n):
        rest = np.delete(answers, out)
        one = count_words(np.zeros(n - 1, int), rest, np.ones(n - 1, int), n_contexts=1)
        share = np.bincount(rest, minlength=len(counts)) / (n - 1)
        entropy = -sum(p * np.log(p) for p in share if p > 0)
        terms = half_split_terms(n - 1)
        left.append([entropy, float(terms[one.count].sum())])
    expected = np.cov(np.array(left).T, ddof=0) * (n - 1)
    np.testing.assert_allclose(answer_statistics(counts_of(counts)).covariance[0], expected, atol=1e-12)


@pytest.mark.parametrize("window", [1, 2, 3, 4, 6])
def test_pooled_errors_are_means_over_neighbours_in_the_first_statistic(window: int) -> None:
    contexts = [[9, 5, 4], [1] * 18, [18], [6, 6, 6], [10, 8], [12, 4, 1, 1]]
    found = answer_statistics(counts_of(*contexts))
    order = sorted(range(6), key=lambda i: found.value[0, i])
    pooled = pooled_covariance(found, window=window, shrinkage=0.25)
    for place, context in enumerate(order):
        first = min(max(place - window // 2, 0), 6 - window)
        near = found.covariance[order[first : first + window]].mean(axis=0)
        np.testing.assert_allclose(pooled[context], 0.75 * near + 0.25 * found.covariance.mean(axis=0), atol=1e-15)
    whole = pooled_covariance(found, window=window, shrinkage=1)
    np.testing.assert_allclose(whole, np.broadcast_to(found.covariance.mean(axis=0), whole.shape))
