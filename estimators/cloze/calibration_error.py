"""Expected calibration error of the most probable word, with the gold labels and bins of "Predict the Next Word"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.cloze.distributions import TopWords, WordCounts
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice

BINNINGS = ("fixed", "adaptive", "legacy")

# a confidence so near below an edge is on it: single precision of 7/10 is below .7
_ON_EDGE = 1e-7


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationError(Result):
    """Expected calibration error and the bins behind it.

    Parameters
    ----------
    ece : float
        sum_b (n_b / N) abs(accuracy_b - confidence_b).
    confidence, accuracy, count : ndarray, shape (bin,)
        Means in each bin, NaN in an empty one; and number.
    edges : ndarray of float, shape (bin + 1,)
    n_lost : int
        Predictions that no bin takes though they count in N (legacy bins lose a confidence of 1).
    """

    ece: float
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    count: NDArray[np.int64]
    edges: NDArray[np.float64]
    n: int
    n_lost: int


def expected_calibration_error(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: Literal["fixed", "adaptive", "legacy"] = "fixed",
    n_bins: int = 10,
) -> CalibrationError:
    """Expected calibration error (Naeini et al. 2015; Guo et al. 2017).

    Parameters
    ----------
    confidence : array_like of float, shape (prediction,)
        Probability of the word predicted; NaN is left out with its prediction.
    correct : array_like of float, shape (prediction,)
        Whether the word is the gold label; a share where several words tie (see :func:`share_correct`).
    bins : {"fixed", "adaptive", "legacy"}, optional
        Equal widths, [i/n, (i+1)/n) and the last one closed; equal numbers of predictions: bin i begins with the
        confidence at place floor(i N / n) of the sorted ones (equal confidences share a bin); or the paper's code:
        equal widths, the last one open, edges by repeated floating-point sums, confidences in single precision.

    Examples
    --------
    >>> round(cloze.expected_calibration_error([0.2, 0.3, 0.8, 0.9], [0, 1, 1, 1], n_bins=2).ece, 3)
    0.2
    """
    sure, right = np.asarray(confidence, dtype=float), np.asarray(correct, dtype=float)
    if sure.shape != right.shape or sure.ndim != 1:
        raise InputError(f"has shape {right.shape}, the confidences {sure.shape}", field="correct")
    if bins not in BINNINGS:
        raise unknown_choice("binning", bins, BINNINGS)
    check_numbers({"n_bins": n_bins}, at_least=1)
    kept = ~np.isnan(sure)
    sure, right = sure[kept], right[kept]
    if not len(sure):
        raise InputError("holds no prediction", field="confidence")
    if (sure < 0).any() or (sure > 1).any():
        worst = sure[np.argmax(np.abs(sure - 0.5))]
        raise InputError(f"holds {worst}, should be probabilities", field="confidence")
    if bins == "legacy":
        sure = sure.astype(np.float32).astype(float)
        lower = np.arange(0, 1, 1 / n_bins)
        member = (sure[:, None] >= lower) & (sure[:, None] < lower + 1 / n_bins)
        which = np.where(member.any(axis=1), member.argmax(axis=1), -1)
        edges = np.append(lower, lower[-1] + 1 / n_bins)
    elif bins == "fixed":
        edges = np.arange(n_bins + 1) / n_bins
        which = equal_width_bins(sure, n_bins)
    else:
        starts = np.sort(sure)[np.arange(n_bins) * len(sure) // n_bins]
        # what differs by rounding alone is equal
        starts = starts[np.diff(starts, prepend=-1) > _ON_EDGE]
        edges = np.append(starts, sure.max())
        which = np.clip(np.searchsorted(starts, sure + _ON_EDGE, side="right") - 1, 0, None)
    n_found = len(edges) - 1
    inside = which >= 0
    count = np.bincount(which[inside], minlength=n_found)
    means = [
        np.divide(
            np.bincount(which[inside], weights=values[inside], minlength=n_found),
            count,
            out=np.full(n_found, np.nan),
            where=count > 0,
        )
        for values in (sure, right)
    ]
    gaps = np.abs(means[0] - means[1])
    ece = float(np.sum(np.where(count > 0, gaps, 0.0) * count) / len(sure))
    return CalibrationError(ece, means[0], means[1], count, edges, len(sure), int((~inside).sum()))


def equal_width_bins(probability: NDArray[np.float64], n_bins: int) -> NDArray[np.intp]:
    """Which of the bins [i/n, (i+1)/n), the last one closed, each probability is in."""
    return np.clip(((probability + _ON_EDGE) * n_bins).astype(np.intp), 0, n_bins - 1)


def share_correct(
    counts: WordCounts, top: TopWords, gold_counts: WordCounts, gold: TopWords, *, ties: Literal["first", "average"]
) -> NDArray[np.float64]:
    """Whether each context's most probable word is the gold label, from both sides' counts and :func:`top_words`.

    Of ties, "first" takes the first of equally frequent words on either side, as the paper's code does, "average" the
    probability that the words agree when both are drawn at random from the tied ones.

    Examples
    --------
    >>> counts = cloze.count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)
    >>> top = cloze.top_words(counts)
    >>> cloze.share_correct(counts, top, counts, top, ties="average")
    array([1. , 0.5])
    """
    if ties not in ("first", "average"):
        raise unknown_choice("ties", ties, ("first", "average"))
    WordCounts.require(counts=counts, gold_counts=gold_counts)
    TopWords.require(top=top, gold=gold)
    missing = (top.word < 0) | (gold.word < 0)
    if ties == "first":
        return np.where(missing, np.nan, (top.word == gold.word).astype(float))
    width = int(max(counts.word.max(initial=0), gold_counts.word.max(initial=0))) + 1
    mine = counts.context[top.is_top] * width + counts.word[top.is_top]
    theirs = gold_counts.context[gold.is_top] * width + gold_counts.word[gold.is_top]
    shared = np.bincount(np.intersect1d(mine, theirs, assume_unique=True) // width, minlength=counts.n_contexts)
    # 0 / 0 where one side has no answer
    with np.errstate(invalid="ignore"):
        return np.where(missing, np.nan, shared / (top.n_tied * gold.n_tied))
