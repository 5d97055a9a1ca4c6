"""A participant who wants to be forgotten: everything of theirs goes, and their questions are free for others."""

from __future__ import annotations

import hashlib
import hmac
import logging
import time

from sqlalchemy import Integer, String, case, cast, delete, func, or_, select, update
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

KEY = "key"
"""Name of the value that signs cookies and salts what is kept of ids."""
_PLAIN = {"synchronize_session": False}
_WITHDRAWN = "id "
_DAY_SECONDS = 86_400


def forget(transaction: Transaction, name: str, *, may_return: bool = False) -> bool:
    """Delete somebody with all visits, by the pseudonym or the recruiter's id, which `may_return` lets in again."""
    named = select(Player).where(or_(Player.pseudonym == name, Player.recruiter_id == name))
    player = transaction.scalar(named.order_by(Player.pseudonym != name).limit(1))
    if player is not None:
        name = player.recruiter_id or name
        withdraw(transaction, player, None)
    mark = transaction.get(ServerValue, _mark(transaction, name)) if may_return else None
    if mark is not None:
        transaction.delete(mark)
    return player is not None or mark is not None


def withdraw(transaction: Transaction, player: Player, study_id: int | None) -> None:
    """Delete somebody's visits to a study, or to all (None): what was asked and what was answered.

    Of a recruiter's id a keyed hash and the day stay, so that nobody sees the same questions again as somebody new.
    """
    theirs = Session.player_id == player.id
    if study_id is not None:
        theirs &= Session.study_id == study_id
    agreed = transaction.scalar(select(Session.id).where(theirs, Session.consented_at.is_not(None)).limit(1))
    if player.recruiter_id and agreed is not None:
        day = str(int(time.time() // _DAY_SECONDS))
        transaction.merge(ServerValue(name=_mark(transaction, player.recruiter_id), value=day))
    # a session that was screened out has given all of its questions back
    answered, opened = Assignment.state == ANSWERED, Assignment.state == OPEN
    held = case((Session.state == "screened", 0), (answered, 1), (opened & ~Session.released, 1), else_=0)
    counts = transaction.execute(
        select(Assignment.question_id, func.sum(held)).join(Session).where(theirs).group_by(Assignment.question_id)
    ).all()
    for question_id, n_held in counts:
        given_back = update(Question).where(Question.id == question_id).values(n_held=Question.n_held - n_held)
        transaction.execute(given_back, execution_options=_PLAIN)
    # everything else is deleted with it
    transaction.execute(delete(Session).where(theirs), execution_options=_PLAIN)
    _forget_without_visits(transaction, player)


def has_withdrawn(transaction: Transaction, recruiter_id: str) -> bool:
    """Whether somebody with a recruiter's id was deleted, after the consent."""
    return transaction.get(ServerValue, _mark(transaction, recruiter_id)) is not None


def _mark(transaction: Transaction, recruiter_id: str) -> str:
    key = transaction.get_one(ServerValue, KEY).value
    return _WITHDRAWN + hmac.new(bytes.fromhex(key), f"id {recruiter_id}".encode(), hashlib.sha256).hexdigest()[:48]


def forget_visit(transaction: Transaction, session: Session) -> None:
    """Delete a visit in which nothing was asked, and its person where there is no other one."""
    player = session.player
    transaction.delete(session)
    transaction.flush()
    _forget_without_visits(transaction, player)


def _forget_without_visits(transaction: Transaction, player: Player) -> None:
    if transaction.scalar(select(Session.id).where(Session.player_id == player.id).limit(1)) is None:
        transaction.delete(player)
        transaction.flush()


def forget_recruiters(transaction: Transaction, study_id: int, days: float | None) -> None:
    """Delete what recruiters said of people whose last visit is so many days ago."""
    if days is None:
        return
    day, of_ids = time.time() / _DAY_SECONDS - days, ServerValue.name.startswith(_WITHDRAWN)
    transaction.execute(delete(ServerValue).where(of_ids, cast(ServerValue.value, Integer) < day))
    last = func.coalesce(Session.ended_at, Session.active_at)
    recent = select(Session.player_id).where(last > time.time() - _DAY_SECONDS * days)
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
