"""A participant who wants to be forgotten: everything of theirs goes, and their questions are free for others."""

from __future__ import annotations

import logging
import time

from sqlalchemy import String, case, cast, delete, func, or_, select, update
from sqlalchemy.orm import Session as Transaction

from shannon_game.experiments.collect.tables import (
    ANSWERED,
    OPEN,
    Assignment,
    Player,
    Question,
    ServerValue,
    Session,
)
from shannon_game.inference.progress import counted

log = logging.getLogger("shannon-game")

_PLAIN = {"synchronize_session": False}


def forget(transaction: Transaction, pseudonym: str) -> bool:
    """Delete a player, the sessions, what was asked and what was answered."""
    named = select(Player.id).where(or_(Player.pseudonym == pseudonym, Player.recruiter_id == pseudonym))
    player_id = transaction.scalar(named.order_by(Player.pseudonym != pseudonym))
    if player_id is None:
        return False
    # a session that was screened out has given all of its questions back
    answered, opened = Assignment.state == ANSWERED, Assignment.state == OPEN
    held = case((Session.state == "screened", 0), (answered, 1), (opened & ~Session.released, 1), else_=0)
    counts = transaction.execute(
        select(Assignment.question_id, func.sum(held))
        .join(Session)
        .where(Session.player_id == player_id)
        .group_by(Assignment.question_id)
    ).all()
    for question_id, n_held in counts:
        given_back = update(Question).where(Question.id == question_id).values(n_held=Question.n_held - n_held)
        transaction.execute(given_back, execution_options=_PLAIN)
    # everything else is deleted with it
    transaction.execute(delete(Player).where(Player.id == player_id), execution_options=_PLAIN)
    return True


def forget_visit(transaction: Transaction, session: Session) -> None:
    """Delete a visit in which nothing was asked, and its person where there is no other one."""
    player = session.player
    transaction.delete(session)
    transaction.flush()
    if transaction.scalar(select(Session.id).where(Session.player_id == player.id).limit(1)) is None:
        transaction.delete(player)
        transaction.flush()


def forget_recruiters(transaction: Transaction, study_id: int, days: float | None) -> None:
    """Delete what recruiters said of people whose last visit is so many days ago."""
    if days is None:
        return
    last = func.coalesce(Session.ended_at, Session.active_at)
    recent = select(Session.player_id).where(last > time.time() - 86_400 * days)
    here = select(Session.player_id).where(Session.study_id == study_id)
    known = or_(Player.recruiter_id.is_not(None), cast(Player.recruiter, String) != "{}")
    old = transaction.scalars(select(Player).where(known, Player.id.in_(here), Player.id.not_in(recent))).all()
    for player in old:
        player.recruiter_id, player.recruiter = None, {}
    if old:
        log.info(
            "deleted the recruiter's ids of %s, %g days after the last visit", counted(len(old), "participant"), days
        )


def n_gone(transaction: Transaction, kind: str, study_id: int) -> int:
    """Count who has "withdrawn" from a study or "declined"; nothing else is known of them."""
    stored = transaction.get(ServerValue, f"{kind} {study_id}")
    return 0 if stored is None else int(stored.value)


def count_gone(transaction: Transaction, kind: str, study_id: int) -> None:
    """Count one more."""
    stored = transaction.get(ServerValue, f"{kind} {study_id}", with_for_update=True)
    if stored is None:
        transaction.add(ServerValue(name=f"{kind} {study_id}", value="1"))
    else:
        stored.value = str(int(stored.value) + 1)
