r"""Bridge sampling: a normalising constant from draws of both distributions.

People's free answers are draws of h itself. With :math:`n_g` draws of the generator, :math:`n_h` answers, and
:math:`r(x) = h(x|c)/h(y|c)` known of both, :math:`Z = \sum_x r(x) = 1/h(y|c)` is the ratio of the normalising constants
of r and g, and the bridge of least variance (Bennett 1976; Meng & Wong 1996) is the fixed point of

.. math:: Z = \frac{\frac1{n_g} \sum_{x \sim g} r / (s_g\, g Z + s_h\, r)}
                   {\frac1{n_h} \sum_{x \sim h} g / (s_g\, g Z + s_h\, r)}, \qquad s_k = \frac{n_k}{n_g + n_h}.

With :math:`u = \ln r(x) - \ln g(x)` and :math:`P_h = \mathrm{logistic}(u - \ln Z + \ln(n_h / n_g))`, the probability
that a token comes from h, given that it is one of the sample, this says :math:`\sum_{\mathrm{all}} P_h = n_h` (reverse
logistic regression, Geyer 1994): the left side falls with ln Z, so that there is one root, between the smallest and the
largest u of the item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.display import Result
from estimators.errors import InputError

__all__ = ["BridgeMeans", "bridge_log_means"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_MAX_STEPS = 200  # a bisection of 1e3 nats needs 60 to reach the last bit
_TOLERANCE_NATS = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class BridgeMeans(Result):
    r"""Bridge estimate of ln Z for every item that has draws of both kinds.

    Attributes
    ----------
    label : ndarray, shape (item,)
        Labels of the items, sorted.
    value : ndarray, shape (item,)
        ln Z, nats (the loss gap where the log-weights have the term ln g(y)).
    se : ndarray, shape (item,)
        Asymptotic standard error of drawing and answering, nats (Meng & Wong 1996):
        :math:`\mathrm{se}^2 = \frac{n_g + n_h}{n_g n_h} (\frac1O - 1)`. Infinite without overlap.
    overlap : ndarray, shape (item,)
        :math:`O = \sum_x \frac{g(x)\, h(x)}{s_g g(x) + s_h h(x)}`, estimated by the mean of
        :math:`P_h (1 - P_h) / (s_g s_h)`: 1 where the two distributions are one, 0 where no token can come from both.
    n_drawn, n_answered : ndarray of int, shape (item,)
    item : ndarray of int, shape (draw,)
        Position in ``label`` of every draw's item, in the order given; -1 where the item has one kind of draws only.
    p_answer : ndarray, shape (draw,)
        P_h of every draw, in the order given; NaN where the item has one kind of draws only.
    n_one_sided : int
        Items left out, which have draws of one kind only.

    Examples
    --------
    >>> from estimators import comparison
    >>> comparison.bridge_log_means([0.3, -0.2, 0.9, 0.1], item=[0, 0, 0, 0], answered=[False, False, True, True])
    BridgeMeans(1 items, mean 0.2723 nats, median overlap 0.96)
    """

    made_by = "bridge_log_means(log_weight, item, answered)"

    label: NDArray[Any]
    value: FloatArray
    se: FloatArray
    overlap: FloatArray
    n_drawn: IntArray
    n_answered: IntArray
    item: IntArray
    p_answer: FloatArray
    n_one_sided: int

    def headline(self) -> str:
        """Items, their mean, and the overlap of the middle one."""
        return (
            f"{self.label.size} items, mean {self.value.mean():.4g} nats, median overlap {np.median(self.overlap):.2f}"
        )


def bridge_log_means(log_weight: ArrayLike, item: ArrayLike, answered: ArrayLike) -> BridgeMeans:
    """Estimate ln Z of every item by the bridge of least variance (array layer).

    Parameters
    ----------
    log_weight : array_like of float, shape (draw,)
        u = ln r(x) - ln g(x), nats, of the draws of g and of the answers. A constant of the item, such as ln g(y), adds
        to its ln Z. Where several proposals were used, g is their mixture
        (:func:`~estimators.comparison.importance.mixture_logprob`).
    item : array_like, shape (draw,)
        Label of the item, integers or strings.
    answered : array_like of bool, shape (draw,)
        Whether it is an answer, a draw of h.

    Returns
    -------
    BridgeMeans

    Raises
    ------
    InputError
        If shapes disagree, a log-weight is not finite, or no item has both draws and answers.

    Examples
    --------
    h = (.8, .2), g = (.5, .5), y the first token: Z is 1.25. Draws in just these shares give it exactly:

    >>> import numpy as np
    >>> from estimators import comparison
    >>> u = np.log([1 / 0.5, 0.25 / 0.5])
    >>> tokens = [0, 1, 0, 0, 0, 0, 1]
    >>> means = comparison.bridge_log_means(u[tokens], [7] * 7, [False] * 2 + [True] * 5)
    >>> np.exp(means.value).round(6)
    array([1.25])
    """
    u, labels, is_answer = np.asarray(log_weight, dtype=float), np.asarray(item), np.asarray(answered)
    for name, values in (("item", labels), ("answered", is_answer)):
        if u.ndim != 1 or values.shape != u.shape:
            raise InputError(f"has shape {values.shape}, log_weight {u.shape}; both should be (draw,)", field=name)
    if is_answer.dtype.kind != "b":
        raise InputError(f"has dtype {is_answer.dtype}, should be bool", field="answered")
    if not np.isfinite(u).all():
        first = int(np.flatnonzero(~np.isfinite(u))[0])
        raise InputError(f"is {u[first]} at draw {first}; should be finite", field="log_weight")
    label, code = np.unique(labels, return_inverse=True)
    n_answered = np.bincount(code[is_answer], minlength=label.size)
    n_drawn = np.bincount(code[~is_answer], minlength=label.size)
    both = (n_answered > 0) & (n_drawn > 0)
    if not both.any():
        raise InputError(
            "no item has both draws and answers; a bridge needs draws from both its ends", field="answered"
        )
    position = np.where(both, np.cumsum(both) - 1, -1)[code]
    used = position >= 0
    at, n_g, n_h = position[used], n_drawn[both], n_answered[both]
    value = _root(u[used], at, is_answer[used], n_g, n_h)
    chance = _logistic(u[used] - (value - np.log(n_h / n_g))[at])
    # over the draws of both kinds: draws of g alone could overlap with what nobody answers
    shared = np.bincount(at, chance * (1 - chance), minlength=n_h.size)
    overlap = np.minimum(shared * (n_g + n_h) / (n_g * n_h), 1.0)
    p_answer = np.full(u.shape, np.nan)
    p_answer[used] = chance
    with np.errstate(divide="ignore"):
        se = np.sqrt((1 / overlap - 1) * (n_g + n_h) / (n_g * n_h))
    # of one draw and one answer of the same weight nothing says how they vary
    se[(n_g + n_h == 2) & (overlap == 1)] = np.nan
    return BridgeMeans(
        label=label[both],
        value=value,
        se=se,
        overlap=overlap,
        n_drawn=n_g,
        n_answered=n_h,
        item=position,
        p_answer=p_answer,
        n_one_sided=int((~both).sum()),
    )


def _root(u: FloatArray, item: IntArray, answered: NDArray[np.bool_], n_g: IntArray, n_h: IntArray) -> FloatArray:
    """Root of sum P_h = n_h of all items at once: Newton steps, and a bisection where one would leave the bracket."""
    size = n_g.size
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, item, u)
    np.maximum.at(high, item, u)
    shift = np.log(n_h / n_g)
    z: FloatArray = (low + high) / 2
    for _ in range(_MAX_STEPS):
        x = u - (z - shift)[item]
        chance, other = _logistic(x), _logistic(-x)
        # sum P_h = n_h, without the ones that cancel: what the draws give to h is what the answers give to g
        drawn = np.bincount(item, np.where(answered, 0.0, chance), minlength=size)
        given = np.bincount(item, np.where(answered, other, 0.0), minlength=size)
        low, high = np.where(drawn >= given, z, low), np.where(drawn <= given, z, high)
        product = chance * other
        slope_drawn = np.bincount(item, np.where(answered, 0.0, product), minlength=size)
        slope_given = np.bincount(item, np.where(answered, product, 0.0), minlength=size)
        # on the log scale the equation is nearly straight, however far the draws are from the answers
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = z + (np.log(drawn) - np.log(given)) / (slope_drawn / drawn + slope_given / given)
        # also where everything underflows: nothing overlaps
        step = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        moved = np.abs(step - z)
        z = step
        if (moved <= _TOLERANCE_NATS * np.maximum(1, np.abs(z))).all():
            break
    return z


def _logistic(x: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)) without overflow."""
    small = np.exp(-np.abs(x))
    chance: FloatArray = np.where(x >= 0, 1.0, small) / (1 + small)
    return chance
