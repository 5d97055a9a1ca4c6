"""Which question comes next: balanced, random, in order or adaptive; training, attention checks and quotas.

Balanced: the questions with the fewest holders (people who have answered them or are about to) come first, drawn at
random among equals. The choice and its count are one transaction of the writer's queue (SQLite) or under a lock on the
study (PostgreSQL), so that two sessions at once never see one count: as long as everybody goes on, a quota of k is k.
A session that was silent for ``idle_minutes`` gives its open question back; where its person comes back and answers all
the same, the question has one answer more than k. A quota is thus exceeded by no more than the sessions that were
silent and came back.

A question is not asked of somebody who has seen what follows its context, in whatever game and study of the database.
Questions that would leave too few for the rest of the visit wait: as many are asked as were announced.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session as Transaction

from shannon_game.experiments.collect.deck import Card, Deck
from shannon_game.experiments.collect.parts import is_automatic, visit_needs
from shannon_game.experiments.collect.register import read_cards
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.tables import ANSWERED, OPEN, Assignment, Question, Session, Study

if TYPE_CHECKING:
    from shannon_game.experiments.collect.adaptive import AdaptiveChooser


@dataclass(frozen=True)
class Chosen:
    """A question that ``questions: adaptive`` drew: with which probability, and which candidate, where it names one."""

    question: int
    probability: float
    candidate: int | None = None


@dataclass(frozen=True)
class Choice:
    """The next question of a session, what chose it, and how often it was assigned before."""

    card: Card
    n_served: int
    probability: float
    policy: str
    candidate: int | None = None


# built once: SQLAlchemy finds what it made of them by identity of their parts
_LOCK = select(Study.id).where(Study.id == bindparam("study")).with_for_update()
_ASKED = (
    select(Assignment.question_id, Assignment.state, Assignment.session_id, Assignment.shown_at)
    .join(Session)
    .where(Session.player_id == bindparam("player"))
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
    """Numbers of counted answers after which an attention check comes: one at random in each stretch of the session."""
    n_questions, n_checks = settings.block(session.game).n_questions, settings.n_checks(session.game)
    edges = np.linspace(0, n_questions, n_checks + 1).astype(int)
    rng = np.random.default_rng([session.seed, 1])
    # not before the first question
    return tuple(int(rng.integers(max(first, 1), max(last, 2))) for first, last in pairwise(edges.tolist()))


def lock_study(transaction: Transaction, study_id: int) -> None:
    """Let one transaction after the other count and choose; SQLite has no row locks, and one writer at a time."""
    if transaction.get_bind().dialect.name != "sqlite":
        transaction.execute(_LOCK, {"study": study_id})


def choose(
    transaction: Transaction,
    session: Session,
    settings: CollectSettings,
    deck: Deck,
    chooser: AdaptiveChooser | None = None,
) -> Choice | None:
    """Choose the next question of a session; None where nothing is left for it."""
    lock_study(transaction, session.study_id)
    seen = transaction.execute(_ASKED, {"player": session.player_id}).all()
    before = [(deck.cards[row.question_id], row.state) for row in seen if row.session_id == session.id]
    training = session.state == "training"
    closed = deck.outside(tuple(settings.items_of(session.arm, session.item_list)))
    # what the server answered by itself was not shown, and gives nothing away but itself
    closed |= _given_away(transaction, deck, {row.question_id for row in seen if row.shown_at is not None})
    closed |= sum(deck.bit[card.id] for card, _ in before if not deck.bit[card.id] & closed)
    following = None if training else _due_check(session, settings, deck, {card.id for card, _ in before})
    policy = "attention"
    if following is None and settings.goes_on(session.game):
        following, policy = _next_of_document(deck, before, session.game, training=training), "next"
        following = None if following is not None and deck.bit[following.id] & closed else following
    if following is not None:
        n_served = transaction.scalar(_SERVED, {"question": following.id}) or 0
        return Choice(following, n_served, 1.0, policy)
    rows = _open(transaction, session, settings, deck, closed, training=training)
    if training and not rows:
        # another game has shown what was set aside for the training
        rows = _open(transaction, session, settings, deck, closed, training=False)
    if not rows:
        return None
    return _drawn(session, settings, deck, _leaving_enough(session, settings, deck, rows, closed), chooser)


def _open(
    transaction: Transaction, session: Session, settings: CollectSettings, deck: Deck, closed: int, *, training: bool
) -> list[tuple[int, int, int]]:
    """Questions that a session may be asked: id, number of holders, times that it was assigned."""
    quota = None if training else settings.answers_per_question
    found = transaction.execute(_COUNTS, {"study": session.study_id, "game": session.game, "training": training})
    return [
        (at, held, served)
        for at, held, served in found
        if not deck.bit[at] & closed and (quota is None or held < quota)
    ]


def _given_away(transaction: Transaction, deck: Deck, asked: set[int]) -> int:
    """Questions that are closed to somebody who was asked these, of this study or of others."""
    if others := asked - deck.cards.keys() - deck.given_away.keys():
        for card in read_cards(transaction, Question.id.in_(others)):
            deck.gives_away(card)
    found = 0
    for question_id in asked:
        known = deck.given_away.get(question_id)
        found |= deck.gives_away(deck.cards[question_id]) if known is None else known
    return found


def _leaving_enough(
    session: Session, settings: CollectSettings, deck: Deck, rows: list[tuple[int, int, int]], closed: int
) -> list[tuple[int, int, int]]:
    """Keep the questions after which there is room for the rest of the visit, or for as much of it as there can be."""
    later = [block.game for block in settings.blocks[session.block + 1 :]]
    (game, _, n_training), (_, _, n_counted), *needs = visit_needs(settings, [session.game, *later])
    if session.state == "training":
        needs = [(game, True, n_training - session.n_trained - 1), (game, False, n_counted), *needs]
    else:
        needs.insert(0, (game, False, n_counted - session.n_counted - 1))
    goes_on, own = settings.goes_on(game), deck.parts[game, session.state == "training"]
    if not goes_on:
        # a quota may have closed more, and some the server will answer by itself
        closed |= own & ~sum(deck.bit[at] for at, _, served in rows if not is_automatic(deck.cards[at], served))
    # one question gives away no more than a document
    most = deck.longest_document * (1 + sum(number for *_, number in needs))
    # which questions of later parts the server answers by itself depends on who comes before
    safe = closed | deck.ever_automatic & ~own
    if all((deck.parts[game, part] & ~safe).bit_count() >= most for game, part, _ in needs):
        return rows
    left = _rooms(settings, deck, rows, needs, safe)
    if max(left) < sum(number for _, training, number in needs if not training):
        left = _rooms(settings, deck, rows, needs, closed | deck.automatic & ~own)
    most = max(left)
    return [row for row, each in zip(rows, left, strict=True) if each == most]


def _rooms(
    settings: CollectSettings,
    deck: Deck,
    rows: list[tuple[int, int, int]],
    needs: list[tuple[str, bool, int]],
    closed: int,
) -> list[int]:
    wanted = sum(number for _, training, number in needs if not training)
    of_others: dict[str, int] = {}

    def room(card: Card) -> int:
        # most visits need nothing more of that document
        name = "" if settings.goes_on(card.game) else card.document
        if name and name not in of_others:
            of_others[name] = deck.room(needs, closed | deck.of_document[name], settings.goes_on)
        if name and of_others[name] == wanted:
            return wanted
        return deck.room(needs, closed | deck.gives_away(card), settings.goes_on, card)

    return [room(deck.cards[at]) for at, *_ in rows]


def layout_rng(key: bytes, question_id: int, n_served: int) -> np.random.Generator:
    """Random numbers for how a question is shown, the same for two people in a row, known to the server alone."""
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


def _due_check(session: Session, settings: CollectSettings, deck: Deck, asked: set[int]) -> Card | None:
    n_due = sum(place <= session.n_counted for place in check_places(session, settings))
    if session.n_checks >= n_due:
        return None
    return next((check for check in deck.checks[session.game] if check.id not in asked), None)


def _next_of_document(deck: Deck, before: Sequence[tuple[Card, str]], game: str, *, training: bool) -> Card | None:
    """Find the place after the last one that was answered; none after a document was left."""
    for card, state in reversed(before):
        if card.game == game and not card.attention and card.training == training:
            return deck.following(card) if state == ANSWERED else None
    return None


def _drawn(
    session: Session,
    settings: CollectSettings,
    deck: Deck,
    rows: Sequence[tuple[int, int, int]],
    chooser: AdaptiveChooser | None,
) -> Choice:
    training, on_tokens = session.state == "training", session.game == "comparison"
    policy = "random" if training else settings.questions
    if policy == "adaptive":
        chosen = chooser.next_question(session, [row[0] for row in rows]) if chooser and on_tokens else None
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
