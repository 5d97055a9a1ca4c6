r"""Log-density of the model of free answers and its gradient, written out; see :mod:`models.comparison.kernels`.

The model is that of :func:`models.comparison.free_answers.free_answer_model`, which stays the statement of it: tests
compare the two. Two parameters are others. ``target_turned`` is the target's log-ratio before the item's level, plus
the mean of the participants' biases: reports say much of this sum and little of its parts. ``bias_turned`` is
:math:`\sinh^{-1}(k\, \mathrm{bias\_unit})`, with k the slope before it is centred, as in
:mod:`models.comparison.participant_density`.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.comparison.free_answer_data import FreeAnswerData
from models.comparison.free_answers import NO_ANSWERS, FreeAnswerPriors, draws_missed, line_of
from models.comparison.kernels import (
    FREE_ANSWER_NUMBERS,
    free_answer_log_density,
    free_answer_people,
    free_answer_ratios,
)
from models.comparison.participants import FAR, ParticipantPriors
from models.density import WrittenDensity

__all__ = ["free_answer_density", "layout"]

FloatArray = NDArray[np.float64]

_LOGARITHMS = FREE_ANSWER_NUMBERS[FREE_ANSWER_NUMBERS.index("narrow") : FREE_ANSWER_NUMBERS.index("half")]

# Numba takes named tuples as they are
_Pools = namedtuple(
    "_Pools",
    "target_log_g token_item token_log_g log_g log_n_answers log_n_entry not_drawn bin_log_mass bin_log_g "
    "row_participant row_token row_reference n_participants edges half_box",
)
_Priors = namedtuple("_Priors", [field.name for field in fields(FreeAnswerPriors) if field.name != "people"])  # type: ignore[misc]
_People = namedtuple("_People", [field.name for field in fields(ParticipantPriors)])  # type: ignore[misc]


def free_answer_density(
    data: FreeAnswerData, priors: FreeAnswerPriors | None = None, *, equation_6: bool = False
) -> WrittenDensity:
    """Log-density of :func:`~models.comparison.free_answers.free_answer_model`, for any answers and reports.

    Parameters
    ----------
    data : FreeAnswerData
    priors : FreeAnswerPriors, optional
    equation_6 : bool

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
    known = _Priors(*(float(getattr(p, name)) for name in _Priors._fields))
    people, pools = _People(*map(float, astuple(p.people))), _pools(data)
    where = layout(data.item.size, data.token_item.size, data.participant.size, equation_6=equation_6)

    def arguments(**values: Any) -> tuple[Any, ...]:
        counts = (np.asarray(values[name], dtype=np.int64) for name in ("token_count", "target_count", "row_box"))
        return pools, known, people, *counts

    def expand(x: FloatArray, **_: Any) -> dict[str, FloatArray]:
        return _expanded(x, where, pools)

    names_read = ("token_count", "target_count", "row_box")
    start = _start(data, p, where)
    return WrittenDensity(start, free_answer_log_density, arguments, expand, names_read, jitter=0.2)


def layout(n_items: int, n_tokens: int, n_participants: int, *, equation_6: bool = False) -> dict[str, slice]:
    """Where every parameter stands in the vector."""
    sizes = dict.fromkeys(FREE_ANSWER_NUMBERS, 1)
    sizes |= dict.fromkeys(("level_unit", "divergence_unit", "target_turned"), n_items) | {"residual": n_tokens}
    sizes |= dict.fromkeys(("slope_unit", "bias_turned", "noise_unit", "lapse_unit"), n_participants)
    if equation_6:
        sizes["generator_weight"] = 1
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}


def _pools(data: FreeAnswerData) -> Any:
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
        places(data.row_participant),
        places(data.row_token),
        places(data.row_reference),
        int(data.participant.size),
        plain(np.clip(data.box_edges, -FAR, FAR)),
        int(data.half_box),
    )


def _start(data: FreeAnswerData, p: FreeAnswerPriors, where: dict[str, slice]) -> FloatArray:
    """Near the middle of the priors."""
    x = np.zeros(next(reversed(where.values())).stop)
    for name in ("narrow", "target_narrow"):
        x[where[name]] = np.log(p.spread_median)
    for name in ("broad", "level_spread", "divergence_spread"):
        x[where[name]] = np.log(0.5 * getattr(p, name))
    x[where["target_broad"]] = x[where["broad"]]
    x[where["share"]] = x[where["target_share"]] = -1.0
    people = p.people
    for name in ("slope_spread", "bias_spread", "noise_spread", "lapse_spread"):
        x[where[name]] = np.log(getattr(people, name))
    x[where["log_noise"]] = np.log(people.noise_median)
    x[where["logit_lapse"]] = np.log(people.lapse_median / (1 - people.lapse_median))
    return x


def _expanded(x: FloatArray, where: dict[str, slice], q: Any) -> dict[str, FloatArray]:
    """Values of the model's variables at a vector of parameters, deterministic ones too."""
    found: dict[str, Any] = {name: x[part] for name, part in where.items() if not name.endswith("_turned")}
    found |= {name: x[where[name].start] for name in (*FREE_ANSWER_NUMBERS, "generator_weight") if name in where}
    found |= {name: np.exp(found[name]) for name in _LOGARITHMS}
    found["half"] = 1 / (1 + np.exp(-found["half"]))
    found["k0"] = np.exp(found["log_k0"])
    people = free_answer_people(x, where["slope_unit"].start, q.n_participants)
    found |= dict(zip(("slope", "bias", "noise", "lapse", "bias_unit"), people, strict=False))
    ratio, of_items = free_answer_ratios(x, found["bias"].mean(), q)
    target, token = np.split(ratio, [q.target_log_g.size])
    line = line_of(q.target_log_g, found["g_slope"], found["rare_g_slope"])
    off = found["target_level"] + found["target_slope"] * (q.target_log_g + 4)
    found["target_residual"] = target - line - off
    found["divergence"], found["item_level"] = of_items[0], of_items[3]
    found["item_gap_nats"] = -(target + of_items[3])
    found["token_log_ratio"] = token + of_items[3][q.token_item]
    return found
