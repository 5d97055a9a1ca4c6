"""How much of a raw TVD between samples is sampling alone, and a correction that needs no model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.cloze.distances import align, total_variation
from shannon_game.estimators.cloze.distributions import WordCounts, relative_frequencies
from shannon_game.estimators.display import Result


@dataclass(frozen=True, eq=False, repr=False)
class TvdBaseline(Result):
    """Raw TVD of each context, its same-size baseline, and what the correction makes of both; each (context,).

    Parameters
    ----------
    baseline : ndarray of float
        See :func:`permutation_baseline`.
    corrected : ndarray of float
        (raw - baseline) / (1 - baseline): zero on average where both samples are from one distribution, one where
        they share no word. Not clipped, so that means over contexts stay means; NaN where the baseline is one.
    """

    raw: NDArray[np.float64]
    baseline: NDArray[np.float64]
    corrected: NDArray[np.float64]


def tvd_with_baseline(first: WordCounts, second: WordCounts) -> TvdBaseline:
    """Raw TVD, same-size baseline and chance-corrected TVD of the same contexts, in one coding of words.

    Examples
    --------
    >>> first = cloze.count_words([0, 0], [0, 1], [3, 1], n_contexts=1)
    >>> second = cloze.count_words([0, 0], [0, 1], [1, 3], n_contexts=1)
    >>> cloze.tvd_with_baseline(first, second).summary().round(3)
       raw  baseline  corrected
    0  0.5     0.257      0.327
    """
    WordCounts.require(first=first, second=second)
    raw = total_variation(relative_frequencies(first), relative_frequencies(second))
    baseline = permutation_baseline(first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        corrected = np.where(baseline < 1, (raw - baseline) / (1 - baseline), np.nan)
    return TvdBaseline(raw, baseline, corrected)


def permutation_baseline(first: WordCounts, second: WordCounts) -> NDArray[np.float64]:
    r"""Expected TVD when the answers of both sides are dealt out again at random, exactly; (context,).

    Of the :math:`t_w` answers *w* of both sides, the first side gets a hypergeometric number :math:`A_w` when
    :math:`n_1` of all :math:`n_1 + n_2` are dealt to it: :math:`\frac{1}{2} \sum_w E|A_w / n_1 - (t_w - A_w) / n_2|`.
    """
    WordCounts.require(first=first, second=second)
    from scipy.stats import hypergeom  # noqa: PLC0415 - half a second that importing estimators does not need

    both = align(relative_frequencies(first), relative_frequencies(second))
    n_1, n_2 = first.totals, second.totals
    together = both.p * n_1[both.context] + both.q * n_2[both.context]
    cases = np.stack([np.rint(together).astype(np.int64), n_1[both.context], n_2[both.context]], axis=1)
    unique, which = np.unique(cases, axis=0, return_inverse=True)
    # every possible number of the first side, for every distinct case, in one call
    sizes = unique[:, 0] + 1
    case = np.repeat(np.arange(len(unique)), sizes)
    dealt = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    t, a, b = unique[case].T
    # a side without answers: any number will do, as the context has no distance
    a_safe, b_safe = np.maximum(a, 1), np.maximum(b, 1)
    terms = hypergeom.pmf(dealt, a + b, t, a) * np.abs(dealt / a_safe - (t - dealt) / b_safe)
    expected = np.bincount(case, weights=terms, minlength=len(unique))
    sums = np.bincount(both.context, weights=expected[which.ravel()], minlength=both.n_contexts) / 2
    return np.where((n_1 > 0) & (n_2 > 0), sums, np.nan)
