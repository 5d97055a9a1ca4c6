r"""Mixtures of sources that predict the same words: weights by maximum likelihood, and losses of held-out words.

A word that came has probability :math:`q_k` under source k. The mixture gives it
:math:`\sum_k w_k q_k`, with weights that are at least 0 and sum to 1. The mean log-probability is concave in the
weights, so that expectation maximisation,

.. math:: w_k \leftarrow \frac{1}{n} \sum_i \frac{w_k q_{ik}}{\sum_j w_j q_{ij}},

finds its maximum. One source has to give every word some probability (a uniform one does), or a word that no source
knows has an infinite loss. Weights that are fitted to the words whose loss is told make the loss too small: they are
fitted to the other groups (texts), one group left out at a time. Where the other groups do without a source its weight
is 0, and the loss of a word that it alone knows infinite.

Source: F. Jelinek and R. Mercer (1980), Interpolated estimation of Markov source parameters from sparse data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError

_LARGEST = 50.0
"""Logarithm of the largest factor of a step."""
_MOST_STEPS = 100_000
_NEARLY_NONE = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutMixture(Result):
    """A mixture whose weights never saw the words that it is judged by.

    Attributes
    ----------
    loss_nats : ndarray, shape (word,)
        -ln of the mixture's probability, with the weights of the other groups; infinite where these leave it none.
    weights : ndarray, shape (group, source)
        Weights without each group.
    groups : ndarray, shape (group,)
    """

    loss_nats: FloatArray
    weights: FloatArray
    groups: NDArray[np.str_]


def mixture_weights(probability: ArrayLike, *, tolerance: float = 1e-7) -> FloatArray:
    """Weights, (source,), with the highest mean log-probability of the words that came, to `tolerance` nats."""
    q = _checked(probability)
    weights, growth = _best(q, np.full(q.shape[1], 1 / q.shape[1]), tolerance)
    # steps come near a weight of 0 and never there; without the source it must not be missed
    kept: FloatArray = np.where((growth < 1) & (weights < _NEARLY_NONE), 0, weights)
    if ((q @ kept) > 0).all():
        kept, growth = _best(q, kept / kept.sum(), tolerance)
        if (growth[kept == 0] < 1).all():
            return kept
    return weights


def _best(q: FloatArray, weights: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """Best weights of the sources that have one, and by how much a step of power 1 would multiply each."""
    power = 1.0
    for _ in range(_MOST_STEPS):
        growth = (q / (q @ weights)[:, None]).mean(axis=0)
        # the mean log-probability of any weights is at most ln max(growth) above that of these
        largest = float(np.log(growth[weights > 0].max()))
        if largest < tolerance:
            break
        # a step of power 1 is always right, and far too short where sources are nearly alike
        moved = weights * growth**power
        moved /= moved.sum()
        if power > 1 and not np.log(q @ moved).mean() > np.log(q @ weights).mean():
            power = 1.0
            continue
        weights, power = moved, min(2 * power, max(1.0, _LARGEST / largest))
    return weights, growth


def held_out_mixture(probability: ArrayLike, group: ArrayLike) -> HeldOutMixture:
    """Loss of every word under a mixture whose weights are fitted to the other groups, such as texts.

    `probability`, (word, source), is that of the word that came under every source, above 0 under one of them.

    Examples
    --------
    >>> found = cloze.held_out_mixture([[0.9, 0.1], [0.2, 0.2], [0.8, 0.1], [0.1, 0.3]], ["a", "a", "b", "b"])
    >>> found.loss_nats.round(2)
    array([0.44, 1.61, 0.22, 2.3 ])
    """
    q, label = _checked(probability), np.asarray(group)
    if label.shape != (len(q),):
        raise InputError(f"has shape {label.shape}, should be ({len(q)},) like the words", field="group")
    names, at = np.unique(label.astype(str), return_inverse=True)
    if len(names) < 2:
        raise InputError("is one for all words; weights need other groups than the one that is held out", field="group")
    weights = np.array([mixture_weights(q[at != number]) for number in range(len(names))])
    with np.errstate(divide="ignore"):
        loss = -np.log((q * weights[at]).sum(axis=1))
    return HeldOutMixture(loss_nats=loss, weights=weights, groups=names)


def _checked(probability: ArrayLike) -> FloatArray:
    q = np.asarray(probability, dtype=float)
    if q.ndim != 2 or not q.size:
        raise InputError(f"has shape {q.shape}, should be (word, source), neither empty", field="probability")
    if not (np.isfinite(q) & (q >= 0) & (q <= 1)).all():
        raise InputError("has a value that is no probability in [0, 1]", field="probability")
    if (q.max(axis=1) == 0).any():
        first = int(np.flatnonzero(q.max(axis=1) == 0)[0])
        problem = f"is 0 under every source at word {first}; give a source that knows every word, as a uniform one"
        raise InputError(problem, field="probability")
    return q
