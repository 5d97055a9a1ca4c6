"""What the model of free answers and reports is fitted to: the pool of every item, its answers, its comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.rounding import RoundingScheme, rounding_scheme
from estimators.comparison.study import COMPARISON
from estimators.comparison.study_sources import (
    ANSWER,
    DISTINCT,
    GENERATOR,
    NOT_A_CANDIDATE,
    PROPOSAL,
    TARGET_POSITION,
    candidate_sources,
    has_free_answers,
)
from estimators.comparison.study_tokens import candidate_tokens, compared_tokens
from estimators.errors import InputError
from estimators.layout import item_labels, item_positions, response_positions
from models.comparison.participant_data import report_box_edges, reported_boxes

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["FreeAnswerData", "free_answer_data"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_BIN_EDGES = np.array([-np.inf, -18, -15, -12.5, -10.5, -9, -7.5, -6, -5, -4, -3, -2, -1, np.inf])
"""Of ln g. Tokens that nobody was asked about count by their bin."""

_EMPTY = 1e-7
"""A bin with less mass than float32 can tell from none."""


@dataclass(frozen=True, eq=False)
class FreeAnswerData:
    r"""A comparison study whose contexts people also answered freely.

    The *pool* of an item is its target and its distinct candidates. All log-probabilities are the generator's, in
    nats; ``token_item`` and ``row_*`` are positions.

    Attributes
    ----------
    study, generator : str
    item : ndarray of int or str, shape (item,)
        Labels of the items asked; the owner's own where the study has them.
    target_log_g : ndarray, shape (item,)
        ln g(y).
    target_answers, n_answers : ndarray of int, shape (item,)
        Free answers that were the target, and all free answers.
    n_entry : ndarray of int, shape (item,)
        Free answers whose tokens became candidates; the others came later and are held out.
    n_drawn : ndarray of int, shape (item,)
        Independent draws of the generator.
    bin_log_mass, bin_log_g : ndarray, shape (item, bin)
        The generator's distribution outside the pool, in bins of ln g: ln of the mass, and the mean of ln g by mass.
    token_item : ndarray of int, shape (token,)
        Item of every token of a pool but the target, increasing.
    token_log_g : ndarray, shape (token,)
    token_answers : ndarray of int, shape (token,)
        How often people answered it.
    target_drawn : ndarray of int, shape (item,)
        Draws of the generator that were the target itself.
    token_drawn : ndarray of int, shape (token,)
        How often the generator drew it.
    token_given : ndarray of bool, shape (token,)
        It is a candidate whatever people answered (a stepping stone, a draw of another proposal).
    token_column : ndarray of int, shape (token,)
        A position along ``candidate`` at which the token stands.
    participant : ndarray of str, shape (participant,)
        Those with a comparison.
    row_participant : ndarray of int, shape (row,)
    row_token, row_reference : ndarray of int, shape (row,)
        Position along (items' targets, then tokens) of the candidate, and of what it was compared with.
    row_box : ndarray of int, shape (row,)
        Which value of the scale was reported for the reference, from the lowest.
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
    target_answers: IntArray
    n_answers: IntArray
    n_entry: IntArray
    n_drawn: IntArray
    bin_log_mass: FloatArray
    bin_log_g: FloatArray
    token_item: IntArray
    token_log_g: FloatArray
    token_answers: IntArray
    target_drawn: IntArray
    token_drawn: IntArray
    token_given: NDArray[np.bool_]
    token_column: IntArray
    participant: NDArray[np.str_]
    row_participant: IntArray
    row_token: IntArray
    row_reference: IntArray
    row_box: IntArray
    row_response: IntArray
    box_edges: FloatArray
    half_box: int

    @property
    def log_g(self) -> FloatArray:
        """Log-probabilities of the targets, then of the tokens, shape (item + token,)."""
        return np.concatenate([self.target_log_g, self.token_log_g])


def free_answer_data(study: xr.Dataset, grid: RoundingScheme | str = "slider") -> FreeAnswerData:
    """Read comparisons and free answers from a comparison study.

    Left out are items that nobody answered, and those that nobody compared though there was something to compare. An
    item whose every draw and answer is the target stays.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study with free answers and the generator's whole distribution (``reference_logprob``).
    grid : RoundingScheme or str
        The values that participants could report.

    Returns
    -------
    FreeAnswerData

    Raises
    ------
    InputError
        If the study has no free answers, no item with comparisons and answers, or not the whole distribution, or a
        report is not on the grid.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import designed_study
    >>> data = models.free_answer_data(designed_study())
    >>> data.item.size, int(data.n_answers.sum()), data.row_box.size
    (8, 48, 96)
    """
    source = COMPARISON.source(study)
    if not has_free_answers(study):
        raise InputError("has no free answers (dimension 'answer')", source=source)
    if "reference_logprob" not in study:
        raise InputError(
            "is missing; the model completes sums over the generator's whole distribution",
            source=source,
            field="reference_logprob",
        )
    scheme = rounding_scheme(grid)
    asked, answered = response_positions(study), item_positions(study, "answer_item")
    code, origin = candidate_tokens(study), candidate_sources(study)
    candidate, reference = compared_tokens(study, code)
    # a person's answer on two tokens that differ
    informative = (candidate != reference) & (candidate != NOT_A_CANDIDATE) & ~study["automatic"].values
    compared = np.intersect1d(asked[informative], answered)
    if not compared.size:
        raise InputError("has no item with both a comparison of two different tokens and a free answer", source=source)
    # where everything that was drawn and answered is the target there was nothing to compare; without these, which
    # people and generator expect alike, a mean over the others is no mean over the items asked
    alone = ((origin == GENERATOR) & (code == TARGET_POSITION)).any(axis=1) & ~(code >= 0).any(axis=1)
    items = np.union1d(compared, np.intersect1d(np.flatnonzero(alone), answered))
    place = np.full(study.sizes["item"], -1, dtype=np.intp)
    place[items] = np.arange(items.size)

    log_g = study["candidate_logprob"].sel(model=study.attrs["generator"]).values.astype(float)
    first = code == np.arange(code.shape[1])
    token_position, column = np.nonzero(first & (place >= 0)[:, None])
    at = np.full(code.shape, -1, dtype=np.intp)
    at[token_position, column] = np.arange(column.size)

    answer_candidate = study["answer_candidate"].values
    mine = place[answered] >= 0
    of_candidate = mine & (answer_candidate >= 0)
    answered_code = code[answered[of_candidate], answer_candidate[of_candidate]]
    answered_token = at[answered[of_candidate], answered_code]
    is_target = mine & (answer_candidate == TARGET_POSITION)
    entry = np.isin(study["answer_batch"].values, np.unique(study["candidate_batch"].values[origin == ANSWER]))

    def by_item(kept: NDArray[np.bool_]) -> IntArray:
        return np.bincount(place[answered[kept]], minlength=items.size).astype(np.intp)

    given = np.zeros(code.shape, dtype=bool)
    position, cell = np.nonzero(np.isin(origin, (PROPOSAL, DISTINCT)) & (code >= 0))
    given[position, code[position, cell]] = True

    drawn = origin == GENERATOR
    drawn_item, drawn_column = np.nonzero(drawn & (code >= 0) & (place >= 0)[:, None])
    drawn_token = at[drawn_item, code[drawn_item, drawn_column]]

    used = np.flatnonzero(informative & (place[asked] >= 0))
    people, person = np.unique(study["participant"].values.astype(str)[used], return_inverse=True)
    edges, half_box = report_box_edges(scheme)
    token_item, token_log_g = place[token_position], log_g[token_position, column]
    target_log_g = study["target_logprob"].sel(model=study.attrs["generator"]).values[items].astype(float)
    pool = np.concatenate([np.arange(items.size), token_item]), np.concatenate([target_log_g, token_log_g])
    bins = _bins(study["reference_logprob"].values[items].astype(float), *pool)

    def in_pool(token: IntArray) -> IntArray:
        """Place of a token of each row along (targets, tokens)."""
        item = asked[used]
        found: IntArray = np.where(token < 0, place[item], items.size + at[item, np.maximum(token, 0)])
        return found

    return FreeAnswerData(
        study=str(study.attrs.get("name")),
        generator=str(study.attrs["generator"]),
        item=item_labels(study)[items],
        target_log_g=target_log_g,
        target_answers=by_item(is_target),
        n_answers=by_item(mine),
        n_entry=by_item(mine & entry),
        n_drawn=drawn[items].sum(axis=1).astype(np.intp),
        bin_log_mass=bins[0],
        bin_log_g=bins[1],
        token_item=token_item,
        token_log_g=token_log_g,
        token_answers=np.bincount(answered_token, minlength=column.size).astype(np.intp),
        target_drawn=(drawn & (code == TARGET_POSITION))[items].sum(axis=1).astype(np.intp),
        token_drawn=np.bincount(drawn_token, minlength=column.size).astype(np.intp),
        token_given=given[token_position, column],
        token_column=column.astype(np.intp),
        participant=people,
        row_participant=person.astype(np.intp),
        row_token=in_pool(candidate[used]),
        row_reference=in_pool(reference[used]),
        row_box=reported_boxes(study["report"].values[used], scheme, source),
        row_response=used.astype(np.intp),
        box_edges=edges,
        half_box=half_box,
    )


def _bins(log_g: FloatArray, pool_item: IntArray, pool_log_g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log of the mass, and mean of ln g, of every bin of each item; an empty bin has a mass that counts for nothing."""
    n_items, n_bins = len(log_g), _BIN_EDGES.size - 1
    item = np.concatenate([np.repeat(np.arange(n_items), log_g.shape[1]), pool_item])
    every = np.concatenate([log_g.ravel(), pool_log_g])
    mass = np.exp(every)
    # the pool's own mass goes out again
    mass[log_g.size :] *= -1
    place = np.searchsorted(_BIN_EDGES, every, side="right") - 1 + n_bins * item
    total = np.bincount(place, mass, n_items * n_bins)
    weighted = np.bincount(place, mass * np.where(mass == 0, 0.0, every), n_items * n_bins)
    filled = total > _EMPTY
    mean = np.divide(weighted, total, out=np.full(total.size, -10.0), where=filled)
    log_mass = np.log(total, out=np.full(total.size, -100.0), where=filled)
    return log_mass.reshape(n_items, n_bins), mean.reshape(n_items, n_bins)
