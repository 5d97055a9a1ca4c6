"""Calibration of all words' probabilities: against dense loops, and at its ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.cloze import Distributions, classwise_calibration_error
from shannon_game.estimators.errors import InputError


def sparse(dense: np.ndarray) -> Distributions:
    context, word = np.nonzero(dense)
    return Distributions(context, word, dense[context, word], len(dense))


def slow(dense: np.ndarray, gold: list[int], n_bins: int) -> tuple[float, float]:
    """Every word in every context, one bin after the other."""
    contexts = [i for i in range(len(dense)) if gold[i] >= 0 and dense[i].any()]
    total, pooled = 0.0, 0.0
    for low in range(n_bins):
        everywhere = 0.0
        for word in range(dense.shape[1]):
            off = 0.0
            for i in contexts:
                if min(int(dense[i, word] * n_bins), n_bins - 1) == low:
                    off += dense[i, word] - (gold[i] == word)
            total += abs(off) / len(contexts)
            everywhere += off
        pooled += abs(everywhere) / len(contexts)
    return total, pooled


@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 12))
def test_sparse_sums_are_the_dense_ones(seed: int, n_contexts: int, n_bins: int) -> None:
    rng = np.random.default_rng(seed)
    dense = rng.multinomial(7, np.full(4, 0.25), n_contexts) / 7
    gold = rng.integers(-1, 5, n_contexts).tolist()
    # a label that no context gives probability, and a context without a distribution
    dense = np.column_stack([dense, np.zeros(n_contexts)])
    dense[-1] *= rng.integers(0, 2)
    if not any(label >= 0 and row.any() for label, row in zip(gold, dense, strict=True)):
        with pytest.raises(InputError, match="no context with a distribution and a gold label"):
            classwise_calibration_error(sparse(dense), gold, n_bins=n_bins)
        return
    found = classwise_calibration_error(sparse(dense), gold, n_bins=n_bins)
    assert (found.total, found.pooled) == pytest.approx(slow(dense, gold, n_bins))
    assert found.mean == pytest.approx(found.total / found.n_words)
    assert 0 <= found.pooled <= found.total + 1e-12 <= 2 + 1e-9
