"""Which question comes next: balanced, random, in order or adaptive; training, attention checks and quotas.

Balanced: the questions with the fewest holders (people who have answered them or are about to) come first, drawn at
random among equals. The choice and its count are one transaction of the writer's queue (SQLite) or under a lock on the
study (PostgreSQL), so that two sessions at once never see one count: as long as everybody goes on, a quota of k is k.
A session that was silent for ``idle_minutes`` gives its open question back; where its person comes back and answers all
the same, the question has one answer more than k. A quota is thus exceeded by no more than the sessions that were
silent and came back.

A question is not asked of somebody who has read on in its document: a context that was shown holds the answer.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from sqlalchemy import ColumnElement, and_, exists, func, select, update
from sqlalchemy.orm import Session as Transaction
from sqlalchemy.orm import aliased

from estimators.errors import InputError
from experiments.collect.register import n_checks
from experiments.collect.settings import CollectSettings
from experiments.collect.tables import ANSWERED, OPEN, Answer, Assignment, Question, Session, Study

__all__ = ["Choice", "Chooser", "check_places", "choose", "count_main", "layout_rng", "release_idle", "take_back"]


class Chooser(Protocol):
    """What ``questions: adaptive`` asks for the next question."""

    def next_question(self, session: Session, open: Sequence[Question]) -> tuple[Question, float]:  # noqa: A002
        """Choose one of the questions that are open to a session, and say with which probability it was drawn."""
        ...


@dataclass(frozen=True)
class Choice:
    """The next question of a session.

    Parameters
    ----------
    question : Question
    probability : float
        With which it was chosen among those that could have been.
    policy : str
        What chose it.
    """

    question: Question
    probability: float
    policy: str


def count_main(transaction: Transaction, session: Session, *, training: bool = False) -> int:
    """Count what a session has answered itself: questions that count, or training rounds."""
    query = (
        select(func.count())
        .select_from(Assignment)
        .join(Question)
        .join(Answer)
        .where(
            Assignment.session_id == session.id,
            Assignment.training == training,
            Question.attention.is_(False),
            Answer.automatic.is_(False),
        )
    )
    return transaction.scalar(query) or 0


def check_places(session: Session, settings: CollectSettings) -> list[int]:
    """Numbers of counted answers after which an attention check comes: one at random in each stretch of the session.

    Examples
    --------
    >>> places = check_places(Session(seed=1), CollectSettings(n_questions=40, attention_share=0.05))
    >>> len(places), 1 <= places[0] < 20 <= places[1] < 40
    (2, True)
    """
    edges = np.linspace(0, settings.n_questions, n_checks(settings) + 1).astype(int)
    rng = np.random.default_rng([session.seed, 1])
    # not before the first question
    return [int(rng.integers(max(first, 1), max(last, 2))) for first, last in pairwise(edges.tolist())]


def choose(
    transaction: Transaction, session: Session, settings: CollectSettings, chooser: Chooser | None = None
) -> Choice | None:
    """Choose the next question of a session; None where nothing is left for it.

    Parameters
    ----------
    transaction : sqlalchemy.orm.Session
        One that writes.
    session : Session
        In its training or its play.
    settings : CollectSettings
    chooser : Chooser, optional
        For ``questions: adaptive``.

    Returns
    -------
    Choice or None
    """
    # SQLite knows no row locks, and needs none: one transaction writes at a time
    transaction.execute(select(Study.id).where(Study.id == session.study_id).with_for_update())
    training = session.state == "training"
    order = next_order(transaction, session)
    if not training:
        check = _due_check(transaction, session, settings)
        if check is not None:
            return Choice(check, 1.0, "attention")
    if settings.order == "cumulative" and session.game != "comparison":
        following = _next_of_document(transaction, session, training=training)
        if following is not None:
            return Choice(following, 1.0, "next")
    rng = np.random.default_rng([session.seed, 2, order])
    rows = [(int(at), int(held)) for at, held in transaction.execute(_eligible(session, settings, training=training))]
    if not rows:
        return None
    policy = "random" if training else settings.questions
    if policy == "adaptive":
        return _adaptive(transaction, session, chooser, [at for at, _ in rows])
    if policy == "balanced":
        least = min(held for _, held in rows)
        rows = [row for row in rows if row[1] == least]
    if policy == "fixed":
        rows = rows[:1]
    question = transaction.get_one(Question, rows[int(rng.integers(len(rows)))][0], populate_existing=True)
    return Choice(question, 1 / len(rows), policy)


def next_order(transaction: Transaction, session: Session) -> int:
    """Order of a session's next assignment."""
    last = transaction.scalar(select(func.max(Assignment.order)).where(Assignment.session_id == session.id))
    return 0 if last is None else last + 1


def layout_rng(key: bytes, question: Question) -> np.random.Generator:
    """Random numbers for how a question is shown, the same for two people in a row, known to the server alone.

    Examples
    --------
    >>> one, two = (layout_rng(b"key", Question(id=7, n_served=n)).integers(1000) for n in (2, 3))
    >>> bool(one == two)
    True
    """
    digest = hmac.new(key, f"layout {question.id} {question.n_served // 2}".encode(), hashlib.sha256).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def release_idle(transaction: Transaction, study_id: int, *, silent_since: float) -> int:
    """Give the open questions of silent sessions to others, and say how many sessions those were."""
    silent = transaction.scalars(
        select(Session).where(
            Session.study_id == study_id,
            Session.state.in_(("training", "play")),
            Session.released.is_(False),
            Session.active_at < silent_since,
        )
    ).all()
    for session in silent:
        _hold(transaction, session, -1)
        session.released = True
    return len(silent)


def take_back(transaction: Transaction, session: Session) -> None:
    """Let a session that was silent hold its open question again."""
    if session.released:
        _hold(transaction, session, +1)
        session.released = False


def _hold(transaction: Transaction, session: Session, change: int) -> None:
    opened = select(Assignment.question_id).where(Assignment.session_id == session.id, Assignment.state == OPEN)
    transaction.execute(
        update(Question).where(Question.id.in_(opened)).values(n_held=Question.n_held + change),
        execution_options={"synchronize_session": False},
    )


def _of(session: Session) -> ColumnElement[bool]:
    return and_(Question.study_id == session.study_id, Question.game == session.game)


def _due_check(transaction: Transaction, session: Session, settings: CollectSettings) -> Question | None:
    done = count_main(transaction, session)
    n_due = sum(place <= done for place in check_places(session, settings))
    asked = select(Assignment.question_id).where(Assignment.session_id == session.id)
    checks = transaction.scalars(select(Question).where(_of(session), Question.attention).order_by(Question.id)).all()
    there = set(transaction.scalars(asked))
    n_asked = sum(check.id in there for check in checks)
    left = [check for check in checks if check.id not in there]
    return left[0] if left and n_asked < n_due else None


def _next_of_document(transaction: Transaction, session: Session, *, training: bool) -> Question | None:
    """Find the place after the last one that was answered; none after a document was left."""
    last = transaction.execute(
        select(Question.document, Question.position, Assignment.state)
        .join(Assignment)
        .where(Assignment.session_id == session.id, Assignment.training == training, Question.attention.is_(False))
        .order_by(Assignment.order.desc())
        .limit(1)
    ).first()
    if last is None or last.state != ANSWERED:
        return None
    return transaction.scalar(
        select(Question)
        .where(
            _of(session),
            Question.training == training,
            Question.attention.is_(False),
            Question.document == last.document,
            Question.position > last.position,
        )
        .order_by(Question.position)
        .limit(1)
    )


def _eligible(session: Session, settings: CollectSettings, *, training: bool) -> Any:
    asked = select(Assignment.question_id).where(Assignment.session_id == session.id)
    seen = aliased(Question)
    given_away = exists(
        select(Assignment.id)
        .join(seen, seen.id == Assignment.question_id)
        .where(
            Assignment.session_id == session.id,
            seen.attention.is_(False),
            seen.document != "",
            seen.document == Question.document,
            seen.position > Question.position,
            seen.reaches <= Question.position,
        )
        .correlate(Question)
    )
    query = select(Question.id, Question.n_held).where(
        _of(session),
        Question.training == training,
        Question.attention.is_(False),
        Question.opens,
        Question.id.not_in(asked),
        ~given_away,
    )
    if settings.answers_per_question is not None and not training:
        query = query.where(Question.n_held < settings.answers_per_question)
    return query.order_by(Question.id)


def _adaptive(transaction: Transaction, session: Session, chooser: Chooser | None, open_ids: Sequence[int]) -> Choice:
    if chooser is None:
        raise InputError("is 'adaptive', and nothing that chooses was given", field="questions")
    offered = transaction.scalars(select(Question).where(Question.id.in_(open_ids)).order_by(Question.id)).all()
    question, probability = chooser.next_question(session, offered)
    if question.id not in set(open_ids):
        raise InputError(f"is question {question.id}, which is not open to this session", field="next_question")
    return Choice(question, probability, "adaptive")
