"""Who is asked what: many sessions at once, quotas, sides, silent sessions, documents."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sqlalchemy import func, select, update

from shannon_game.experiments.collect import play, sessions
from shannon_game.experiments.collect.collection import Collection, open_collection
from shannon_game.experiments.collect.database import Database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.tables import ANSWERED, Answer, Assignment, Question, Session

ANSWERS = {"comparison": {"report": "70"}, "cloze": {"word": "the"}, "top1": {"token": " the"}}


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    return collect_demo().isel(item=slice(0, 30))


def opened(database: Database, study: xr.Dataset, **settings: Any) -> Collection:
    plain: dict[str, Any] = {"game": "comparison", "training_rounds": 0, "attention_share": 0}
    return open_collection(CollectSettings(**plain | settings), study, database)


def enter(collection: Collection, token: str, game: str = "comparison") -> None:
    with collection.database.write() as transaction:
        session = sessions.enter(
            transaction, collection, game=game, token=token, language="en", screen="", recruiter={}
        )
        session.state = "play"


def one(collection: Collection, token: str, *, answer: bool = True) -> play.Asked | None:
    """Show the next question, and answer it."""
    with collection.database.write() as transaction:
        session = sessions.session_of(transaction, collection, token, lock=True)
        assert session is not None
        asked = play.show(transaction, collection, session) if session.state == "play" else None
        game = session.game
    if asked is not None and answer:
        with collection.database.write() as transaction:
            session = sessions.session_of(transaction, collection, token, lock=True)
            assert session is not None
            play.submit(transaction, collection, session, {"order": str(asked.order), "step": "0", **ANSWERS[game]})
    return asked


def silence(database: Database, token: str) -> None:
    with database.write() as transaction:
        whose = Session.token_hash == sessions.token_hash(token)
        transaction.execute(update(Session).where(whose).values(active_at=Session.active_at - 10_000))


def counters(database: Database) -> list[tuple[int, int, int]]:
    with database.read() as transaction:
        answered = select(func.count(Answer.id)).join(Assignment).where(Assignment.question_id == Question.id)
        rows = transaction.execute(select(Question.n_served, Question.n_held, answered.scalar_subquery()))
        return [(served, held, answered) for served, held, answered in rows]


def test_sessions_at_once_keep_the_quota_and_balance_questions_and_sides(database: Database, study: xr.Dataset) -> None:
    collection = opened(database, study, n_questions=12, answers_per_question=4)
    n_sessions, errors = 12, []

    def player(name: str) -> None:
        try:
            enter(collection, name)
            while one(collection, name) is not None:
                pass
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=player, args=(f"p{number}",)) for number in range(n_sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with database.read() as transaction:
        rows = transaction.execute(
            select(Assignment.session_id, Assignment.question_id, Assignment.layout, Assignment.order)
        ).all()
        assert set(transaction.scalars(select(Assignment.state))) == {ANSWERED}
        assert set(transaction.scalars(select(Session.state))) == {"after"}
    # nobody is asked twice, and the orders of a session are 0, 1, 2 ...
    assert len({(row.session_id, row.question_id) for row in rows}) == len(rows)
    for session_id in {row.session_id for row in rows}:
        orders = sorted(row.order for row in rows if row.session_id == session_id)
        assert orders == list(range(len(orders)))
    by_question = Counter(row.question_id for row in rows)
    assert max(by_question.values()) <= 4
    # nothing is closed to anybody but by the quota and by what the person has read
    assert len(rows) > 0.9 * 4 * 30
    for question_id in by_question:
        sides = Counter(row.layout["target_side"] for row in rows if row.question_id == question_id)
        assert abs(sides["A"] - sides["B"]) <= 1
    for served, held, answered in counters(database):
        assert served == held == answered


def test_a_silent_session_gives_its_question_to_others(database: Database, study: xr.Dataset) -> None:
    # two questions and one answer each
    collection = opened(database, study.isel(item=slice(0, 2)), n_questions=1, answers_per_question=1)
    enter(collection, "silent")
    left = one(collection, "silent", answer=False)
    assert left is not None
    for name in ("a", "b"):
        enter(collection, name)
    taken = one(collection, "a")
    assert taken is not None
    assert taken.card.id != left.card.id
    assert one(collection, "b") is None
    silence(database, "silent")
    collection._released_at = 0.0
    enter(collection, "c")
    given = one(collection, "c", answer=False)
    assert given is not None
    assert given.card.id == left.card.id
    # who comes back answers all the same: one more than the quota, and no more
    back = one(collection, "silent")
    assert back is not None
    assert back.card.id == left.card.id
    one(collection, "c")
    assert sorted(counters(database)) == [(1, 1, 1), (2, 2, 2)]


def test_balanced_asks_everything_once_before_anything_twice(database: Database, study: xr.Dataset) -> None:
    collection = opened(database, study, n_questions=5)
    for number in range(6):
        enter(collection, f"p{number}")
        while one(collection, f"p{number}") is not None:
            counts = [served for served, _, _ in counters(database)]
            # what a person has read closes some questions to that person
            assert max(counts) - min(counts) <= 2
    assert np.ptp([served for served, _, _ in counters(database)]) <= 2
