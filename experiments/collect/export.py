"""What people answered, as tables: a row per answer (a guess, a word that was bet on), per survey answer, per visit.

Exports write these tables, and ``study=collected`` makes its studies of them. What counts is defined here once:
answers that are :data:`~shannon_game.experiments.collect.tables.COUNTED`, and the points of these.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session as Transaction

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.bundle import bundle_texts, free_questions
from shannon_game.experiments.collect.dictionary import column, data_dictionary, data_package
from shannon_game.experiments.collect.games.protocol import CHECK
from shannon_game.experiments.collect.games.registry import GAMES, known_game
from shannon_game.experiments.collect.settings import PaySettings
from shannon_game.experiments.collect.tables import (
    COUNTED,
    REJECTED,
    Answer,
    Assignment,
    Player,
    Question,
    Session,
    Study,
    SurveyAnswer,
)
from shannon_game.experiments.harness.csv_tables import csv_text
from shannon_game.inference.disk import write_whole
from shannon_game.inference.manifest import replaced

PAY_COLUMNS = (
    *("recruiter_id", "participant", "game", "state", "completion_code", "n_answers", "n_announced"),
    *("n_failed_checks", "score_points", "base", "bonus", "total", "currency"),
)
"""Columns of the table of pay; amounts are rounded to cents."""

_COLUMNS: Mapping[str, Any] = {
    "study": Study.name,
    "game": Question.game,
    "item": Question.item_id,
    "document": Question.document,
    "position": Question.position,
    "participant": Player.pseudonym,
    "session": Session.id,
    "arm": Session.arm,
    "list": Session.item_list,
    "order": Assignment.order,
    "training": Assignment.training,
    "attention": Question.attention,
    "rules_tries": Session.rules_tries,
    "failed_checks": Session.n_failed,
    "consent_version": Session.consent_version,
    "n_announced": Session.n_announced,
    "automatic": Answer.automatic,
    "correct": Answer.correct,
    "score_points": Answer.score,
    "server_ms": Answer.server_ms,
    "client_ms": Answer.client_ms,
    "revisions": Answer.revisions,
    **{name: getattr(Answer, name) for name in ("frame_us", "hidden_ms", "n_hidden")},
    "shown_at": Assignment.shown_at,
    "answered_at": Answer.answered_at,
    "probability": Assignment.probability,
    "policy": Assignment.policy,
    "page_version": Answer.page_version,
    "language": Session.language,
    "screen": Session.screen,
    "pointer": Session.pointer,
    "pilot": Session.pilot,
    "state": Session.state,
}
COMMON = (*_COLUMNS, "context", "target")
"""Columns of every game; ``data/columns.yaml`` says what each is."""


def tidy_answers(transaction: Transaction, game: str, *, study_ids: Iterable[int]) -> pd.DataFrame:
    """Read all answers of a game, in the order in which they were asked, by session."""
    query = (
        select(Question.content, Assignment.layout, Answer.value)
        .add_columns(Assignment.steps, *(column.label(name) for name, column in _COLUMNS.items()))
        .select_from(Answer)
        .join(Assignment, Assignment.id == Answer.assignment_id)
        .join(Question, Question.id == Assignment.question_id)
        .join(Session, Session.id == Assignment.session_id)
        .join(Player, Player.id == Session.player_id)
        .join(Study, Study.id == Session.study_id)
        .where(Study.id.in_(list(study_ids)), Question.game == game)
        .order_by(Session.id, Assignment.order)
    )
    rows = []
    for found in transaction.execute(query).mappings():
        content = found["content"]
        # of an earlier version: a practice round was asked until it was right: what was wrong is no step of the answer
        steps = [step for step in found["steps"] if not step.get("tried")]
        common = {name: found[name] for name in _COLUMNS} | {
            "rules_tries": found["rules_tries"].get(game),
            "context": content.get("context", ""),
            # of an attention check what it asks for is the right answer
            "target": str(content.get(CHECK, content["target"])),
        }
        rows += [common | own for own in GAMES[game].rows(content, found["layout"], found["value"], steps)]
    return pd.DataFrame(rows, columns=[*COMMON, *GAMES[game].columns])


def games_answered(transaction: Transaction, *, study_ids: Iterable[int]) -> list[str]:
    """Games of which there are answers, in the order of :data:`GAMES`."""
    query = select(Question.game).join(Assignment).join(Answer).where(Question.study_id.in_(list(study_ids))).distinct()
    found = {known_game(name) for name in transaction.scalars(query)}
    return [game for game in GAMES if game in found]


def survey_answers(transaction: Transaction, *, study_ids: Iterable[int]) -> pd.DataFrame:
    """Read the answers to the questions before and after the game."""
    columns = ("study", "participant", "session", "game", "moment", "question", "value", "answered_at")
    query = (
        select(Study.name, Player.pseudonym, Session.id, Session.game, SurveyAnswer.moment, SurveyAnswer.question)
        .add_columns(SurveyAnswer.value, SurveyAnswer.answered_at)
        .select_from(SurveyAnswer)
        .join(Session, Session.id == SurveyAnswer.session_id)
        .join(Player, Player.id == Session.player_id)
        .join(Study, Study.id == Session.study_id)
        .where(Study.id.in_(list(study_ids)))
        .order_by(Session.id, SurveyAnswer.id)
    )
    found = pd.DataFrame([tuple(row) for row in transaction.execute(query)], columns=list(columns))
    # a question before or after is about the whole visit, which may have several games
    return found.assign(game=found["session"].map(_games_of_visits(transaction, study_ids)).fillna(found["game"]))


def visits(
    transaction: Transaction, study_id: int, *which: Any
) -> list[Row[Session, Player, int, int, int, float | None]]:
    """Read visits with their persons, numbers of answers that count, of failed checks and of all checks, and points."""
    query = (
        select(
            Session,
            Player,
            func.count(Answer.id).filter(COUNTED).label("n_answers"),
            func.count(Answer.id).filter(Question.attention & Answer.correct.is_(False)).label("n_failed"),
            func.count(Answer.id).filter(Question.attention).label("n_checks"),
            func.sum(Answer.score).filter(COUNTED).label("points"),
        )
        .join(Player, Player.id == Session.player_id)
        .outerjoin(Assignment, Assignment.session_id == Session.id)
        .outerjoin(Question, Question.id == Assignment.question_id)
        .outerjoin(Answer, Answer.assignment_id == Assignment.id)
        .where(Session.study_id == study_id, *which)
        .group_by(Session.id, Player.id)
        .order_by(Session.id)
    )
    return list(transaction.execute(query))


def points_by_game(transaction: Transaction, session: Session) -> dict[str, float]:
    """Sum the points of a visit's answers, for each game that has points."""
    query = (
        select(Question.game, func.sum(Answer.score))
        .select_from(Answer)
        .join(Assignment)
        .join(Question)
        .where(Assignment.session_id == session.id, COUNTED, Answer.score.is_not(None))
    )
    return {game: float(points or 0.0) for game, points in transaction.execute(query.group_by(Question.game))}


def _games_of_visits(transaction: Transaction, study_ids: Iterable[int]) -> dict[int, str]:
    """Games of each visit, in their order."""
    played = select(Assignment.session_id, Question.game).join(Question).where(Question.study_id.in_(list(study_ids)))
    played = played.group_by(Assignment.session_id, Question.game).order_by(func.min(Assignment.id))
    games = defaultdict[int, list[str]](list)
    for session_id, game in transaction.execute(played):
        games[session_id].append(game)
    return {session_id: " and ".join(its) for session_id, its in games.items()}


def pay_table(transaction: Transaction, study_id: int, pay: PaySettings) -> pd.DataFrame:
    """Say what every visit earned: the base where it is complete, and the bonus of its points."""
    rows: list[tuple[Any, ...]] = []
    games = _games_of_visits(transaction, [study_id])
    for session, player, n_answers, n_failed, _, points in visits(transaction, study_id):
        base = {"done": pay.base, "screened": pay.screened}.get(session.state, 0.0)
        won = float(points or 0.0)
        earned = 0.0 if session.state in REJECTED else max(won, 0.0) / 1000 * pay.bonus_per_1000_points
        bonus = round(earned if pay.most is None else min(earned, pay.most), 2)
        what = games.get(session.id, session.game)
        who = player.recruiter_id, player.pseudonym, what, session.state, session.completion_code
        counts = n_answers, session.n_announced, n_failed, round(won, 1)
        rows.append((*who, *counts, base, bonus, round(base + bonus, 2), pay.currency))
    return pd.DataFrame(rows, columns=list(PAY_COLUMNS))


def answers_csv(transaction: Transaction, study_id: int) -> str:
    """Write all answers of a study as one CSV; a game leaves the columns of others empty."""
    there = games_answered(transaction, study_ids=[study_id])
    tables = [tidy_answers(transaction, game, study_ids=[study_id]).astype(object) for game in there]
    columns = [*COMMON, *dict.fromkeys(name for game in there for name in GAMES[game].columns)]
    return export_csv(pd.concat(tables) if tables else pd.DataFrame(), columns)


def export_csv(table: pd.DataFrame, columns: Iterable[str] | None = None, *, file: str = "answers") -> str:
    """Write a table as guarded CSV; true and false are 1 and 0, whole numbers have no point, lists are JSON."""
    table = table.reindex(columns=list(table.columns if columns is None else columns))
    whole = {name: "Int64" for name in table if column(file, str(name))["type"] == "integer"}
    return csv_text(table.astype(whole).astype(object).map(_cell))


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return str(int(value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def chosen_study(transaction: Transaction, collection: str | None = None) -> Study:
    """Find the study of a database by its name or number; the only one by default."""
    there = transaction.scalars(select(Study).order_by(Study.id)).all()
    named = {study.id: (study.name, study.name) for study in there}
    chosen = chosen_number(named, collection, source="database")
    return next(study for study in there if study.id == chosen)


def chosen_number(there: Mapping[int, tuple[str, str]], wanted: str | None, *, source: str) -> int:
    """Find a study by its name or number; the only one by default."""
    found = [number for number, (name, _) in there.items() if wanted is None or wanted in (str(number), name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{number} ({said})" for number, (_, said) in there.items()) or "none"
    if wanted is None or found:
        problem = f"should name one of the studies in the database: {listed}"
    else:
        problem = f"is {wanted!r}; there are {listed}"
    raise InputError(problem, source=source, field="collection")


def write_exports(
    transaction: Transaction, study: Study, folder: Path | str, *, pay: bool = True, bundle: bool = False
) -> list[Path]:
    """Write ``answers_GAME.csv`` for every game that was answered, ``surveys.csv``, ``pay.csv``, and what is in them.

    ``data_dictionary.csv`` has a row per column; ``datapackage.json`` says the same to programs. A `bundle` for a
    repository has the plan and the consent too, and neither pay nor what people wrote in answer to questions.
    """
    folder = Path(folder)
    tables = {
        f"answers_{game}": tidy_answers(transaction, game, study_ids=[study.id])
        for game in games_answered(transaction, study_ids=[study.id])
    }
    tables["surveys"] = survey_answers(transaction, study_ids=[study.id])
    texts = bundle_texts(study) if bundle else {}
    if bundle:
        tables["surveys"] = tables["surveys"].query("question not in @free", local_dict={"free": free_questions(study)})
    elif pay:
        tables["pay"] = pay_table(transaction, study.id, PaySettings(**study.settings.get("pay", {})))
    with replaced(folder, "export") as staging:
        for name, table in tables.items():
            write_whole(staging / f"{name}.csv", export_csv(table, file=name), private=True)
        columns = {name: list(table.columns) for name, table in tables.items()}
        write_whole(staging / "data_dictionary.csv", csv_text(data_dictionary(columns)), private=True)
        package = json.dumps(data_package(study.name, columns), ensure_ascii=False, indent=1)
        for name, text in {"datapackage.json": package + "\n", **texts}.items():
            write_whole(staging / name, text)
    written = [f"{name}.csv" for name in (*tables, "data_dictionary")]
    return [folder / name for name in (*written, "datapackage.json", *texts)]
