"""Who of a designed study is asked what: free answers, candidates, and comparisons one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.reports import log_ratio_from_report
from estimators.comparison.rounding import rounding_scheme
from estimators.comparison.simulation.design import QuestionDesign
from estimators.comparison.simulation.language import draw_tokens
from estimators.comparison.simulation.players import Players, free_answers, report_comparisons, sample_rows
from estimators.comparison.simulation.questions import next_comparison, note_report, start_questions
from estimators.comparison.simulation.settings import random_stream
from estimators.comparison.study_sources import ANSWER, GENERATOR, PADDING, PROPOSAL, TARGET_POSITION

__all__ = ["NO_TOKEN", "STONE_EXPONENT", "Asked", "Cells", "ask_comparisons", "candidate_cells", "who_is_asked"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

NO_TOKEN = -1
"""Token of an empty cell."""
STONE_EXPONENT = 0.5
"""Stepping stones are drawn from the generator to this power."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Candidates and free answers of every item.

    Attributes
    ----------
    token : ndarray of int, shape (item, candidate)
        :data:`NO_TOKEN` in empty cells. First draws, then distinct answers that are not among them, then stones.
    source : ndarray of str, shape (item, candidate)
    batch : ndarray of int, shape (item, candidate)
        Batch of answers after which the token was a candidate.
    answer : ndarray of int, shape (item, answer)
        Tokens answered freely.
    answer_batch : ndarray of int, shape (answer,)
    answer_cell : ndarray of int, shape (item, answer)
        Column of the token answered, -1 for the target.
    stone : ndarray of int, shape (item, stone)
        Stepping stones that may be asked about.
    """

    token: IntArray
    source: NDArray[np.object_]
    batch: IntArray
    answer: IntArray
    answer_batch: IntArray
    answer_cell: IntArray
    stone: IntArray


@dataclass(frozen=True, eq=False)
class Asked:
    """Comparisons, in long form; every array has shape (response,), in the order of asking.

    Attributes
    ----------
    item, participant, candidate, reference : ndarray of int
        Candidate and reference are columns of the cells, the reference -1 for the target.
    report : ndarray of float
        Probability given to the reference.
    """

    item: IntArray
    participant: IntArray
    candidate: IntArray
    reference: IntArray
    report: FloatArray


def who_is_asked(design: QuestionDesign, n_items: int, seed: int) -> tuple[IntArray, IntArray]:
    """Choose who answers an item freely and who compares: different people where there are enough, all alike often.

    Parameters
    ----------
    design : QuestionDesign
    n_items : int
    seed : int

    Returns
    -------
    answering, comparing : ndarray of int, shape (item, n_answers) and (item, n_comparisons)
        Participants: nobody answers an item twice, and everybody compares ``design.n_comparisons_each`` of its tokens
        one after the other; how many items they compare differs by one at most.
    """
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
    """Draw candidates and free answers.

    Parameters
    ----------
    players : Players
    target : ndarray of int, shape (item,)
    design : QuestionDesign
    answering : ndarray of int, shape (item, answer)
        Who answers freely.
    answer_exponent : float

    Returns
    -------
    Cells
    """
    n_items, seed, n_stones = target.size, players.seed, design.n_stones if design.chains else 0
    drawn = draw_tokens(players.generator, design.n_draws, random_stream(seed, "candidate"))
    answer = free_answers(players, answering, answer_exponent)
    batch_of_answer = 1 + np.arange(design.n_answers) * design.n_batches // max(design.n_answers, 1)
    shape = n_items, design.n_draws + design.n_answers + n_stones
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
    stone = np.empty((n_items, 0), dtype=np.intp)
    if n_stones:
        stone = sample_rows(players.generator, STONE_EXPONENT, random_stream(seed, "stone").random((n_items, n_stones)))
    return Cells(token, source, batch, answer, batch_of_answer, cell, stone)


def ask_comparisons(
    players: Players, target: IntArray, design: QuestionDesign, cells: Cells, comparing: IntArray
) -> tuple[Asked, Cells]:
    """Ask the comparisons of all items, one of each at a time; what comes next depends on the item's reports alone.

    Parameters
    ----------
    players : Players
    target : ndarray of int, shape (item,)
    design : QuestionDesign
    cells : Cells
    comparing : ndarray of int, shape (item, comparison)
        Who compares.

    Returns
    -------
    Asked
    Cells
        With the stones that were asked about.
    """
    scale = rounding_scheme(design.scale)
    lowest, highest = (scale.values[0], scale.values[-1]) if scale.values else (-np.inf, np.inf)
    n_items, first_stone = target.size, design.n_draws + design.n_answers
    rng = random_stream(players.seed, "order")
    # every token by the first column that holds it; stones have columns of their own, which are filled when asked
    columns, items = [], []
    for q in range(n_items):
        column = {int(target[q]): TARGET_POSITION}
        for j, x in enumerate([*cells.token[q, :first_stone].tolist(), *cells.stone[q].tolist()]):
            if x != NO_TOKEN:
                column.setdefault(x, j)
        tokens = [j for j in column.values() if 0 <= j < first_stone]
        items.append(start_questions(rng.permutation(tokens).tolist(), [column[x] for x in cells.stone[q].tolist()]))
        columns.append({j: x for x, j in column.items()})
    found: list[tuple[IntArray, ...]] = []
    reports = []
    for occasion in range(comparing.shape[1]):
        pairs = [next_comparison(item) for item in items]
        chosen = np.array([(TARGET_POSITION, TARGET_POSITION) if pair is None else pair for pair in pairs])
        token = np.array([[columns[q][j] for j in pair] for q, pair in enumerate(chosen.tolist())])
        who = comparing[:, occasion]
        report = report_comparisons(players, who, token[:, 0], token[:, 1], scale, occasion=occasion)
        at_end, log_ratio = (report <= lowest) | (report >= highest), log_ratio_from_report(report)
        asked = np.flatnonzero([pair is not None for pair in pairs])
        for q in asked.tolist():
            x, reference = chosen[q].tolist()
            note_report(items[q], x, reference, float(log_ratio[q]), bool(at_end[q] and design.chains))
        found.append((asked, who[asked], chosen[asked, 0], chosen[asked, 1]))
        reports.append(report[asked])
    item, participant, candidate, reference = (np.concatenate(part) for part in zip(*found, strict=True))
    token, source, batch = cells.token.copy(), cells.source.copy(), cells.batch.copy()
    for q, one in enumerate(items):
        used = slice(first_stone, first_stone + one.used_stones)
        token[q, used], source[q, used] = cells.stone[q, : one.used_stones], PROPOSAL
        batch[q, used] = design.n_batches if design.n_answers else 0
    kept = np.any(token != NO_TOKEN, axis=0)
    kept[:first_stone] = True
    asked_about = replace(cells, token=token[:, kept], source=source[:, kept], batch=batch[:, kept])
    return Asked(item, participant, candidate, reference, np.concatenate(reports)), asked_about
