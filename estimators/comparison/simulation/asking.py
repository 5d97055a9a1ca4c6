"""Who of a designed study is asked what: free answers, candidates, and comparisons with the target."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.comparison.rounding import rounding_scheme
from shannon_game.estimators.comparison.simulation.language import draw_tokens
from shannon_game.estimators.comparison.simulation.players import Players, free_answers, report_comparisons
from shannon_game.estimators.comparison.simulation.settings import QuestionDesign, random_stream
from shannon_game.estimators.comparison.study_sources import ANSWER, GENERATOR, PADDING, TARGET_POSITION

NO_TOKEN = -1
"""Token of an empty cell."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Candidates and free answers of every item."""

    token: IntArray
    source: NDArray[np.object_]
    batch: IntArray
    answer_batch: IntArray
    answer_cell: IntArray


@dataclass(frozen=True, eq=False)
class Asked:
    """Comparisons, in long form; every array has shape (response,), in the order of asking."""

    item: IntArray
    participant: IntArray
    candidate: IntArray
    report: FloatArray


def who_is_asked(design: QuestionDesign, n_items: int, seed: int) -> tuple[IntArray, IntArray]:
    """Choose who answers an item freely and who compares: different people where there are enough, all alike often."""
    rng = random_stream(seed, "who")
    n = design.n_participants
    turn = np.arange(n_items * design.n_comparing).reshape(n_items, -1) % n
    comparing = np.repeat(rng.permuted(rng.permutation(n)[turn], axis=1), design.n_comparisons_each, axis=1)
    answering = np.empty((n_items, design.n_answers), dtype=np.intp)
    answered = np.zeros(n, dtype=np.intp)
    for q in range(n_items):
        compares = np.isin(np.arange(n), comparing[q])
        order = np.lexsort((rng.random(n), answered, compares))
        answering[q] = order[: design.n_answers]
        answered[answering[q]] += 1
    return answering, comparing


def candidate_cells(
    players: Players, target: IntArray, design: QuestionDesign, answering: IntArray, answer_exponent: float
) -> Cells:
    """Draw candidates and free answers."""
    n_items, seed = target.size, players.seed
    drawn = draw_tokens(players.generator, design.n_draws, random_stream(seed, "candidate"))
    answer = free_answers(players, answering, answer_exponent)
    batch_of_answer = 1 + np.arange(design.n_answers) * design.n_batches // max(design.n_answers, 1)
    shape = n_items, design.n_draws + design.n_answers
    token, source = np.full(shape, NO_TOKEN, dtype=np.intp), np.full(shape, PADDING, dtype=object)
    batch, cell = np.zeros(shape, dtype=np.intp), np.full(answer.shape, TARGET_POSITION, dtype=np.intp)
    token[:, : design.n_draws], source[:, : design.n_draws] = drawn, GENERATOR
    for q in range(n_items):
        columns = {int(target[q]): TARGET_POSITION}
        for column, x in enumerate(drawn[q].tolist()):
            columns.setdefault(x, column)
        free = design.n_draws
        for j, x in enumerate(answer[q].tolist()):
            if x not in columns:
                columns[x] = free
                token[q, free], source[q, free], batch[q, free] = x, ANSWER, batch_of_answer[j]
                free += 1
            cell[q, j] = columns[x]
    return Cells(token, source, batch, batch_of_answer, cell)


def ask_comparisons(
    players: Players, target: IntArray, design: QuestionDesign, cells: Cells, comparing: IntArray
) -> Asked:
    """Compare each item's tokens with its target, in random order and again from the start."""
    scale, rng = rounding_scheme(design.scale), random_stream(players.seed, "order")
    item, at = np.arange(target.size), np.arange(design.n_comparisons)
    chosen = np.full(comparing.shape, TARGET_POSITION)
    for q in item.tolist():
        order = rng.permutation(_columns(cells.token[q], int(target[q])))
        if order.size:
            chosen[q] = order[at % order.size]
    token = np.where(chosen == TARGET_POSITION, target[:, None], cells.token[item[:, None], chosen])
    report = np.column_stack(
        [report_comparisons(players, comparing[:, k], token[:, k], target, scale, occasion=k) for k in at.tolist()]
    )
    occasion, row = np.nonzero(chosen.T != TARGET_POSITION)
    cell = row, occasion
    return Asked(row, comparing[cell], chosen[cell], report[cell])


def _columns(token: IntArray, target: int) -> list[int]:
    """First columns of an item's tokens other than the target."""
    first: dict[int, int] = {}
    for column, x in enumerate(token.tolist()):
        first.setdefault(x, column)
    return [column for x, column in first.items() if x not in (NO_TOKEN, target)]
