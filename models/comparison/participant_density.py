r"""Log-density of the participant model and its gradient, written out for Numba.

The model is that of :func:`models.comparison.participants.participant_model`, which stays the statement of it: tests
compare the two. PyTensor compiles that statement anew in every process, for a minute of processor time, and its
gradient repeats what value and gradient share. Here one pass forward and one back serve any study, and Numba keeps
what it compiled on disk.

The parameters stand in one vector, on the scale on which PyMC samples them:
:data:`~models.comparison.kernels.PARTICIPANT_NUMBERS` first, then those of items (z, zeta, A_turned), shared pairs
(e_unit) and participants. Three are others. Two for somebody who answers at the ends of the scale alone: such answers
say much of the product of slope and bias and little of either, and the Student t lets the bias run far, and with it the
mean of all. ``bias_turned`` is :math:`\sinh^{-1}(k\, \mathrm{bias\_unit})`, with k the slope before it is centred, and
``mu_turned`` is mu plus the mean of the biases, from which all other answers are as they were. The third for an item
whose answers are all at one end: ``A_turned`` is :math:`4 \sinh^{-1}(\mathrm{A\_unit} / 4)`, without the heavy tail in
which chains would get lost.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import astuple, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.comparison.kernels import (
    PARTICIPANT_NUMBERS,
    items_of,
    participant_log_density,
    participant_moves,
    people_of,
)
from models.comparison.participant_data import ParticipantData
from models.comparison.participants import FAR, ParticipantPriors
from models.density import WrittenDensity

__all__ = ["Questions", "layout", "participant_density"]

FloatArray = NDArray[np.float64]

_HALF_NORMAL = ("sigma", "omega", "t_b", "slope_spread", "bias_spread", "noise_spread", "lapse_spread")

# Numba takes named tuples as they are
Questions = namedtuple(
    "Questions", "target_logit surprisal pair_item pair_log_g pair_log_g_ratio n_shared n_participants edges half_box"
)
_Priors = namedtuple("_Priors", [field.name for field in fields(ParticipantPriors)])  # type: ignore[misc]


def participant_density(data: ParticipantData, priors: ParticipantPriors | None = None) -> WrittenDensity:
    """Log-density of :func:`~models.comparison.participants.participant_model`, for any answers and scale.

    Parameters
    ----------
    data : ParticipantData
    priors : ParticipantPriors, optional

    Returns
    -------
    WrittenDensity
        It reads answers and scale from the model's data: ``row_pair``, ``row_participant``, ``row_box``, ``present``
        and ``k0``.

    Examples
    --------
    >>> import numpy as np
    >>> from estimators.comparison.examples import comparison_study
    >>> import models
    >>> from models.comparison.participant_density import participant_density
    >>> data = models.participant_data(comparison_study())
    >>> density = participant_density(data)
    >>> answers = {name: getattr(data, name) for name in ("row_pair", "row_participant", "row_box")}
    >>> value, gradient = density.evaluate(density.start, **answers, present=data.answers.astype(float), k0=1.0)
    >>> gradient.shape == density.start.shape, bool(np.isfinite(value))
    (True, True)
    """
    asked, p = _questions(data), priors or ParticipantPriors()
    known = _Priors(*map(float, astuple(p)))
    where = layout(data.item.size, data.n_shared, data.participant.size)
    start = np.zeros(where["lapse_unit"].stop)
    start[where["kap"]], start[where["ga"]] = p.kap_mean, p.ga_mean
    start[where["log_noise"]] = np.log(p.noise_median)
    start[where["logit_lapse"]] = np.log(p.lapse_median / (1 - p.lapse_median))
    for name in _HALF_NORMAL:
        start[where[name]] = np.log(getattr(p, name))

    def arguments(**answers: Any) -> tuple[Any, ...]:
        rows = (np.asarray(answers[name], dtype=np.int64) for name in ("row_pair", "row_participant", "row_box"))
        return asked, known, *rows, answers["present"], float(answers["k0"])

    def expand(x: FloatArray, **answers: Any) -> dict[str, FloatArray]:
        return _expanded(x, where, asked, answers["present"], float(answers["k0"]))

    names_read = ("row_pair", "row_participant", "row_box", "present", "k0")
    return WrittenDensity(start, participant_log_density, arguments, expand, names_read, moves=participant_moves)


def _questions(data: ParticipantData) -> Any:
    """What the density needs of a study beside the answers, as Numba takes it."""

    def plain(array: NDArray[Any]) -> FloatArray:
        return np.ascontiguousarray(array, dtype=np.float64)

    return Questions(
        plain(data.target_logit),
        plain(data.surprisal),
        np.ascontiguousarray(data.pair_item, dtype=np.int64),
        plain(data.pair_log_g),
        plain(data.pair_log_g_ratio),
        int(data.n_shared),
        int(data.participant.size),
        plain(np.clip(data.box_edges, -FAR, FAR)),
        int(data.half_box),
    )


def layout(n_items: int, n_shared: int, n_participants: int) -> dict[str, slice]:
    """Where every parameter stands in the vector."""
    sizes = dict.fromkeys(PARTICIPANT_NUMBERS, 1)
    sizes |= dict.fromkeys(("z", "zeta", "A_turned"), n_items) | {"e_unit": n_shared}
    sizes |= dict.fromkeys(("slope_unit", "bias_turned", "noise_unit", "lapse_unit"), n_participants)
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}


def _expanded(x: FloatArray, where: dict[str, slice], q: Any, present: FloatArray, k0: float) -> dict[str, FloatArray]:
    """Values of the model's variables at a vector of parameters, deterministic ones too."""
    turned = ("A_turned", "bias_turned")
    found: dict[str, Any] = {name: x[part] for name, part in where.items() if name not in turned}
    found |= {name: x[where[name].start] for name in PARTICIPANT_NUMBERS}
    found |= {name: np.exp(found[name]) for name in ("rho", *_HALF_NORMAL)}
    found["half"] = 1 / (1 + np.exp(-found["half"]))
    people, mean_bias = people_of(x, where["slope_unit"].start, q.n_participants, present, k0)
    mu = float(found.pop("mu_turned")) - mean_bias
    found["mu"] = mu
    found["A"], found["s"], _, _, found["A_unit"] = items_of(x, mu, q.target_logit.size, q)
    return found | dict(zip(("slope", "bias", "noise", "lapse", "bias_unit"), people, strict=False))
