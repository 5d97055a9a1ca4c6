"""One question after the other: which one is open, what is sent for it, and that it is stored once.

An answer and the question after it are two transactions: the answer is on the disk before anything else happens.
Questions come from memory (:mod:`~shannon_game.experiments.collect.deck`) and a session counts its own answers: a
transaction reads and writes a handful of rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row, bindparam, select
from sqlalchemy.orm import Session as Transaction

from shannon_game.experiments.collect.assign import choose, layout_rng, release_idle, take_back
from shannon_game.experiments.collect.collection import Collection
from shannon_game.experiments.collect.deck import Card
from shannon_game.experiments.collect.games.protocol import BY_SCRIPT, Reading
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.sessions import Refusal, go_on, screen_out
from shannon_game.experiments.collect.tables import ANSWERED, OPEN, SKIPPED, Answer, Assignment, Base, Session

_MOST_MS = 10**9


@dataclass(frozen=True)
class Asked:
    """A question that a session was asked."""

    id: int
    order: int
    state: str
    training: bool
    layout: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]
    shown_at: float | None
    card: Card


@dataclass(frozen=True)
class Given:
    """An answer that a session gave."""

    asked: Asked
    value: Mapping[str, Any]
    automatic: bool


_COLUMNS = (
    *(Assignment.id, Assignment.order, Assignment.state, Assignment.training, Assignment.layout, Assignment.steps),
    *(Assignment.shown_at, Assignment.question_id),
)
_OF_SESSION = Assignment.session_id == bindparam("session")
_OPEN = select(*_COLUMNS).where(_OF_SESSION, Assignment.state == OPEN)
_AT = select(*_COLUMNS).where(_OF_SESSION, Assignment.order == bindparam("order"))
_GIVEN = select(*_COLUMNS, Answer.value, Answer.automatic).join(Answer).where(_OF_SESSION)
_GIVEN_AT = _GIVEN.where(Assignment.order == bindparam("order"))
_GIVEN_LAST = _GIVEN.where(Answer.automatic.is_(False)).order_by(Assignment.order.desc()).limit(1)
# tables, not classes: nothing of these rows is kept in the session of the ORM
_TABLES = Base.metadata.tables
_ADD_ASSIGNMENT, _ADD_ANSWER = (_TABLES[name].insert() for name in ("assignment", "answer"))
_SET_ASSIGNMENT = _TABLES["assignment"].update().where(_TABLES["assignment"].c.id == bindparam("assignment"))
_QUESTION = _TABLES["question"]
# in the database itself: another session may have changed them since they were read
_COUNT = (
    _QUESTION.update()
    .where(_QUESTION.c.id == bindparam("question"))
    .values({name: _QUESTION.c[name] + bindparam(f"more_{name}") for name in ("n_served", "n_held")})
)
_VALUE = select(Answer.value).where(Answer.assignment_id == bindparam("assignment"))


def open_assignment(transaction: Transaction, collection: Collection, session: Session) -> Asked | None:
    """Return the question that waits for an answer."""
    return _asked(collection, transaction.execute(_OPEN, {"session": session.id}).first())


def given_answer(transaction: Transaction, collection: Collection, session: Session, order: str | None) -> Given | None:
    """Return an answer of a session by its order, as an address has it; None stands for the person's last one."""
    if order is None:
        row = transaction.execute(_GIVEN_LAST, {"session": session.id}).first()
    elif _is_order(order):
        row = transaction.execute(_GIVEN_AT, {"session": session.id, "order": int(order)}).first()
    else:
        row = None
    asked = _asked(collection, row)
    if asked is None or row is None:
        return None
    return Given(asked, row.value, row.automatic)


def show(transaction: Transaction, collection: Collection, session: Session) -> Asked | None:
    """Return the question to be shown, and note when it first was; a new one if none is open."""
    now = time.time()
    if collection.release_is_due(now):
        silent_since = now - 60 * collection.settings.idle_minutes
        release_idle(transaction, collection.study_id, silent_since=silent_since)
    _touch(transaction, session, now)
    found = open_assignment(transaction, collection, session)
    while found is None and session.state in ("training", "play"):
        found = _next(transaction, collection, session)
    if found is not None and session.started_at is None:
        session.started_at = now
    return found


def submit(transaction: Transaction, collection: Collection, session: Session, form: Mapping[str, str]) -> Asked:
    """Store what was sent for a question; the same thing sent again changes nothing."""
    now = time.time()
    order, step = form.get("order", ""), form.get("step", "0")
    row = transaction.execute(_AT, {"session": session.id, "order": int(order)}).first() if _is_order(order) else None
    asked = _asked(collection, row)
    if asked is None or asked.shown_at is None or asked.state == SKIPPED:
        raise Refusal(409, "error.not_asked")
    n_steps = len(asked.steps)
    if not _is_order(step) or int(step) > n_steps:
        raise Refusal(409, "error.not_asked")
    steps = asked.steps[: int(step)]
    reading = GAMES[asked.card.game].read(asked.card.content, asked.layout, steps, form)
    value = dict(reading.value)
    if int(step) < n_steps or asked.state == ANSWERED:
        final = {"assignment": asked.id}
        stored = asked.steps[int(step)] if int(step) < n_steps else transaction.scalars(_VALUE, final).one()
        # a step has its times beside what was sent
        if stored != {**stored, **value}:
            raise Refusal(409, "error.answered")
        return asked
    _touch(transaction, session, now)
    server_ms = round(1000 * (now - asked.shown_at))
    failed = False
    if reading.final:
        state: dict[str, Any] = {"state": ANSWERED}
        sent = {name: _whole(form.get(name)) for name in BY_SCRIPT}
        _store(transaction, collection, session, asked, reading, server_ms=server_ms, **sent)
    else:
        times = {"server_ms": server_ms, "client_ms": _whole(form.get("client_ms"))}
        state = {"steps": [*asked.steps, {**value, **times}]}
    transaction.execute(_SET_ASSIGNMENT, {"assignment": asked.id, **state})
    if asked.card.attention and reading.correct is False:
        session.n_failed += 1
        most = collection.settings.screen_out_after
        failed = most is not None and session.n_failed >= most
    if reading.final and failed:
        screen_out(transaction, session)
    return replace(asked, **state)


def skip_open(transaction: Transaction, collection: Collection, session: Session) -> None:
    """Leave the open question unanswered, as when a text is left."""
    found = open_assignment(transaction, collection, session)
    if found is not None:
        transaction.execute(_SET_ASSIGNMENT, {"assignment": found.id, "state": SKIPPED})
        # a session that was silent has given it back already
        _count(transaction, found.card, n_held=0 if session.released else -1)
        session.released = False


def _next(transaction: Transaction, collection: Collection, session: Session) -> Asked | None:
    settings, training, now = collection.of(session), session.state == "training", time.time()
    block = settings.block(session.game)
    enough = session.n_trained >= block.training_rounds if training else session.n_counted >= block.n_questions
    enough = enough or (collection.chooser is not None and collection.chooser.enough)
    late = settings.session_minutes is not None and session.started_at is not None
    late = late and now - (session.started_at or 0) > 60 * (settings.session_minutes or 0)
    choice = None
    if not (enough or late):
        choice = choose(transaction, session, settings, collection.deck, collection.chooser)
    if choice is None:
        go_on(session, collection)
        return None
    card, game = choice.card, GAMES[session.game]
    layout = game.layout(card.content, choice.n_served, layout_rng(collection.key, card.id, choice.n_served))
    if choice.candidate is not None:
        layout["candidate"] = choice.candidate
    automatic = game.automatic(card.content, layout)
    state, shown_at = (OPEN, now) if automatic is None else (ANSWERED, None)
    row = {
        "session_id": session.id,
        "question_id": card.id,
        "order": session.n_asked,
        "state": state,
        "training": training,
        "layout": layout,
        "probability": choice.probability,
        "policy": choice.policy,
        "steps": [],
        "shown_at": shown_at,
    }
    result: Any = transaction.execute(_ADD_ASSIGNMENT, row)
    key = int(result.inserted_primary_key[0])
    asked = Asked(key, session.n_asked, state, training, layout, [], shown_at, card)
    session.n_asked += 1
    session.n_checks += card.attention
    _count(transaction, card, n_served=1, n_held=1)
    if automatic is None:
        return asked
    _store(transaction, collection, session, asked, automatic, automatic=True)
    return None


def _store(
    transaction: Transaction, collection: Collection, session: Session, asked: Asked, reading: Reading, **sent: Any
) -> None:
    row = {
        "server_ms": None,
        **dict.fromkeys(BY_SCRIPT),
        "automatic": False,
        "assignment_id": asked.id,
        "value": dict(reading.value),
        "correct": reading.correct,
        "score": reading.score,
        "page_version": collection.page_version,
        "answered_at": time.time(),
        **sent,
    }
    transaction.execute(_ADD_ANSWER, row)
    if reading.score is not None and asked.training:
        session.training_points += reading.score
    elif reading.score is not None:
        session.points += reading.score
    if not (asked.card.attention or row["automatic"]):
        session.n_trained += asked.training
        session.n_counted += not asked.training


def _asked(collection: Collection, row: Row[Any] | None) -> Asked | None:
    if row is None:
        return None
    values = (row.id, row.order, row.state, row.training, row.layout, row.steps, row.shown_at)
    return Asked(*values, card=collection.deck.cards[row.question_id])


def _count(transaction: Transaction, card: Card, *, n_served: int = 0, n_held: int = 0) -> None:
    more = {"more_n_served": n_served, "more_n_held": n_held}
    transaction.execute(_COUNT, {"question": card.id, **more})


def _touch(transaction: Transaction, session: Session, now: float) -> None:
    take_back(transaction, session)
    session.active_at = now


def _is_order(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


def _whole(text: str | None) -> int | None:
    """Read what a script of the page sent; what is no number is not stored."""
    return int(text) if text and text.isdecimal() and len(text) <= 9 and int(text) < _MOST_MS else None
