"""Where the candidates of a comparison study's tables come from, and the table of people's free answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimators.comparison import SOURCES
from estimators.errors import unknown_choice
from experiments.studies.comparison.table_columns import ComparisonColumns
from experiments.studies.parsing import Note, shown
from experiments.studies.plain_table import Table, refuse_other_lead

__all__ = ["FREE_ANSWERS", "cells", "free_answers_of", "references_of", "sources_of"]

FREE_ANSWERS = ("item", "participant", "answer")
"""Columns that a table of free answers needs."""

_CELLS = ("item", "candidate")
_GIVEN = SOURCES[:-1]  # a row is no padding


def cells(values: NDArray[Any], rows: NDArray[np.intp], fill: object) -> NDArray[Any]:
    """Values of the rows that make up the table (item, candidate), and a filling where a row is -1."""
    found = values[np.maximum(rows, 0)]
    found[rows < 0] = fill
    return found


def sources_of(pairs: Table, columns: ComparisonColumns, rows: NDArray[np.intp]) -> dict[str, Any]:
    """Make the variables that say where candidates come from, of the columns that there are."""
    there = pairs.names
    variables: dict[str, Any] = {}
    if columns.source in there:
        source = pairs.ids(columns.source)
        for row, value in enumerate(source.tolist()):
            if value not in _GIVEN:
                raise unknown_choice(columns.source, value, _GIVEN, source=f"{pairs.source}, {pairs.where(row)}")
        variables["candidate_source"] = (_CELLS, cells(source, rows, "padding"))
    elif (rows < 0).any():
        variables["candidate_source"] = (_CELLS, np.where(rows < 0, "padding", "generator").astype(object))
    for name in ("proposal_logprob", "inclusion_logprob"):
        column = getattr(columns, name)
        if column in there:
            value = cells(pairs.logprobs(column, empty=True), rows, np.nan)
            variables[name] = (_CELLS, value, {"units": "nats"})
    if columns.batch in there:
        variables["candidate_batch"] = (_CELLS, cells(pairs.whole(columns.batch), rows, 0).astype(np.int64))
    return variables


def references_of(
    table: Table,
    columns: ComparisonColumns,
    rows: NDArray[np.intp],
    item: NDArray[np.int64],
    draws: NDArray[np.object_],
) -> dict[str, Any]:
    """Make ``response_reference`` of the answers' column; an empty cell is the target."""
    if columns.reference not in table.names:
        return {}
    given = table.ids(columns.reference, rows=rows, empty=True)
    place = {(i, name): j for i, of_item in enumerate(draws.tolist()) for j, name in enumerate(of_item)}
    reference = np.full(given.size, -1, dtype=np.int64)
    for response in np.flatnonzero(given != ""):
        found = place.get((int(item[response]), given[response]))
        if found is None:
            raise table.error(
                f"is {shown(given[response])} in {table.where(rows[response])}, which is no draw of the item; empty is "
                "the target",
                columns.reference,
            )
        reference[response] = found
    return {"response_reference": ("response", reference)}


def free_answers_of(
    table: Table, columns: ComparisonColumns, names: Sequence[str], variables: dict[str, Any]
) -> dict[str, Any]:
    """Make the variables along ``answer``; a token is found among the target and the candidates by its string."""
    item, who = (table.ids(columns.of_free_answers(name)) for name in FREE_ANSWERS[:2])
    answer = table.filled(columns.of_free_answers(FREE_ANSWERS[2]))
    position = {name: at for at, name in enumerate(names)}
    for row, name in enumerate(item.tolist()):
        if name not in position:
            problem = f"is {shown(name)} in {table.where(row)}, which the pairs do not have"
            raise table.error(problem, columns.of_free_answers("item"))
    at = np.array([position[name] for name in item.tolist()], dtype=np.int64)
    token, target = variables["candidate_token"][1], variables["target_token"][1]
    refuse_other_lead(table, columns.answer, answer[:, None], np.column_stack([target, token])[at])
    made: dict[str, Any] = {}
    if "candidate_batch" not in variables:
        answered = variables["candidate_source"][1] == "answer" if "candidate_source" in variables else False
        made["candidate_batch"] = (_CELLS, np.zeros(token.shape, dtype=np.int64) + answered)
    batch = (made or variables)["candidate_batch"][1]
    # of a token that is there twice, the cell that was there first
    place: dict[tuple[int, str], int] = {}
    for i, j in zip(*np.unravel_index(np.argsort(batch, axis=None, kind="stable"), batch.shape), strict=True):
        place.setdefault((int(i), token[i, j]), int(j))
    code = [
        -1 if text == target[i] else place.get((int(i), text), -2) for i, text in zip(at, answer.tolist(), strict=True)
    ]
    found = np.array(code, dtype=np.int64)
    outside = int((found == -2).sum())
    if outside:
        text = "free answers that are neither the target nor a candidate: no report can value them"
        table.notes.append(Note(text, outside, "warning"))
    of_batch = table.whole(columns.batch).astype(np.int64) if columns.batch in table.names else np.ones_like(at)
    made |= {
        "answer_item": ("answer", at),
        "answer_participant": ("answer", who),
        "answer_candidate": ("answer", found),
        "answer_batch": ("answer", of_batch),
    }
    return made
