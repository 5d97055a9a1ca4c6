r"""Mean over contexts that were asked about with unequal, recorded probabilities.

At step t a context c is chosen with probability :math:`\pi_t(c) > 0` that depends on what was answered before, and its
answer :math:`X_t` has the mean :math:`\mu(c)`. With a prediction :math:`m_t` made before the answer,

.. math:: \phi_t = \frac1N \sum_c m_t(c) + \frac{X_t - m_t(c_t)}{N\, \pi_t(c_t)}

has the mean :math:`\frac1N \sum_c \mu(c)` whatever came before (augmented inverse probability weighting, Robins,
Rotnitzky & Zhao 1994): however contexts are chosen, the mean of the :math:`\phi_t` is unbiased at every step. The
choice with the least variance is proportional to the deviation of answers from their prediction (Neyman 1934).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError

_RIDGE = 1.0  # square of a feature's slope, in units of the answers' variance, that one answer outweighs
_LEAST_DEVIATION = 0.25  # of a context's answer, in units of the mean: no context is taken for known


def context_choice(
    features: ArrayLike, asked: ArrayLike, value: ArrayLike, *, floor: float = 0.2
) -> tuple[FloatArray, FloatArray]:
    """Predict every context's answer, and say with which probability it should be asked about next.

    Parameters
    ----------
    features : array_like, shape (context, feature)
        What is known of every context beforehand, such as a language model's loss and entropy.
    asked, value : array_like, shape (answer,)
        Contexts that were asked about, and their answers.
    floor : float
        Share of the probability that is the same for all contexts; above 0, at most 1.

    Returns
    -------
    probability, predicted : ndarray, shape (context,)

    Raises
    ------
    InputError
        If shapes disagree, the floor is out of its range, or there is no answer.

    Examples
    --------
    >>> from shannon_game.estimators import documents
    >>> features = np.array([[0.0], [0.0], [1.0], [1.0]])
    >>> probability, predicted = documents.context_choice(features, [0, 1, 2, 3] * 5, [1, 1, 0, 4] * 5)
    >>> bool(probability[3] > probability[0]), round(float(probability.sum()), 9)
    (True, 1.0)
    """
    x, place, answers = np.asarray(features, dtype=float), np.asarray(asked), np.asarray(value, dtype=float)
    if x.ndim != 2 or place.ndim != 1 or answers.shape != place.shape or not place.size:
        raise InputError(
            f"have shapes {x.shape}, {place.shape}, {answers.shape}; should be (context, feature), and (answer,) twice",
            field="features, asked, value",
        )
    if not 0 < floor <= 1:
        raise InputError(f"is {floor}, should be above 0 and at most 1", field="floor")
    spread = x.std(axis=0)
    scaled = np.where(spread > 0, (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0), 0.0)
    design = np.column_stack([np.ones(len(x)), scaled])
    predicted = design @ _ridge(design[place], answers)
    deviation = np.abs(answers - predicted[place])
    expected = design @ _ridge(design[place], deviation)
    expected = np.maximum(expected, _LEAST_DEVIATION * max(float(deviation.mean()), 1e-12))
    probability = floor / len(x) + (1 - floor) * expected / expected.sum()
    return probability, predicted


def chosen_context_terms(
    value: ArrayLike, probability: ArrayLike, predicted: ArrayLike, predicted_mean: ArrayLike, n_contexts: int
) -> FloatArray:
    """Terms whose :func:`crossed_mean` is the mean over all contexts, one an answer.

    Parameters
    ----------
    value, probability, predicted, predicted_mean : array_like, shape (answer,)
        The answer; with which probability its context was chosen; what was predicted for it, and on average for all
        contexts, before it came.
    n_contexts : int
        All contexts that could have been chosen.

    Raises
    ------
    InputError
        If shapes disagree or a probability is not between 0 and 1.

    Examples
    --------
    >>> from shannon_game.estimators import documents
    >>> documents.chosen_context_terms([2.0], [0.5], [1.0], [1.5], n_contexts=2)
    array([2.5])
    """
    x, p, m, whole = (np.asarray(each, dtype=float) for each in (value, probability, predicted, predicted_mean))
    if x.ndim != 1 or not p.shape == m.shape == whole.shape == x.shape:
        raise InputError(f"have shapes {x.shape}, {p.shape}, {m.shape}, {whole.shape}; should be one", field="value")
    if not ((p > 0) & (p <= 1)).all():
        raise InputError("should be above 0 and at most 1", field="probability")
    terms: FloatArray = whole + (x - m) / (n_contexts * p)
    return terms


def _ridge(design: FloatArray, values: FloatArray) -> FloatArray:
    """Least squares with a small ridge on all but the mean."""
    penalty: FloatArray = _RIDGE * np.eye(design.shape[1])
    penalty[0, 0] = 0.0
    return np.asarray(np.linalg.solve(design.T @ design + penalty, design.T @ values), dtype=float)
