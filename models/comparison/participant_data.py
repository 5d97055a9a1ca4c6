"""What the participant model is fitted to: every answer, the pair it is about, and the tokens not asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.rounding import RoundingScheme, report_boxes, rounding_scheme
from estimators.errors import InputError, unknown_choice
from models.comparison.tokens import clipped_logit, study_tokens

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "ParticipantData",
    "participant_data",
    "report_box_edges",
    "reported_boxes",
    "with_reports",
    "without_participants",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_GRID_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class ParticipantData:
    r"""Answers of a study's participants, and what the study knows of the tokens.

    A *row* is an answer on two tokens that differ; answers that the site gave by itself say nothing of a belief and
    are left out. A *pair* is a distinct (item, candidate) that somebody answered. All log-probabilities are the
    generator's, in nats; ``*_item`` are positions along ``item``, increasing.

    Attributes
    ----------
    study, generator : str
    item : ndarray of int or str, shape (item,)
        Labels of the items asked; the owner's own where the study has them.
    target_log_g : ndarray, shape (item,)
        ln g(y).
    surprisal : ndarray, shape (item,)
        E_q, mean of -ln g over the candidates drawn that are not the target.
    unseen_mass : ndarray, shape (item,)
        Probability that g gives to tokens that are neither the target nor among the stored candidates.
    n_same : ndarray of int, shape (item,)
        Shown candidates that were the target itself.
    pair_item, pair_log_g : ndarray, shape (pair,)
        Item and ln g(x). Pairs with several rows come first.
    pair_column : ndarray of int, shape (pair,)
        A position along ``candidate`` at which the token stands.
    pair_n_shown : ndarray of int, shape (pair,)
        How often the pair was shown, automatic answers included.
    n_shared : int
        How many pairs have several rows.
    rest_item, rest_log_g : ndarray, shape (rest,)
        The distinct stored candidates that nobody answered.
    tail_item, tail_log_g, tail_mass : ndarray, shape (tail,)
        Good-Turing stand-ins for undrawn tokens; see :class:`~models.comparison.tokens.StudyTokens`.
    participant : ndarray of str, shape (participant,)
        Those with a row.
    row_pair, row_participant : ndarray of int, shape (row,)
    row_box : ndarray of int, shape (row,)
        Which value of the grid was reported for the target, from the lowest.
    row_response : ndarray of int, shape (row,)
        Position along the study's ``response``.
    box_edges : ndarray, shape (box, 2)
        Lower and upper log-odds of the boxes; the outermost are infinite.
    half_box : int
        The box that holds a probability of one half.
    """

    study: str
    generator: str
    item: NDArray[Any]
    target_log_g: FloatArray
    surprisal: FloatArray
    unseen_mass: FloatArray
    n_same: IntArray
    pair_item: IntArray
    pair_log_g: FloatArray
    pair_column: IntArray
    pair_n_shown: IntArray
    n_shared: int
    rest_item: IntArray
    rest_log_g: FloatArray
    tail_item: IntArray
    tail_log_g: FloatArray
    tail_mass: FloatArray
    participant: NDArray[np.str_]
    row_pair: IntArray
    row_participant: IntArray
    row_box: IntArray
    row_response: IntArray
    box_edges: FloatArray
    half_box: int

    @property
    def target_logit(self) -> FloatArray:
        """L = logit g(y) clipped to [-16, 9], shape (item,)."""
        return clipped_logit(self.target_log_g)

    @property
    def answers(self) -> NDArray[np.bool_]:
        """Which participants have an answer, shape (participant,)."""
        answered: NDArray[np.bool_] = np.bincount(self.row_participant, minlength=self.participant.size) > 0
        return answered

    @property
    def pair_log_g_ratio(self) -> FloatArray:
        """Generator's log-ratio ln g(x)/g(y), shape (pair,)."""
        return self.pair_log_g - self.target_log_g[self.pair_item]


def participant_data(study: xr.Dataset, grid: RoundingScheme | str = "interface") -> ParticipantData:
    """Read the participants' answers from a comparison study.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    grid : RoundingScheme or str
        The values that participants could report.

    Returns
    -------
    ParticipantData

    Raises
    ------
    InputError
        If a report is not on the grid, the grid is empty, or there is no answer on two tokens that differ.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import comparison_study
    >>> data = models.participant_data(comparison_study())
    >>> data.participant.tolist(), data.item.size
    (['p000', 'p001', 'p002', 'p003', 'p004'], 6)
    """
    source = f"study {study.attrs.get('name')!r}"
    scheme = rounding_scheme(grid)
    box_edges, half_box = report_box_edges(scheme)
    token = study_tokens(study)
    n_tokens, n_items = token.item.size, token.label.size
    informative = (token.response_token >= 0) & ~study["automatic"].values
    if not informative.any():
        raise InputError("has no answer on two tokens that differ", source=source)
    box = reported_boxes(study["report"].values[informative], scheme, source)
    row_token = token.response_token[informative]
    count = np.bincount(row_token, minlength=n_tokens)
    asked = count > 0
    pairs = np.flatnonzero(asked)
    pairs = pairs[np.argsort(count[pairs] < 2, kind="stable")]
    pair_of_token = np.full(n_tokens, -1, dtype=np.intp)
    pair_of_token[pairs] = np.arange(pairs.size)
    shown = np.bincount(token.response_token[token.response_token >= 0], minlength=n_tokens)

    people, person = np.unique(study["participant"].values.astype(str)[informative], return_inverse=True)
    return ParticipantData(
        study=str(study.attrs.get("name")),
        generator=str(study.attrs["generator"]),
        item=token.label,
        target_log_g=token.target_log_g,
        surprisal=token.surprisal,
        unseen_mass=token.unseen_mass,
        n_same=np.bincount(token.response_item[token.response_token < 0], minlength=n_items).astype(np.intp),
        pair_item=token.item[pairs],
        pair_log_g=token.log_g[pairs],
        pair_column=token.column[pairs],
        pair_n_shown=shown[pairs].astype(np.intp),
        n_shared=int((count > 1).sum()),
        rest_item=token.item[~asked],
        rest_log_g=token.log_g[~asked],
        tail_item=token.tail_item,
        tail_log_g=token.tail_log_g,
        tail_mass=token.tail_mass,
        participant=people,
        row_pair=pair_of_token[row_token],
        row_participant=person.astype(np.intp),
        row_box=box,
        row_response=np.flatnonzero(informative).astype(np.intp),
        box_edges=box_edges,
        half_box=half_box,
    )


def with_reports(data: ParticipantData, row_box: IntArray) -> ParticipantData:
    """Put other answers to the same questions.

    Parameters
    ----------
    data : ParticipantData
    row_box : ndarray of int, shape (row,)

    Raises
    ------
    InputError
        If there are not as many answers, or one is no box of the grid.
    """
    if row_box.shape != data.row_box.shape or row_box.min() < 0 or row_box.max() >= len(data.box_edges):
        raise InputError(f"should be {data.row_box.size} boxes from 0 to {len(data.box_edges) - 1}", field="row_box")
    return replace(data, row_box=row_box.astype(np.intp))


def without_participants(data: ParticipantData, names: Sequence[str]) -> ParticipantData:
    """Leave out the answers of some participants; items, pairs and the list of participants stay as they are.

    Parameters
    ----------
    data : ParticipantData
    names : sequence of str

    Returns
    -------
    ParticipantData
        A model that was compiled for `data` takes it.

    Raises
    ------
    InputError
        If a name is unknown, or nobody would be left.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import comparison_study
    >>> data = models.participant_data(comparison_study())
    >>> rest = models.without_participants(data, [data.participant[0]])
    >>> rest.row_box.size < data.row_box.size, rest.answers.tolist()
    (True, [False, True, True, True, True])
    """
    known = data.participant.tolist()
    for name in names:
        if name not in known:
            raise unknown_choice("participant", name, known, source=f"study {data.study!r}")
    gone = np.isin(data.participant, list(names))
    kept = ~gone[data.row_participant]
    if not kept.any():
        raise InputError("leaves nobody", source=f"study {data.study!r}", field="participants to leave out")
    dropped = np.bincount(data.row_pair[~kept], minlength=data.pair_item.size)
    return replace(
        data,
        pair_n_shown=data.pair_n_shown - dropped,
        row_pair=data.row_pair[kept],
        row_participant=data.row_participant[kept],
        row_box=data.row_box[kept],
        row_response=data.row_response[kept],
    )


def report_box_edges(scheme: RoundingScheme) -> tuple[FloatArray, int]:
    """Log-odds between which reports take each value of a grid, (box, 2), and the box of one half.

    Raises
    ------
    InputError
        If the grid has no values.
    """
    if not scheme.values:
        raise InputError(
            "has no values; the participant model needs the values that could be reported (rounding=custom gives any)",
            source=f"grid {scheme.name!r}",
        )
    edge = report_boxes(scheme)
    with np.errstate(divide="ignore"):
        box_edges: FloatArray = np.log(edge) - np.log1p(-edge)
    return box_edges, int(np.searchsorted(edge[:, 1], 0.5))


def reported_boxes(report: FloatArray, scheme: RoundingScheme, source: str) -> IntArray:
    """Which value of the grid each report is.

    Raises
    ------
    InputError
        If a report is none.
    """
    values = np.asarray(scheme.values)
    nearest = np.abs(report[:, None] - values).argmin(axis=1)
    off = ~(np.abs(report - values[nearest]) <= _GRID_TOLERANCE)  # a report that is no number is off, too
    if off.any():
        wrong = float(report[off][0])
        two = np.sort(values[np.argsort(np.abs(values - wrong))[:2]])
        near = ", the nearest are " + ", ".join(f"{value:g}" for value in two) if np.isfinite(wrong) else ""
        problem = (
            f"{wrong:g} is not a value of the grid {scheme.name!r}{near} ({off.sum():,} of "
            f"{off.size:,} reports are none of its values); take the grid of the scale that people saw, "
            "percent for a slider of whole numbers from 0 to 100 (round finer reports yourself), or rounding=custom "
            "rounding.values=[...], all of its values in order"
        )
        raise InputError(problem, source=source, field="report")
    box: IntArray = nearest.astype(np.intp)
    return box
