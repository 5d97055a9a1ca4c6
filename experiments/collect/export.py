"""Everything that was answered, one row per answer, for R, Python or a spreadsheet."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from sqlalchemy import select
from sqlalchemy.orm import Session as Transaction

from shannon_game.experiments.collect.tables import Answer, Assignment, Player, Question, Session, Study
from shannon_game.experiments.harness.csv_tables import csv_text

__all__ = ["COLUMNS", "answer_rows", "answers_csv", "export_csv"]

COLUMNS = (
    *("study", "game", "item", "document", "position", "participant", "session", "order", "training", "attention"),
    *("layout", "probability", "policy", "steps", "answer", "automatic", "correct", "score", "shown_at"),
    *("answered_at", "server_ms", "client_ms", "revisions", "page_version", "language", "screen", "pilot", "state"),
    *("consented_at", "started_at", "ended_at"),
)
"""Of the table; times in seconds since 1970, ``layout``, ``steps`` and ``answer`` as JSON."""


def answer_rows(transaction: Transaction, study_id: int) -> list[dict[str, Any]]:
    """Read all answers of a study in the order in which they were asked, by session."""
    query = (
        select(Study.name, Question, Player.pseudonym, Session, Assignment, Answer)
        .select_from(Answer)
        .join(Assignment, Assignment.id == Answer.assignment_id)
        .join(Question, Question.id == Assignment.question_id)
        .join(Session, Session.id == Assignment.session_id)
        .join(Player, Player.id == Session.player_id)
        .join(Study, Study.id == Session.study_id)
        .where(Study.id == study_id)
        .order_by(Session.id, Assignment.order)
    )
    rows = []
    for name, question, pseudonym, session, assignment, answer in transaction.execute(query):
        own = {"study": name, "participant": pseudonym, "session": session.id, "item": question.item_id}
        own |= {"answer": answer.value, "training": assignment.training}
        holders = (answer, assignment, question, session)
        rows.append({column: own[column] if column in own else _first(holders, column) for column in COLUMNS})
    return rows


def answers_csv(transaction: Transaction, study_id: int) -> str:
    """Write all answers of a study as CSV."""
    return export_csv(pd.DataFrame(answer_rows(transaction, study_id), columns=list(COLUMNS), dtype=object))


def export_csv(table: pd.DataFrame) -> str:
    """Write a table as guarded CSV; true and false are 1 and 0, lists and mappings JSON."""
    return csv_text(table.astype(object).map(_cell))


def _first(holders: tuple[Any, ...], column: str) -> Any:
    """Read a column from the first table that has it; the assignment has the state of nothing but itself."""
    if column == "state":
        return holders[3].state
    return next(getattr(each, column) for each in holders if hasattr(each, column))


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(int(value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
