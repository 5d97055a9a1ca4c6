"""Calibration of every word's probability, not only of the most probable one (class-wise and pooled)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.cloze.calibration_error import equal_width_bins
from shannon_game.estimators.cloze.distributions import Distributions
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class ClasswiseError(Result):
    """Calibration error over all words.

    Parameters
    ----------
    total : float
        Sum over words of their calibration errors, from 0 to 2.
    mean : float
        The same over the number of words: the static calibration error of Nixon et al. (2019).
    pooled : float
        With one set of bins for all words, a sum over bins from 0 to 2.
    n_words : int
        Words that have a probability or are the gold label somewhere.
    """

    total: float
    mean: float
    pooled: float
    n_words: int
    n_contexts: int


def classwise_calibration_error(cpd: Distributions, gold: ArrayLike, *, n_bins: int = 10) -> ClasswiseError:
    r"""Calibration error of the probabilities of all words, in bins of equal width (Nixon et al. 2019).

    For word w and bin b, :math:`|\sum_{i \in b} (p_i(w) - 1[y_i = w])| / N` over the contexts whose p(w) is in the bin;
    summed over bins and words. In most contexts most words have no probability and are not the gold label: they add
    nothing, so that the mean over words falls as the vocabulary grows, and the sum does not. `gold`, (context,), has
    the code of each context's gold label, negative where there is none.

    Examples
    --------
    >>> both = cloze.Distributions(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0.8, 0.2] * 2), 2)
    >>> round(cloze.classwise_calibration_error(both, [0, 1]).total, 2)
    0.6
    """
    Distributions.require(cpd=cpd)
    label = np.asarray(gold)
    if label.shape != (cpd.n_contexts,):
        raise InputError(f"has shape {label.shape}, should be {(cpd.n_contexts,)}", field="gold")
    check_numbers({"n_bins": n_bins}, at_least=1)
    used = (np.bincount(cpd.context, minlength=cpd.n_contexts) > 0) & (label >= 0)
    n = int(used.sum())
    if not n:
        raise InputError("has no context with a distribution and a gold label", field="cpd or gold")
    rows = used[cpd.context]
    context, word, probability = cpd.context[rows], cpd.word[rows], cpd.probability[rows].astype(float)
    right = word == label[context]
    # a gold label without probability is in the first bin
    missed = np.setdiff1d(np.flatnonzero(used), context[right])
    word = np.concatenate([word, label[missed]])
    off = np.concatenate([probability - right, np.full(len(missed), -1.0)])
    which = equal_width_bins(np.concatenate([probability, np.zeros(len(missed))]), n_bins)
    words, code = np.unique(word, return_inverse=True)
    sums = np.bincount(code * n_bins + which, weights=off, minlength=len(words) * n_bins)
    total = float(np.abs(sums).sum() / n)
    pooled = float(np.abs(np.bincount(which, weights=off, minlength=n_bins)).sum() / n)
    return ClasswiseError(total, total / len(words), pooled, len(words), n)
