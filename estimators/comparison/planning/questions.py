"""Simulated questions, as arrays: who answers what about draws of the generator and free answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.planning.contexts import KnownContexts
from estimators.comparison.reports import log_ratio_from_report
from estimators.comparison.rounding import RoundingScheme, rounding_scheme
from estimators.comparison.simulation.participants import Participants, draw_participants, reports_of
from estimators.comparison.simulation.settings import ParticipantPopulation
from estimators.comparison.token_pool import TokenPool
from estimators.errors import InputError

__all__ = ["report_log_ratios", "simulate_questions", "token_table"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def simulate_questions(
    known: KnownContexts,
    context: NDArray[np.integer],
    people: ParticipantPopulation,
    *,
    n_people: int,
    n_draws: int,
    n_answers: int,
    n_comparisons: int,
    scale: RoundingScheme | str = "slider",
    rng: np.random.Generator,
) -> TokenPool:
    """Simulate a study of one design, fast enough to be repeated thousands of times.

    What :func:`simulate_designed_study` simulates, as arrays: an item's distinct tokens other than the target are
    compared with it, in random order and again from the start; questions are dealt to people in turn.

    Parameters
    ----------
    context : ndarray of int, shape (item,)
        Positions of the contexts asked; one may be there more than once.
    n_draws, n_answers, n_comparisons : int
        Per item.

    Raises
    ------
    InputError
        If a number is too small, or an item has more questions of a kind than there are people.

    Examples
    --------
    >>> from estimators import comparison
    >>> known = comparison.known_contexts(np.log([[0.5, 0.3, 0.2]] * 4), np.log([[0.6, 0.2, 0.2]] * 4), [0, 1, 2, 0])
    >>> comparison.simulate_questions(
    ...     known, np.arange(4), comparison.ParticipantPopulation(), n_people=8, n_draws=6, n_answers=6,
    ...     n_comparisons=4, rng=np.random.default_rng(0)
    ... )
    TokenPool(12 tokens of 4 items, 24 draws, 24 answers, 16 reports)
    """
    KnownContexts.require(known=known)
    for name, value, least in (
        ("n_people", n_people, 1),
        ("n_draws", n_draws, 1),
        ("n_answers", n_answers, 0),
        ("n_comparisons", n_comparisons, 1),
    ):
        if value < least:
            raise InputError(f"is {value}, should be at least {least}", source="design", field=name)
    if max(n_answers, n_comparisons) > n_people:
        raise InputError(
            f"is {n_people}, should be at least {max(n_answers, n_comparisons)}: nobody answers a question of an item "
            "twice",
            source="design",
            field="n_people",
        )
    place, n_items = np.asarray(context, dtype=np.intp), context.size
    drawn = known.draw("generator", place, n_draws, rng)
    answered = known.draw("belief", place, n_answers, rng)
    item, token, of_draw, of_answer = token_table(drawn, answered)
    is_target = token == known.target[place[item]]
    order = np.flatnonzero(~is_target)
    order = order[np.lexsort((rng.random(order.size), item[order]))]
    count = np.bincount(item[order], minlength=n_items)
    start = np.cumsum(count) - count
    asked = np.flatnonzero(count)
    turn = np.arange(n_comparisons)
    report_token = order[start[asked, None] + turn % count[asked, None]].ravel()
    report_person = _dealt(n_items, n_comparisons, n_people, rng)[asked].ravel()
    everybody = draw_participants(people, n_people, int(rng.integers(2**31)))
    log_ratio = report_log_ratios(
        known, place[item[report_token]], token[report_token], report_person, everybody, scale=scale, rng=rng
    )
    row = place[item]
    return TokenPool(
        item=item,
        offset_nats=known.generator[row, known.target[row]] - known.generator[row, token],
        is_target=is_target,
        n_drawn=np.bincount(of_draw.ravel(), minlength=item.size),
        answer_token=of_answer.ravel(),
        answer_person=_dealt(n_items, n_answers, n_people, rng).ravel(),
        report_token=report_token,
        report_person=report_person,
        report_log_ratio=log_ratio,
    )


def token_table(drawn: IntArray, answered: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Distinct tokens of every item."""
    both = np.concatenate([drawn, answered], axis=1)
    vocab = int(both.max()) + 1
    key, row = np.unique(np.arange(both.shape[0])[:, None] * vocab + both, return_inverse=True)
    row = row.reshape(both.shape)
    return key // vocab, key % vocab, row[:, : drawn.shape[1]], row[:, drawn.shape[1] :]


def report_log_ratios(
    known: KnownContexts,
    context: IntArray,
    token: IntArray,
    who: IntArray,
    people: Participants,
    *,
    scale: RoundingScheme | str,
    rng: np.random.Generator,
) -> FloatArray:
    """Reports on tokens against their contexts' targets, as log-ratios ln h(x)/h(y), nats; shape (report,)."""
    log_odds = known.belief[context, known.target[context]] - known.belief[context, token]
    found: FloatArray = log_ratio_from_report(reports_of(people, who, log_odds, rounding_scheme(scale), rng))
    return found


def _dealt(n_items: int, n_questions: int, n_people: int, rng: np.random.Generator) -> IntArray:
    """Who is asked what, (item, question): in turn, in an order of each item's own."""
    turn = np.arange(n_items * n_questions).reshape(n_items, n_questions) % n_people
    dealt: IntArray = rng.permuted(rng.permutation(n_people)[turn], axis=1)
    return dealt
