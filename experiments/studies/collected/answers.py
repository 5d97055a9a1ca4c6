"""Answers of a collection that count: read from the database, sessions left out by rules, all of it counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import func, select
from sqlalchemy.orm import Session as Transaction

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.collect.database import existing_database
from shannon_game.experiments.collect.export import chosen_number, tidy_answers
from shannon_game.experiments.collect.games.protocol import BY_SCRIPT
from shannon_game.experiments.collect.tables import Answer, Assignment, Question, Study
from shannon_game.experiments.studies.collected.settings import CollectedSettings
from shannon_game.experiments.studies.parsing import Note

SOURCE = "study collected"
_Rule = tuple["pd.Series[bool]", str, str | None]
_TIMES = ("server_ms", *BY_SCRIPT, "answered_at", "score_points")


@dataclass(frozen=True, eq=False)
class Collected:
    """What a database holds of one study and game: answers and questions that count, and notes on the others.

    Questions have ``item``, ``document`` and ``position``, answered or not; ``aside`` are those of the training. Free
    answers are those of the cloze game.
    """

    name: str
    answers: pd.DataFrame
    questions: list[dict[str, Any]]
    aside: list[dict[str, Any]]
    free_answers: pd.DataFrame | None
    notes: list[Note]


def read_collection(settings: CollectedSettings) -> Collected:
    """Read the answers of a game."""
    with existing_database(settings.url, field=Set("study.url")) as database, database.read() as transaction:
        return collected_answers(transaction, settings)


def collected_answers(transaction: Transaction, settings: CollectedSettings) -> Collected:
    """Read the answers of a game from a database that is open."""
    study_id, name = _study(transaction, settings)
    notes: list[Note] = []
    answers = _counted(tidy_answers(transaction, settings.game, study_ids=[study_id]), settings, notes)
    free = None
    if settings.game == "comparison" and settings.free_answers:
        cloze = tidy_answers(transaction, "cloze", study_ids=[study_id])
        free = _counted(cloze, settings, [], needed=False) if len(cloze) else None
    questions, aside = (
        _questions(transaction, settings.game, study_id, training=training) for training in (False, True)
    )
    return Collected(name, answers, questions, aside, free, notes)


def response_variables(answers: pd.DataFrame) -> dict[str, Any]:
    """Variables along ``response`` that every game has: session, order and times, NaN where they are not known."""
    found: dict[str, Any] = {
        "session": ("response", answers["session"].to_numpy(dtype=np.int64)),
        "order": ("response", answers["order"].to_numpy(dtype=np.int64)),
    }
    units = {name: "ms" for name in _TIMES if name.endswith("_ms")} | {"frame_us": "us", "answered_at": "s since 1970"}
    for name in _TIMES:
        values = pd.to_numeric(answers[name]).to_numpy(dtype=float)
        found[name] = ("response", values, {"units": units[name]} if name in units else {})
    return found


def _study(transaction: Transaction, settings: CollectedSettings) -> tuple[int, str]:
    counted = (
        select(Study.id, Study.name, Question.game, func.count(Answer.id))
        .select_from(Answer)
        .join(Assignment)
        .join(Question)
        .join(Study, Study.id == Question.study_id)
        .group_by(Study.id, Study.name, Question.game)
        .order_by(Study.id)
    )
    rows = [(number, name, game, n) for number, name, game, n in transaction.execute(counted)]
    if not rows:
        raise InputError("holds no answer yet", source=SOURCE, field="url")
    of_game = [(number, name, n) for number, name, game, n in rows if game == settings.game]
    if not of_game:
        games = ", ".join(sorted({game for _, _, game, _ in rows}))
        raise InputError(
            f"is {settings.game!r}, of which there are no answers; there are of {games}", source=SOURCE, field="game"
        )
    there = {number: (name, f"{name}, {n:,} answers") for number, name, n in of_game}
    chosen = chosen_number(there, settings.collection, source=SOURCE)
    return chosen, there[chosen][0]


def _questions(transaction: Transaction, game: str, study_id: int, *, training: bool) -> list[dict[str, Any]]:
    query = (
        select(Question)
        .where(
            Question.study_id == study_id,
            Question.game == game,
            Question.training == training,
            Question.attention.is_(False),
        )
        .order_by(Question.id)
    )
    return [
        {**row.content, "item": row.item_id, "document": row.document, "position": row.position}
        for row in transaction.scalars(query)
    ]


def _counted(
    table: pd.DataFrame, settings: CollectedSettings, notes: list[Note], *, needed: bool = True
) -> pd.DataFrame:
    """Leave out sessions by the rules, then what was no question of the study."""
    rules: list[_Rule] = [
        (table["state"] == "withdrawn", "answers of people who withdrew", None),
        (table["state"] == "screened", "answers of people who were screened out", None),
        (table["pilot"] != settings.pilot, f"answers of sessions that are {'no' if settings.pilot else 'a'} pilot's",
         "pilot"),
        (table["participant"].isin(settings.exclude_participants), "answers of excluded participants",
         "exclude_participants"),
    ]  # fmt: skip
    if settings.sessions == "complete":
        rules.append((table["state"] != "done", "answers of sessions that were not completed", "sessions"))
    rules += _flags(table, settings)
    rules.append((table["training"], "answers of training rounds", None))
    rules.append((table["attention"], "answers to attention checks", None))
    for left_out, text, field in rules:
        here = left_out.loc[table.index].astype(bool)
        table, dropped = table[~here], int(here.sum())
        if dropped:
            notes.append(Note(f"{text}{f' ({field})' if field else ''}, left out", dropped))
    if needed and table.empty:
        left = "; ".join(f"{note.count} {note.text}" for note in notes)
        raise InputError(f"holds no answer that counts: {left}", source=SOURCE, field="url")
    return table.reset_index(drop=True)


def _flags(table: pd.DataFrame, settings: CollectedSettings) -> list[_Rule]:
    """Rows of sessions that a rule of quality leaves out, for each rule that is on."""
    found: list[_Rule] = []
    session = table["session"]
    own = table[~table["training"].astype(bool) & ~table["attention"].astype(bool) & ~table["automatic"].astype(bool)]
    if settings.most_failed_checks is not None:
        checks = table[table["attention"].astype(bool)]
        failed = (checks["correct"] == False).groupby(checks["session"]).sum()  # noqa: E712 - None is no failure
        bad = failed.index[failed > settings.most_failed_checks]
        text = "answers of sessions that failed attention checks"
        found.append((session.isin(bad), text, "most_failed_checks"))
    if settings.fastest_ms is not None:
        median = pd.to_numeric(own["server_ms"]).groupby(own["session"]).median()
        bad = median.index[median < settings.fastest_ms]
        found.append((session.isin(bad), "answers of sessions that were too fast", "fastest_ms"))
    given = next((name for name in ("percent_a", "word", "guess") if name in table.columns), None)
    if given == "percent_a":
        own = own.assign(percent_a=own["percent_a"].fillna(own["box_a"]))
    if settings.most_alike is not None and given is not None:
        share = own.groupby("session")[given].agg(lambda values: values.value_counts(normalize=True).iloc[0])
        bad = share.index[share > settings.most_alike]
        found.append((session.isin(bad), "answers of sessions with one answer too often", "most_alike"))
    return found
