r"""Log-density of the belief model and its gradient, written out; see :mod:`models.comparison.kernels`.

The parameters are those of PyMC's model but one: where answers are rounded, ``A_turned`` is
:math:`4 \sinh^{-1}(\mathrm{A\_unit} / 4)`. An item whose answers are all at the end of the scale leaves A_unit the
heavy tail of its prior, in which chains would get lost; the tail of A_turned is light.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.comparison.belief import FAR, BeliefData, BeliefPriors
from models.comparison.kernels import BELIEF_NUMBERS, TURN, belief_items, belief_log_density
from models.density import WrittenDensity

__all__ = ["belief_density", "layout"]

FloatArray = NDArray[np.float64]

_LOGARITHMS = BELIEF_NUMBERS[BELIEF_NUMBERS.index("rho") :]

# Numba takes named tuples as they are
_Priors = namedtuple("_Priors", [field.name for field in fields(BeliefPriors)])  # type: ignore[misc]


def belief_density(data: BeliefData, priors: BeliefPriors | None = None) -> WrittenDensity:
    """Log-density of :func:`~models.comparison.belief.belief_model`, for any pairs of as many items.

    Parameters
    ----------
    data : BeliefData
        Says how many items there are, and whether reports are rounded.
    priors : BeliefPriors, optional

    Returns
    -------
    WrittenDensity
        It reads all data of the model.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import comparison_study
    >>> from models.comparison.belief_density import belief_density
    >>> data = models.belief_data(comparison_study(), "lm-weak")
    >>> density, model = belief_density(data), models.belief_model(data)
    >>> value, gradient = density.evaluate(density.start, **{name: model[name].get_value() for name in density.data})
    >>> gradient.shape == density.start.shape
    True
    """
    p = priors or BeliefPriors()
    known, raw = _Priors(*map(float, astuple(p))), data.is_raw
    edge = np.clip(data.box_edges, -FAR, FAR)
    where = layout(data.item.size, raw)

    def arguments(**values: Any) -> tuple[Any, ...]:
        if raw:
            low = high = values["v_data"]
        else:
            low = values["pair_shift"] - edge[values["box_data"] + 1]
            high = values["pair_shift"] - edge[values["box_data"]]
        item = np.asarray(values["pair_item"], dtype=np.int64)
        logit, surprisal = values["target_logit"], values["surprisal"]
        log_g, frequency = values["pair_log_g"], values["pair_frequency"]
        return known, logit, surprisal, item, log_g, frequency, low, high, raw

    def expand(x: FloatArray, **values: Any) -> dict[str, FloatArray]:
        found: dict[str, Any] = {name: x[part] for name, part in where.items()}
        found |= {name: x[where[name].start] for name in BELIEF_NUMBERS}
        found |= {name: np.exp(found[name]) for name in _LOGARITHMS}
        place, found["s"], _ = belief_items(x, values["target_logit"], values["surprisal"])
        if raw:
            return found
        found["A_unit"] = TURN * np.sinh(found.pop("A_turned") / TURN)
        return found | {"A": place + found["rho"] * found["s"] * found["A_unit"]}

    own = ("v_data",) if raw else ("pair_shift", "box_data")
    of_pairs = ("pair_item", "pair_log_g", "pair_frequency", *own)
    names_read = ("target_logit", "surprisal", *of_pairs)
    start = _start(data, p, where)
    return WrittenDensity(start, belief_log_density, arguments, expand, names_read, jitter=1e-3)


def layout(n_items: int, raw: bool) -> dict[str, slice]:
    """Where every parameter stands in the vector."""
    sizes = dict.fromkeys(BELIEF_NUMBERS, 1) | dict.fromkeys(("z", "zeta", "xi", "A" if raw else "A_turned"), n_items)
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}


def _start(data: BeliefData, p: BeliefPriors, where: dict[str, slice]) -> FloatArray:
    """Near the middle of the priors, as chains get lost where scales are huge."""
    x = np.full(next(reversed(where.values())).stop, 0.02)
    for name in ("sigma", "omega", "t_b", "t_d"):
        x[where[name]] = np.log(0.9 * getattr(p, name))
    x[where["rho"]] = 0.0
    x[where["kap"]] = p.kap_mean + 0.02
    if data.is_raw:
        x[where["A"]] = belief_items(x, data.target_logit, data.surprisal)[0]
    return x
