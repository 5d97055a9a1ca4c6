"""Which cells of a comparison study's candidates hold the same token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.study import SAME_TOKEN_TOLERANCE_NATS, same_token
from estimators.comparison.study_sources import (
    NOT_A_CANDIDATE,
    PADDING,
    TARGET_POSITION,
    candidate_sources,
    response_references,
)
from estimators.layout import response_positions

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["candidate_tokens", "compared_tokens"]

IntArray = NDArray[np.intp]


def candidate_tokens(study: xr.Dataset) -> IntArray:
    """Code of each candidate's token within its item: the first position at which the item has it.

    As in :func:`same_token`, tokens are equal when their strings and their log-probabilities under the generator are.

    Returns
    -------
    ndarray of int, shape (item, candidate)
        -1 for the target, -2 for an empty cell.

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import comparison_study
    >>> comparison.candidate_tokens(comparison_study())[0, :5]
    array([-1,  1, -1,  3, -1])
    """
    target = same_token(study)
    n_items, n_candidates = target.shape
    row = np.repeat(np.arange(n_items), n_candidates)
    column = np.tile(np.arange(n_candidates), n_items)
    strings: dict[object, int] = {}
    text = np.array([strings.setdefault(one, len(strings)) for one in study["candidate_token"].values.ravel().tolist()])
    logprob = study["candidate_logprob"].sel(model=study.attrs["generator"]).values.ravel()
    order = np.lexsort((logprob, text, row))
    # NaN (an empty cell) differs from nothing: the cells of an item's padding are one token, and replaced below
    differs = [np.diff(row[order]) != 0, np.diff(text[order]) != 0, np.diff(logprob[order]) > SAME_TOKEN_TOLERANCE_NATS]
    start = np.flatnonzero(np.concatenate([[True], np.logical_or.reduce(differs)]))
    first = np.minimum.reduceat(column[order], start)
    flat = np.empty(row.size, dtype=np.intp)
    flat[order] = np.repeat(first, np.diff(np.append(start, row.size)))
    code: IntArray = flat.reshape(target.shape)
    code[target] = TARGET_POSITION
    code[candidate_sources(study) == PADDING] = NOT_A_CANDIDATE
    return code


def compared_tokens(study: xr.Dataset, code: IntArray) -> tuple[IntArray, IntArray]:
    """Codes of the two tokens that each response compares: its candidate's, and that of its reference."""
    position, reference = response_positions(study), response_references(study)
    against = np.where(reference < 0, TARGET_POSITION, code[position, np.maximum(reference, 0)])
    return code[position, study["response_candidate"].values], against
