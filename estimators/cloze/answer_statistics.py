r"""Entropy of a context's answers and the distance between two halves of them, with their errors.

Both are sums over words of a function of the word's count, :math:`T = \sum_w g_m(c_w)` with m answers in all, so that
leaving out every answer in turn (the jackknife) costs one pass over the words, and no split has to be drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.cloze.distributions import WordCounts, sums_by_context
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice


@dataclass(frozen=True, eq=False, repr=False)
class AnswerStatistics(Result):
    """Statistics of each context's answers, with jackknife errors.

    Parameters
    ----------
    names : tuple of str
        Keys of :data:`STATISTICS`.
    value : ndarray, shape (statistic, context)
        NaN where a context has fewer than three answers.
    covariance : ndarray, shape (context, statistic, statistic)
        Of the errors: how the statistics would vary over other people asked about the same context.
    """

    names: tuple[str, ...]
    value: FloatArray
    covariance: FloatArray


def answer_statistics(counts: WordCounts, names: tuple[str, ...] = ("entropy", "oracle_tvd")) -> AnswerStatistics:
    r"""Entropy of the answers and expected TVD between two halves of them, with their joint errors.

    ``entropy`` is that of the relative frequencies, in nats. ``oracle_tvd`` is the TVD between two disjoint halves
    (of an odd number one half has one answer more), averaged exactly over all ways to split: the count X of a word in
    the first half is hypergeometric, and :math:`g_m(c) = \tfrac12 E|X / a - (c - X) / b|` with halves of a and b.

    The errors are the jackknife's: :math:`\frac{m - 1}{m} \sum_j (T_{(j)} - \bar T)(T_{(j)} - \bar T)^\top`
    over the m answers left out in turn. It errs on the wide side (Efron and Stein 1981), but a context where every
    answer is different (or all are alike) gets no error at all: see :func:`pooled_covariance`.

    Examples
    --------
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> cloze.answer_statistics(counts).value.round(3)
    array([[0.562, 0.693],
           [0.5  , 0.333]])
    """
    WordCounts.require(counts=counts)
    for name in names:
        if name not in STATISTICS:
            raise unknown_choice("statistic", name, STATISTICS)
    n_contexts, size = counts.n_contexts, len(names)
    value = np.full((size, n_contexts), np.nan)
    covariance = np.full((n_contexts, size, size), np.nan)
    totals = counts.totals
    for total in np.unique(totals[totals >= 3]):
        rows = np.flatnonzero(totals[counts.context] == total)
        context, count = counts.context[rows], counts.count[rows]
        here = np.flatnonzero(totals == total)
        left_out = np.empty((size, len(rows)))
        for at, name in enumerate(names):
            terms = STATISTICS[name](int(total))
            # a word that all people gave: its term for one answer fewer is never there in full
            fewer = np.append(STATISTICS[name](int(total) - 1), 0.0)
            value[at, here] = np.bincount(context, weights=terms[count])[here]
            # less what all of a context's answers have in common, which their covariance does not see
            left_out[at] = fewer[count - 1] - fewer[count]
        mean = np.stack([np.bincount(context, weights=row * count) for row in left_out]) / total
        apart = left_out - mean[:, context]
        for i in range(size):
            for j in range(size):
                summed = np.bincount(context, weights=apart[i] * apart[j] * count)[here]
                covariance[here, i, j] = (total - 1) / total * summed
    return AnswerStatistics(tuple(names), value, covariance)


def entropy_corrected_nats(counts: WordCounts) -> FloatArray:
    r"""Entropy of what people would say, corrected for words that nobody has said yet (Chao and Shen 2003).

    The share of the distribution that was seen is estimated by :math:`C = 1 - f_1 / n`, with :math:`f_1` words given
    once among n answers, and every word stands for those as likely as itself that were missed:

    .. math:: H = -\sum_w \frac{C p_w \ln (C p_w)}{1 - (1 - C p_w)^n}

    It is still too low where most answers differ; where all of them do, :math:`f_1 = n - 1` keeps it finite. A context
    with fewer than two answers has NaN.

    Examples
    --------
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> cloze.entropy_corrected_nats(counts).round(3)
    array([0.892, 0.739])
    """
    WordCounts.require(counts=counts)
    totals = counts.totals
    once = np.bincount(counts.context[counts.count == 1], minlength=counts.n_contexts)
    seen = 1 - np.where(once == totals, totals - 1, once) / np.maximum(totals, 1)
    n = totals[counts.context]
    p = seen[counts.context] * counts.count / n
    # a context with a single answer has p = 1
    terms = -p * np.log(p) / -np.expm1(n * np.log1p(-np.minimum(p, 1 - 1e-16)))
    return np.where(totals > 1, sums_by_context(counts.context, terms, counts.n_contexts), np.nan)


def pooled_covariance(found: AnswerStatistics, *, window: int = 41, shrinkage: float = 0.1) -> FloatArray:
    """Average the errors over contexts with similar statistics, as a single context's are rough and can be zero."""
    check_numbers({"window": window}, at_least=1)
    check_numbers({"shrinkage": shrinkage}, at_least=0, at_most=1)
    if not np.isfinite(found.covariance).all():
        n_bad = int((~np.isfinite(found.covariance).all(axis=(1, 2))).sum())
        raise InputError(f"are unknown for {n_bad} contexts, which have fewer than 3 answers", field="errors")
    n_contexts = len(found.covariance)
    order = np.argsort(found.value[0], kind="stable")
    width = min(window, n_contexts)
    # near the ends the window stays as wide and moves inwards
    start = np.clip(np.arange(n_contexts) - width // 2, 0, n_contexts - width)
    summed = np.concatenate([np.zeros((1, *found.covariance.shape[1:])), np.cumsum(found.covariance[order], axis=0)])
    averaged = np.empty_like(found.covariance)
    averaged[order] = (summed[start + width] - summed[start]) / width
    blended: FloatArray = np.asarray(
        (1 - shrinkage) * averaged + shrinkage * found.covariance.mean(axis=0), dtype=float
    )
    return blended


def half_split_terms(total: int) -> FloatArray:
    """Terms g(c), c = 0, ..., total, of the expected TVD between two random halves; shape (total + 1,)."""
    first = total // 2
    count = np.arange(total + 1)[:, None]
    drawn = np.arange(first + 1)[None, :]
    # P(X = x) = C(c, x) C(total - c, first - x) / C(total, first)
    choose = np.array([[math.comb(n, k) for k in range(first + 1)] for n in range(total + 1)], dtype=float)
    ways = choose[:, : first + 1] * choose[total - count.ravel()][:, ::-1] / math.comb(total, first)
    apart = np.abs(drawn / first - (count - drawn) / (total - first))
    terms: FloatArray = (ways * apart).sum(axis=1) / 2
    return terms


def _entropy_terms(total: int) -> FloatArray:
    share = np.arange(total + 1) / total
    return -share * np.log(np.where(share > 0, share, 1.0))


STATISTICS: Mapping[str, Callable[[int], FloatArray]] = MappingProxyType(
    {"entropy": _entropy_terms, "oracle_tvd": half_split_terms}
)
"""Every statistic -> its terms by count, for a number of answers."""


def target_surprisal(counts: WordCounts, target: NDArray[np.int64]) -> FloatArray:
    """Surprisal of each context's word, nats, (context,); NaN where there is no word (a negative code) or no answer.

    Examples
    --------
    >>> words = cloze.study_words(cloze.examples.cloze_study(), human="none", model="none", corpus="none", models=[])
    >>> cloze.target_surprisal(words.answers(), words.target).shape
    (12,)
    """
    wanted = np.asarray(target)
    if wanted.shape != (counts.n_contexts,):
        raise InputError(f"has shape {wanted.shape}, the counts have {counts.n_contexts} contexts", field="target")
    hit = counts.word == wanted[counts.context]
    k = np.bincount(counts.context[hit], weights=counts.count[hit], minlength=counts.n_contexts)
    n = counts.totals
    with np.errstate(divide="ignore"):
        surprisal: FloatArray = -np.log((k + 0.5) / (n + 1))
    return np.where((wanted >= 0) & (n > 0), surprisal, np.nan)
