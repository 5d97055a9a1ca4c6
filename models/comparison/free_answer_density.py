r"""Log-density of the model of free answers and its gradient, written out; see :mod:`models.comparison.kernels`.

The model is that of :func:`models.comparison.free_answers.free_answer_model`, which stays the statement of it: tests
compare the two. Parameters are turned so that chains move fast whether data say much or little. With z the standard
normal of a residual, v its log-ratio before the item's level, m the mean of the participants' biases, and a number c
from 0, where data say nothing, to 1, a target has the parameter :math:`y = (1 - c) z + c (v_y + m)` and another token
:math:`y = (1 - c) z + c (v_x - v_y - m)`: reports know the difference, and little of its parts. Ln noise of a
participant is :math:`\mu + s z` and has :math:`y = s^c z + c \mu` (Papaspiliopoulos, Roberts and Skold 2007, *A general
framework for the parametrization of hierarchical models*). ``slope_turned`` is ln slope, nearly, whose mean is ln k0;
``bias_turned`` is :math:`\sinh^{-1}(k\, \mathrm{bias\_unit})`, with k the slope before it is centred, as in
:mod:`models.comparison.participant_density`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from dataclasses import astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.comparison.free_answer_data import FreeAnswerData
from models.comparison.free_answers import NO_ANSWERS, NODE, WEIGHT, FreeAnswerPriors, draws_missed, spread_of
from models.comparison.kernels import (
    FREE_ANSWER_NUMBERS,
    free_answer_log_density,
    free_answer_moves,
    free_answer_people,
    free_answer_ratios,
)
from models.comparison.participants import FAR, ParticipantPriors
from models.density import WrittenDensity

__all__ = ["TYPICAL", "free_answer_density", "layout"]

FloatArray = NDArray[np.float64]

_LOGARITHMS = FREE_ANSWER_NUMBERS[FREE_ANSWER_NUMBERS.index("narrow") : FREE_ANSWER_NUMBERS.index("half")]

TYPICAL = (
    *("slope", "noise", "divergence", "narrow", "upper", "lower", "spread_slope"),
    *("target_upper", "target_lower"),
)
"""Variables of the model that say how parameters are best turned."""

# Numba takes named tuples as they are
_Pools = namedtuple(
    "_Pools",
    "target_log_g token_item token_log_g log_g log_n_answers log_n_entry not_drawn "
    "bin_log_mass bin_log_g node weight centring noise_centring "
    "row_participant row_token row_reference first_token first_row row_of n_participants edges half_box",
)
_OF_BELIEF = [field.name for field in fields(FreeAnswerPriors) if field.name != "people"]
_Priors = namedtuple("_Priors", _OF_BELIEF)  # type: ignore[misc]
_People = namedtuple("_People", [field.name for field in fields(ParticipantPriors)])  # type: ignore[misc]


def free_answer_density(
    data: FreeAnswerData,
    priors: FreeAnswerPriors | None = None,
    *,
    equation_6: bool = False,
    typical: Mapping[str, Any] | None = None,
) -> WrittenDensity:
    """Log-density of :func:`~models.comparison.free_answers.free_answer_model`, for any answers and reports.

    Parameters
    ----------
    data : FreeAnswerData
    priors : FreeAnswerPriors, optional
    equation_6 : bool
    typical : mapping of str to float or ndarray, optional
        About which values the variables :data:`TYPICAL` have; they say how parameters are turned, and the density is
        the same. By default the middle of the priors.

    Returns
    -------
    WrittenDensity
        It reads answers and reports from the model's data: ``token_count``, ``target_count`` and ``row_box``.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import designed_study
    >>> from models.comparison.free_answer_density import free_answer_density
    >>> data = models.free_answer_data(designed_study())
    >>> density = free_answer_density(data)
    >>> given = {"token_count": data.token_answers, "target_count": data.target_answers, "row_box": data.row_box}
    >>> value, gradient = density.evaluate(density.start, **given)
    >>> gradient.shape == density.start.shape
    True
    """
    p = priors or FreeAnswerPriors()
    known = _Priors(*(float(getattr(p, name)) for name in _OF_BELIEF))
    people, pools = _People(*map(float, astuple(p.people))), _pools(data, _centring(data, p, typical or {}))
    where = layout(data.item.size, data.token_item.size, data.participant.size, equation_6=equation_6)

    def arguments(**values: Any) -> tuple[Any, ...]:
        counts = (np.asarray(values[name], dtype=np.int64) for name in ("token_count", "target_count", "row_box"))
        return pools, known, people, *counts

    def expand(x: FloatArray, **_: Any) -> dict[str, FloatArray]:
        return _expanded(x, where, pools)

    names_read = ("token_count", "target_count", "row_box")
    start = _start(p, where)
    return WrittenDensity(
        start, free_answer_log_density, arguments, expand, names_read, jitter=0.2, moves=free_answer_moves
    )


def layout(n_items: int, n_tokens: int, n_participants: int, *, equation_6: bool = False) -> dict[str, slice]:
    """Where every parameter stands in the vector."""
    sizes = dict.fromkeys(FREE_ANSWER_NUMBERS, 1)
    sizes |= dict.fromkeys(("level_unit", "divergence_unit", "target_turned"), n_items) | {"residual_turned": n_tokens}
    sizes |= dict.fromkeys(("slope_turned", "bias_turned", "noise_turned", "lapse_unit"), n_participants)
    if equation_6:
        sizes["generator_weight"] = 1
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}


def _pools(data: FreeAnswerData, centring: tuple[FloatArray, FloatArray]) -> Any:
    """What the density needs of a study beside answers and reports, as Numba takes it."""

    def plain(array: NDArray[Any]) -> FloatArray:
        return np.ascontiguousarray(array, dtype=np.float64)

    def places(array: NDArray[Any]) -> NDArray[np.int64]:
        return np.ascontiguousarray(array, dtype=np.int64)

    entry = np.where(data.n_entry > 0, np.log(np.maximum(data.n_entry, 1)), NO_ANSWERS)
    return _Pools(
        plain(data.target_log_g),
        places(data.token_item),
        plain(data.token_log_g),
        plain(data.log_g),
        plain(np.log(data.n_answers)),
        plain(entry),
        plain(draws_missed(data)),
        plain(data.bin_log_mass),
        plain(data.bin_log_g),
        NODE,
        WEIGHT,
        *centring,
        places(data.row_participant),
        places(data.row_token),
        places(data.row_reference),
        *_places_of(data),
        int(data.participant.size),
        plain(np.clip(data.box_edges, -FAR, FAR)),
        int(data.half_box),
    )


def _places_of(data: FreeAnswerData) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where tokens of every item start, and reports on every target and token; those reports in turn."""
    first_token = np.searchsorted(data.token_item, np.arange(data.item.size + 1))
    ends = np.concatenate([data.row_token, data.row_reference])
    order = np.argsort(ends, kind="stable")
    first_row = np.searchsorted(ends[order], np.arange(data.log_g.size + 1))
    row = order % max(data.row_token.size, 1)
    return first_token.astype(np.int64), first_row.astype(np.int64), row.astype(np.int64)


def _centring(data: FreeAnswerData, p: FreeAnswerPriors, typical: Mapping[str, Any]) -> tuple[FloatArray, FloatArray]:
    """How much data say of every residual (targets, then tokens) and of every participant's noise, from 0 to 1."""
    shape = {"narrow": p.spread_median, "upper": 0.2, "lower": 0.2, "spread_slope": 0.0}
    shape |= {"target_upper": p.spread_median, "target_lower": p.spread_median}
    slope, noise, scale = 1.0, p.people.noise_median, np.ones(data.item.size)
    if typical:
        shape = {name: float(typical[name]) for name in shape}
        slope, noise, scale = typical["slope"], typical["noise"], typical["divergence"]
    certainty: FloatArray = np.square(np.divide(slope, noise, dtype=float))
    precision = np.broadcast_to(certainty, data.participant.size)[data.row_participant]
    n = data.log_g.size
    known = np.bincount(data.row_reference, precision, n) + np.bincount(data.row_token, precision, n)
    own = shape["narrow"] + (shape["upper"] + shape["lower"]) / 4
    spread = np.concatenate(
        [
            scale * (shape["target_upper"] + shape["target_lower"]) / 2,
            scale[data.token_item] * own * spread_of(data.token_log_g, shape["spread_slope"]),
        ]
    )
    rows = np.bincount(data.row_participant, minlength=data.participant.size)
    return _share_known(known * spread**2), _share_known(2.0 * rows * p.people.noise_spread**2)


def _share_known(ratio: NDArray[np.floating[Any]]) -> FloatArray:
    share: FloatArray = np.asarray(ratio / (1 + ratio), dtype=float)
    return share


def _start(p: FreeAnswerPriors, where: dict[str, slice]) -> FloatArray:
    """Near the middle of the priors."""
    x = np.zeros(next(reversed(where.values())).stop)
    for name in ("narrow", "target_upper", "target_lower"):
        x[where[name]] = np.log(p.spread_median)
    for name, scale in (("upper", p.tail), ("lower", p.tail), ("level_spread", p.level_spread)):
        x[where[name]] = np.log(0.3 * scale)
    x[where["divergence_spread"]] = np.log(0.5 * p.divergence_spread)
    people = p.people
    for name in ("slope_spread", "bias_spread", "noise_spread", "lapse_spread"):
        x[where[name]] = np.log(getattr(people, name))
    x[where["log_noise"]] = x[where["noise_turned"]] = np.log(people.noise_median)
    x[where["logit_lapse"]] = np.log(people.lapse_median / (1 - people.lapse_median))
    return x


def _expanded(x: FloatArray, where: dict[str, slice], q: Any) -> dict[str, FloatArray]:
    """Values of the model's variables at a vector of parameters, deterministic ones too."""
    plain = [name for name in where if "_turned" not in name]
    found: dict[str, Any] = {name: x[where[name]] for name in plain}
    found |= {name: x[where[name].start] for name in (*FREE_ANSWER_NUMBERS, "generator_weight") if name in plain}
    found |= {name: np.exp(found[name]) for name in _LOGARITHMS}
    found["half"] = 1 / (1 + np.exp(-found["half"]))
    slopes = where["slope_turned"]
    found["log_k0"] = x[slopes].mean()
    found["k0"] = np.exp(found["log_k0"])
    people = free_answer_people(x, slopes.start, q.n_participants, q.noise_centring)
    names = ("slope", "bias", "noise", "lapse", "bias_unit", "steepness", "slope_unit", "noise_unit")
    found |= dict(zip(names, people, strict=True))
    del found["steepness"]
    found["slope_unit"] = found["slope_unit"] / found["slope_spread"]
    ratio, unit, of_items, _ = free_answer_ratios(x, found["bias"].mean(), q)
    found["target_unit"], found["residual_unit"] = np.split(unit, [q.target_log_g.size])
    target, token = np.split(ratio, [q.target_log_g.size])
    found["divergence"], found["item_level"] = of_items[0], of_items[3]
    found["item_gap_nats"] = -(target + of_items[3])
    found["token_log_ratio"] = token + of_items[3][q.token_item]
    return found
