r"""Surprisal of the word that came, from counts of answers.

With :math:`k` of :math:`n` answers that are the word

.. math:: s = -\ln \frac{k + 1/2}{n + 1}

nats: the mean of the posterior of its probability under Jeffreys' prior, so that a word that nobody gave has a
surprisal, :math:`\ln(2n + 2)`, and the same word has more of it the more people were asked.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estimators.cloze.distributions import WordCounts
from estimators.errors import InputError

__all__ = ["target_surprisal"]


def target_surprisal(counts: WordCounts, target: NDArray[np.int64]) -> NDArray[np.float64]:
    """Surprisal of each context's word, nats, (context,); NaN where there is no word (a negative code) or no answer.

    Raises
    ------
    InputError
        If there are other numbers of contexts.

    Examples
    --------
    >>> from estimators import cloze
    >>> from estimators.cloze.examples import cloze_study
    >>> words = cloze.study_words(cloze_study(), human="none", model="none", corpus="none", models=[])
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
        surprisal: NDArray[np.float64] = -np.log((k + 0.5) / (n + 1))
    return np.where((wanted >= 0) & (n > 0), surprisal, np.nan)
