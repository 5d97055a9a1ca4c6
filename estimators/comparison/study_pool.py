"""The token pool of a comparison study whose contexts people also answered freely."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.reports import log_ratio_from_report
from estimators.comparison.rounding import RoundingScheme, round_reports
from estimators.comparison.study import COMPARISON
from estimators.comparison.study_sources import (
    GENERATOR,
    NOT_A_CANDIDATE,
    TARGET_POSITION,
    candidate_sources,
    has_free_answers,
)
from estimators.comparison.study_tokens import candidate_tokens, compared_tokens
from estimators.comparison.token_pool import TokenPool, token_pool
from estimators.errors import InputError
from estimators.layout import item_positions, response_positions

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["study_pool"]

IntArray = NDArray[np.intp]


def study_pool(study: xr.Dataset, *, rounding: RoundingScheme | str = "none") -> tuple[TokenPool, IntArray]:
    """Read draws, free answers and comparisons with the target from a comparison study.

    Left out are items without a draw or without a free answer, comparisons of two candidates, answers that are no
    candidates, and what the site answered by itself. An item whose every draw and answer is the target stays.

    Returns
    -------
    pool : TokenPool
    item : ndarray of int, shape (item of the pool,)
        Their positions in the study.

    Raises
    ------
    InputError
        If the study has no free answers, no item with draws and answers, or a rounded report of 0 or 1.

    Examples
    --------
    >>> from estimators import comparison
    >>> from estimators.comparison.examples import designed_study
    >>> pool, item = comparison.study_pool(designed_study())
    >>> pool.n_items, item.tolist()
    (8, [0, 1, 2, 3, 4, 5, 6, 7])
    """
    source = COMPARISON.source(study)
    if not has_free_answers(study):
        raise InputError("has no free answers (dimension 'answer')", source=source)
    code = candidate_tokens(study)
    asked, answered = response_positions(study), item_positions(study, "answer_item")
    candidate, reference = compared_tokens(study, code)
    compared = (candidate >= 0) & (reference == TARGET_POSITION) & ~study["automatic"].to_numpy()
    answer_column = study["answer_candidate"].to_numpy()
    known = answer_column != NOT_A_CANDIDATE
    drawn = (candidate_sources(study) == GENERATOR) & (code >= TARGET_POSITION)
    item = np.intersect1d(np.flatnonzero(drawn.any(axis=1)), answered[known])
    if not item.size:
        raise InputError("has no item with both a draw of the generator and a free answer", source=source)

    # the target of every item first, then its distinct candidates
    here = np.column_stack([np.ones(item.size, dtype=bool), (code == np.arange(code.shape[1]))[item]])
    position, column = np.nonzero(here)
    place = np.full((study.sizes["item"], here.shape[1]), -1, dtype=np.intp)
    place[item[position], column] = np.arange(position.size)

    log_g = study["candidate_logprob"].sel(model=study.attrs["generator"]).to_numpy().astype(float)
    log_g_target = study["target_logprob"].sel(model=study.attrs["generator"]).to_numpy().astype(float)
    every = np.column_stack([log_g_target, log_g])[item]
    drawn_item, drawn_column = np.nonzero(drawn & np.isin(np.arange(len(code)), item)[:, None])
    drawn_token = place[drawn_item, code[drawn_item, drawn_column] + 1]

    used = compared & np.isin(asked, item)
    given = known & np.isin(answered, item)
    answer_code = np.where(answer_column >= 0, code[answered, np.maximum(answer_column, 0)], TARGET_POSITION)
    names = [study[name].to_numpy().astype(str) for name in ("participant", "answer_participant")]
    people = np.unique(np.concatenate(names))
    report = round_reports(study["report"].to_numpy()[used], rounding)
    if not ((report > 0) & (report < 1)).all():
        raise InputError("is 0 or 1; name a rounding that keeps reports between them", source=source, field="report")
    pool = token_pool(
        item=position,
        offset_nats=(every[:, :1] - every)[position, column],
        is_target=column == 0,
        n_drawn=np.bincount(drawn_token, minlength=position.size),
        answer_token=place[answered[given], answer_code[given] + 1],
        answer_person=np.searchsorted(people, names[1])[given],
        report_token=place[asked[used], candidate[used] + 1],
        report_person=np.searchsorted(people, names[0])[used],
        report_log_ratio=log_ratio_from_report(report),
    )
    return pool, item
