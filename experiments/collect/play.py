"""One question after the other: which one is open, what is sent for it, and that it is stored once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session as Transaction

from experiments.collect.assign import (
    choose,
    count_main,
    layout_rng,
    next_order,
    release_idle,
    take_back,
)
from experiments.collect.collection import Collection
from experiments.collect.games.protocol import Reading
from experiments.collect.games.registry import game_named
from experiments.collect.sessions import Refusal, go_on
from experiments.collect.tables import ANSWERED, OPEN, SKIPPED, Answer, Assignment, Question, Session

__all__ = ["assignment_at", "last_answered", "open_assignment", "show", "skip_open", "submit", "total_score"]

_MOST_MS = 10**9


def open_assignment(transaction: Transaction, session: Session) -> Assignment | None:
    """Return the question that waits for an answer."""
    return transaction.scalar(select(Assignment).where(Assignment.session_id == session.id, Assignment.state == OPEN))


def show(transaction: Transaction, collection: Collection, session: Session) -> Assignment | None:
    """Return the question to be shown, and note when it first was; a new one if none is open.

    Parameters
    ----------
    transaction : sqlalchemy.orm.Session
        One that writes.
    collection : Collection
    session : Session
        Locked, in its training or play.

    Returns
    -------
    Assignment or None
        None where the play has ended; the session is in its next part then.
    """
    now = time.time()
    if collection.release_is_due(now):
        silent_since = now - 60 * collection.settings.idle_minutes
        release_idle(transaction, collection.study_id, silent_since=silent_since)
    _touch(transaction, session, now)
    found = open_assignment(transaction, session)
    while found is None and session.state in ("training", "play"):
        found = _next(transaction, collection, session)
    if found is not None and found.shown_at is None:
        found.shown_at = now
        session.started_at = session.started_at or now
    return found


def submit(transaction: Transaction, collection: Collection, session: Session, form: Mapping[str, str]) -> Assignment:
    """Store what was sent for a question; the same thing sent again changes nothing.

    Parameters
    ----------
    transaction : sqlalchemy.orm.Session
        One that writes.
    collection : Collection
    session : Session
        Locked.
    form : mapping of str to str
        ``order`` and ``step`` say which question and which of its steps it is for; ``client_ms`` and ``revisions`` come
        from the page's script; the rest is the game's.

    Returns
    -------
    Assignment
        Answered, or open for its next step.

    Raises
    ------
    Refusal
        If the question was not asked, is no longer open, or was answered otherwise.
    FormError
        If what was sent is no answer.
    """
    now = time.time()
    assignment = assignment_at(transaction, session, form.get("order", ""))
    if assignment is None or assignment.shown_at is None or assignment.state == SKIPPED:
        raise Refusal(409, "error.not_asked")
    question = assignment.question
    game, step = game_named(session.game), form.get("step", "0")
    n_steps = len(assignment.steps)
    if not step.isdecimal() or int(step) > n_steps:
        raise Refusal(409, "error.not_asked")
    steps = assignment.steps[: int(step)]
    reading = game.read(question.content, assignment.layout, steps, form)
    if int(step) < n_steps or assignment.state == ANSWERED:
        stored = assignment.steps[int(step)] if int(step) < n_steps else _value(transaction, assignment)
        if stored != dict(reading.value):
            raise Refusal(409, "error.answered")
        return assignment
    _touch(transaction, session, now)
    if not reading.final:
        assignment.steps = [*assignment.steps, dict(reading.value)]
        return assignment
    server_ms = round(1000 * (now - assignment.shown_at))
    _store(transaction, collection, assignment, reading, server_ms=server_ms, form=form)
    return assignment


def skip_open(transaction: Transaction, session: Session) -> None:
    """Leave the open question unanswered, as when the training is skipped."""
    found = open_assignment(transaction, session)
    if found is not None:
        found.state = SKIPPED
        _count(transaction, found.question, n_held=-1)


def assignment_at(transaction: Transaction, session: Session, order: str) -> Assignment | None:
    """Find a session's assignment by its order, as a form has it."""
    if not order.isdecimal() or len(order) > 9:
        return None
    return transaction.scalar(
        select(Assignment).where(Assignment.session_id == session.id, Assignment.order == int(order))
    )


def last_answered(transaction: Transaction, session: Session) -> Assignment | None:
    """Return the last question that the person answered."""
    return transaction.scalar(
        select(Assignment)
        .join(Answer)
        .where(Assignment.session_id == session.id, Answer.automatic.is_(False))
        .order_by(Assignment.order.desc())
        .limit(1)
    )


def total_score(transaction: Transaction, session: Session, *, training: bool = False) -> float:
    """Points of a session; those of the training are counted apart."""
    query = (
        select(func.sum(Answer.score))
        .join(Assignment)
        .where(Assignment.session_id == session.id, Assignment.training == training)
    )
    return transaction.scalar(query) or 0.0


def _next(transaction: Transaction, collection: Collection, session: Session) -> Assignment | None:
    """Assign the next question, or take the session to its next part."""
    settings, training = collection.settings, session.state == "training"
    most = settings.training_rounds if training else settings.n_questions
    late = settings.session_minutes is not None and session.started_at is not None
    late = late and time.time() - (session.started_at or 0) > 60 * (settings.session_minutes or 0)
    ended = count_main(transaction, session, training=training) >= most or late
    choice = None if ended else choose(transaction, session, settings, collection.chooser)
    if choice is None:
        go_on(session, collection)
        return None
    question, game = choice.question, game_named(session.game)
    assignment = Assignment(
        session_id=session.id,
        question_id=question.id,
        order=next_order(transaction, session),
        state=OPEN,
        training=training,
        layout=game.layout(question.content, question.n_served, layout_rng(collection.key, question)),
        probability=choice.probability,
        policy=choice.policy,
        steps=[],
        assigned_at=time.time(),
    )
    transaction.add(assignment)
    _count(transaction, question, n_served=1, n_held=1)
    transaction.flush()
    automatic = game.automatic(question.content, assignment.layout)
    if automatic is None:
        return assignment
    _store(transaction, collection, assignment, automatic, automatic=True)
    return None


def _store(
    transaction: Transaction,
    collection: Collection,
    assignment: Assignment,
    reading: Reading,
    *,
    server_ms: int | None = None,
    form: Mapping[str, str] | None = None,
    automatic: bool = False,
) -> None:
    sent = form or {}
    answer = Answer(
        assignment_id=assignment.id,
        value=dict(reading.value),
        automatic=automatic,
        correct=reading.correct,
        score=reading.score,
        server_ms=server_ms,
        client_ms=_whole(sent.get("client_ms")),
        revisions=_whole(sent.get("revisions")),
        page_version=collection.page_version,
        answered_at=time.time(),
    )
    transaction.add(answer)
    assignment.state = ANSWERED
    _count(transaction, assignment.question, n_answered=1)
    transaction.flush()


def _value(transaction: Transaction, assignment: Assignment) -> dict[str, Any]:
    value: dict[str, Any] = transaction.scalars(select(Answer.value).where(Answer.assignment_id == assignment.id)).one()
    return value


def _count(transaction: Transaction, question: Question, **changes: int) -> None:
    """Change counters in the database itself: another session may have changed them since they were read."""
    values = {getattr(Question, name): getattr(Question, name) + change for name, change in changes.items()}
    transaction.execute(
        update(Question).where(Question.id == question.id).values(values),
        execution_options={"synchronize_session": False},
    )


def _touch(transaction: Transaction, session: Session, now: float) -> None:
    take_back(transaction, session)
    session.active_at = now


def _whole(text: str | None) -> int | None:
    """Read what a script of the page sent; what is no number is not stored."""
    return int(text) if text and text.isdecimal() and len(text) <= 9 and int(text) < _MOST_MS else None
