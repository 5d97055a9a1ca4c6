"""What a study of draws, free answers and comparisons knows, token by token: the arrays that planning works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import BoolArray, Dataset, FloatArray, IntArray
from shannon_game.estimators.comparison.reports import log_ratio_from_report
from shannon_game.estimators.comparison.rounding import RoundingScheme, round_reports
from shannon_game.estimators.comparison.study import (
    COMPARISON,
    candidate_tokens,
    compared_with_target,
    generator_logprobs,
)
from shannon_game.estimators.comparison.study_sources import (
    GENERATOR,
    NOT_A_CANDIDATE,
    TARGET_POSITION,
    candidate_sources,
    has_free_answers,
)
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions, response_positions


@dataclass(frozen=True, eq=False, repr=False)
class TokenPool(Result):
    """Distinct tokens of every item, and what was asked about them.

    Attributes
    ----------
    item : ndarray of int, shape (token,)
        Position of the item, 0 to n_items - 1, rising; every item has a token.
    offset_nats : ndarray, shape (token,)
        ln g(y|c) - ln g(x|c).
    is_target : ndarray of bool, shape (token,)
    n_drawn : ndarray of int, shape (token,)
        Draws of the generator that are this token.
    answer_token, answer_person : ndarray of int, shape (answer,)
        Token of each free answer, and who gave it.
    report_token, report_person : ndarray of int, shape (report,)
        Token that was compared with its item's target, and who compared.
    report_log_ratio : ndarray, shape (report,)
        ln h(x|c)/h(y|c) as reported, nats.
    """

    made_by = "token_pool(...) or simulate_questions(...)"

    item: IntArray
    offset_nats: FloatArray
    is_target: BoolArray
    n_drawn: IntArray
    answer_token: IntArray
    answer_person: IntArray
    report_token: IntArray
    report_person: IntArray
    report_log_ratio: FloatArray

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.item[-1]) + 1

    @property
    def n_people(self) -> int:
        """Number of people who may have answered: one more than the highest number."""
        return int(max(self.answer_person.max(initial=-1), self.report_person.max(initial=-1))) + 1

    @property
    def n_answered(self) -> IntArray:
        """Free answers that are each token, (token,)."""
        return np.bincount(self.answer_token, minlength=self.item.size)

    @property
    def n_reports(self) -> IntArray:
        """Comparisons of each token with the target, (token,)."""
        return np.bincount(self.report_token, minlength=self.item.size)


def token_pool(
    *,
    item: ArrayLike,
    offset_nats: ArrayLike,
    is_target: ArrayLike,
    n_drawn: ArrayLike,
    answer_token: ArrayLike = (),
    answer_person: ArrayLike = (),
    report_token: ArrayLike = (),
    report_person: ArrayLike = (),
    report_log_ratio: ArrayLike = (),
) -> TokenPool:
    """Check the arrays of a :class:`TokenPool`.

    Examples
    --------
    >>> comparison.token_pool(item=[0, 0], offset_nats=[0, 1.2], is_target=[True, False], n_drawn=[1, 2])
    TokenPool(item=int64[2], offset_nats=float64[2], is_target=bool[2], n_drawn=int64[2], ...)
    """
    place, offset = _whole("item", item), np.asarray(offset_nats, dtype=float)
    target, drawn = np.asarray(is_target), _whole("n_drawn", n_drawn)
    pool = TokenPool(
        item=place,
        offset_nats=offset,
        is_target=target,
        n_drawn=drawn,
        answer_token=_whole("answer_token", answer_token),
        answer_person=_whole("answer_person", answer_person),
        report_token=_whole("report_token", report_token),
        report_person=_whole("report_person", report_person),
        report_log_ratio=np.asarray(report_log_ratio, dtype=float),
    )
    for names, size in (
        (("offset_nats", "is_target", "n_drawn"), place.size),
        (("answer_person",), pool.answer_token.size),
        (("report_person", "report_log_ratio"), pool.report_token.size),
    ):
        for name in names:
            if getattr(pool, name).shape != (size,):
                raise InputError(f"has shape {getattr(pool, name).shape}, should be ({size},)", field=name)
    if not place.size or place[0] != 0 or not np.isin(np.diff(place), (0, 1)).all():
        raise InputError("should begin at 0 and rise by 0 or 1 from token to token", field="item")
    if target.dtype.kind != "b":
        raise InputError(f"has dtype {target.dtype}, should be bool", field="is_target")
    for name in ("answer_token", "report_token"):
        if (getattr(pool, name) >= place.size).any():
            raise InputError(f"is {getattr(pool, name).max()}, but there are {place.size} tokens", field=name)
    for name in ("offset_nats", "report_log_ratio"):
        if not np.isfinite(getattr(pool, name)).all():
            raise InputError("should be finite everywhere", field=name)
    if target[pool.report_token].any():
        raise InputError("is a target, whose log-ratio to itself nobody can report", field="report_token")
    return pool


def _whole(name: str, values: ArrayLike) -> IntArray:
    """Whole numbers of at least 0, as positions."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise InputError(f"has shape {given.shape}, should have one dimension", field=name)
    if given.size and (given.dtype.kind not in "iu" or (given < 0).any()):
        raise InputError("should be whole numbers of at least 0", field=name)
    return given.astype(np.intp)


def study_pool(study: Dataset, *, rounding: RoundingScheme | str = "none") -> tuple[TokenPool, IntArray]:
    """Read draws, free answers and comparisons with the target from a comparison study.

    Left out are items without a draw or without a free answer, comparisons of two candidates, answers that are no
    candidates, and what the site answered by itself. An item whose every draw and answer is the target stays. Positions
    in the study of the pool's items come with it.
    """
    study, source = COMPARISON.read(study), COMPARISON.source(study)
    if not has_free_answers(study):
        raise InputError("has no free answers (dimension 'answer')", source=source)
    code = candidate_tokens(study)
    asked, answered = response_positions(study), item_positions(study, "answer_item")
    candidate, compared = compared_with_target(study, code)
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

    every = np.column_stack(generator_logprobs(study))[item].astype(float)
    drawn_item, drawn_column = np.nonzero(drawn & np.isin(np.arange(len(code)), item)[:, None])
    drawn_token = place[drawn_item, code[drawn_item, drawn_column] + 1]

    used = compared & np.isin(asked, item)
    given = known & np.isin(answered, item)
    answer_code = np.where(answer_column >= 0, code[answered, np.maximum(answer_column, 0)], TARGET_POSITION)
    names = [study[name].to_numpy().astype(str) for name in ("participant", "answer_participant")]
    people = np.unique(np.concatenate(names))
    pool = token_pool(
        item=position,
        offset_nats=(every[:, :1] - every)[position, column],
        is_target=column == 0,
        n_drawn=np.bincount(drawn_token, minlength=position.size),
        answer_token=place[answered[given], answer_code[given] + 1],
        answer_person=np.searchsorted(people, names[1])[given],
        report_token=place[asked[used], candidate[used] + 1],
        report_person=np.searchsorted(people, names[0])[used],
        report_log_ratio=log_ratio_from_report(round_reports(study["report"].to_numpy()[used], rounding)),
    )
    return pool, item
