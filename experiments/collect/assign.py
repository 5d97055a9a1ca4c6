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
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import numpy as np
from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session as Transaction

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.deck import Card, Deck
from shannon_game.experiments.collect.register import n_checks
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.tables import ANSWERED, OPEN, Assignment, Question, Session, Study

__all__ = ["Choice", "Chooser", "Chosen", "check_places", "choose", "layout_rng", "release_idle", "take_back"]


@dataclass(frozen=True)
class Chosen:
    """A question that a :class:`Chooser` drew.

    Parameters
    ----------
    question : int
        Its id.
    probability : float
        With which it was drawn, and its candidate where one is named.
    candidate : int, optional
        Which of its candidates is shown; by default the one whose turn it is.
    """

    question: int
    probability: float
    candidate: int | None = None


class Chooser(Protocol):
    """What ``questions: adaptive`` asks for the next comparison."""

    @property
    def enough(self) -> bool:
        """Whether no more questions are asked, of anybody."""
        ...

    def look(self) -> None:
        """Take in what was answered; called before every question, outside of all transactions."""
        ...

    def next_question(self, session: Session, open: Sequence[int]) -> Chosen | None:  # noqa: A002
        """Choose one of the questions that are open to a session; None leaves it to the balanced order."""
        ...


@dataclass(frozen=True)
class Choice:
    """The next question of a session.

    Parameters
    ----------
    card : Card
    n_served : int
        Times that it was assigned before.
    probability : float
        With which it was chosen among those that could have been.
    policy : str
        What chose it.
    candidate : int, optional
        Which candidate is shown, where that was chosen too.
    """

    card: Card
    n_served: int
    probability: float
    policy: str
    candidate: int | None = None


# built once: SQLAlchemy finds what it made of them by identity of their parts
_LOCK = select(Study.id).where(Study.id == bindparam("study")).with_for_update()
_ASKED = (
    select(Assignment.question_id, Assignment.state)
    .where(Assignment.session_id == bindparam("session"))
    .order_by(Assignment.order)
)
_SERVED = select(Question.n_served).where(Question.id == bindparam("question"))
_COUNTS = (
    select(Question.id, Question.n_held, Question.n_served)
    .where(
        Question.study_id == bindparam("study"),
        Question.game == bindparam("game"),
        Question.training == bindparam("training"),
        Question.attention.is_(False),
        Question.opens,
    )
    .order_by(Question.id)
)


def check_places(session: Session, settings: CollectSettings) -> Sequence[int]:
    """Numbers of counted answers after which an attention check comes: one at random in each stretch of the session.

    Examples
    --------
    >>> places = check_places(Session(seed=1), CollectSettings(n_questions=40, attention_share=0.05))
    >>> len(places), 1 <= places[0] < 20 <= places[1] < 40
    (2, True)
    """
    return _check_places(session.seed, settings.n_questions, n_checks(settings))


@lru_cache(maxsize=4096)
def _check_places(seed: int, n_questions: int, n_checks: int) -> Sequence[int]:
    edges = np.linspace(0, n_questions, n_checks + 1).astype(int)
    rng = np.random.default_rng([seed, 1])
    # not before the first question
    return tuple(int(rng.integers(max(first, 1), max(last, 2))) for first, last in pairwise(edges.tolist()))


def choose(
    transaction: Transaction, session: Session, settings: CollectSettings, deck: Deck, chooser: Chooser | None = None
) -> Choice | None:
    """Choose the next question of a session; None where nothing is left for it."""
    if transaction.get_bind().dialect.name != "sqlite":
        # SQLite knows no row locks, and needs none: one transaction writes at a time
        transaction.execute(_LOCK, {"study": session.study_id})
    before = [(row.question_id, row.state) for row in transaction.execute(_ASKED, {"session": session.id})]
    asked = {question_id: deck.cards[question_id] for question_id, _ in before}
    training = session.state == "training"
    closed = deck.given_away(asked.values()) | asked.keys()
    following = None if training else _due_check(session, settings, deck, asked)
    policy = "attention"
    if following is None and settings.goes_on(session.game):
        following, policy = _next_of_document(deck, before, training=training), "next"
        following = None if following is not None and following.id in closed else following
    if following is not None:
        n_served = transaction.scalar(_SERVED, {"question": following.id}) or 0
        return Choice(following, n_served, 1.0, policy)
    quota = None if training else settings.answers_per_question
    found = transaction.execute(_COUNTS, {"study": session.study_id, "game": session.game, "training": training})
    rows = [(at, held, served) for at, held, served in found if at not in closed and (quota is None or held < quota)]
    return _drawn(session, settings, deck, rows, chooser) if rows else None


def layout_rng(key: bytes, question_id: int, n_served: int) -> np.random.Generator:
    """Random numbers for how a question is shown, the same for two people in a row, known to the server alone.

    Examples
    --------
    >>> one, two = (layout_rng(b"key", 7, n_served).integers(1000) for n_served in (2, 3))
    >>> bool(one == two)
    True
    """
    digest = hmac.new(key, f"layout {question_id} {n_served // 2}".encode(), hashlib.sha256).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def release_idle(transaction: Transaction, study_id: int, *, silent_since: float) -> int:
    """Give the open questions of silent sessions to others, and say how many sessions those were."""
    silent = transaction.scalars(
        select(Session)
        .where(
            Session.study_id == study_id,
            Session.state.in_(("training", "play")),
            Session.released.is_(False),
            Session.active_at < silent_since,
        )
        # whoever is at work on one now is not silent
        .with_for_update(skip_locked=True)
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


def _due_check(session: Session, settings: CollectSettings, deck: Deck, asked: dict[int, Card]) -> Card | None:
    n_due = sum(place <= session.n_counted for place in check_places(session, settings))
    if session.n_checks >= n_due:
        return None
    return next((check for check in deck.checks(session.game) if check.id not in asked), None)


def _next_of_document(deck: Deck, rows: Sequence[tuple[int, str]], *, training: bool) -> Card | None:
    """Find the place after the last one that was answered; none after a document was left."""
    for question_id, state in reversed(rows):
        card = deck.cards[question_id]
        if not card.attention and card.training == training:
            return deck.following(card) if state == ANSWERED else None
    return None


def _drawn(
    session: Session,
    settings: CollectSettings,
    deck: Deck,
    rows: Sequence[tuple[int, int, int]],
    chooser: Chooser | None,
) -> Choice:
    """Draw one of the questions that are open: id, number of holders, times that it was assigned."""
    training = session.state == "training"
    policy = "random" if training else settings.questions
    if policy == "adaptive":
        chosen = _adaptive(session, chooser, [row[0] for row in rows])
        if chosen is not None:
            n_served = next(row[2] for row in rows if row[0] == chosen.question)
            return Choice(deck.cards[chosen.question], n_served, chosen.probability, policy, chosen.candidate)
        policy = "balanced"
    if policy == "balanced":
        least = min(row[1] for row in rows)
        rows = [row for row in rows if row[1] == least]
    if policy == "fixed":
        rows = rows[:1]
    rng = np.random.default_rng([session.seed, 2, session.n_asked])
    question_id, _, n_served = rows[int(rng.integers(len(rows)))]
    return Choice(deck.cards[question_id], n_served, 1 / len(rows), policy)


def _adaptive(session: Session, chooser: Chooser | None, open_ids: Sequence[int]) -> Chosen | None:
    if chooser is None:
        raise InputError("is 'adaptive', and nothing that chooses was given", field="questions")
    if session.game != "comparison":
        return None
    chosen = chooser.next_question(session, open_ids)
    if chosen is not None and chosen.question not in set(open_ids):
        raise InputError(f"is question {chosen.question}, which is not open to this session", field="next_question")
    return chosen
