"""Sessions: who comes in, where a person is, and how it goes on from consent to the completion code."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Mapping

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session as Transaction

from shannon_game.experiments.collect.collection import Collection
from shannon_game.experiments.collect.tables import Player, Session, SurveyAnswer

__all__ = ["ENDED", "PLACES", "Refusal", "cookie_session", "enter", "finish", "go_on", "is_of", "recruiter_id_of"]
__all__ += ["session_of", "store_survey", "token_hash"]

PLACES: Mapping[str, str] = {
    "consent": "/consent",
    "before": "/before",
    "instructions": "/instructions",
    "training": "/play",
    "play": "/play",
    "after": "/after",
    "done": "/thanks",
    "declined": "/declined",
    "withdrawn": "/declined",
}
"""Where the pages of each state are."""

ENDED = ("done", "declined", "withdrawn")
_SCREENS = ("small", "medium", "large")
_FOUND = select(Session).where(Session.token_hash == bindparam("hash"))
_LOCKED = _FOUND.with_for_update()
# what recruiters and survey tools leave where they had nothing to put in
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\$\{|\$e\{|^%.*%$|^\[.*\]$|^<.*>$")


class Refusal(Exception):  # noqa: N818 - a page, not a mistake of the program
    """What a person asked for is not given; the page says why."""

    def __init__(self, status: int, key: str) -> None:
        super().__init__(key)
        self.status = status
        self.key = key


def token_hash(token: str) -> str:
    """Hash of a cookie's secret, as the database holds it."""
    return hashlib.sha256(token.encode()).hexdigest()


def session_of(
    transaction: Transaction, collection: Collection, token: str | None, *, lock: bool = False
) -> Session | None:
    """Find the session of a cookie; ``lock`` lets nobody else change it until the transaction ends."""
    found = cookie_session(transaction, token, lock=lock)
    return found if found is not None and found.study_id == collection.study_id else None


def cookie_session(transaction: Transaction, token: str | None, *, lock: bool = False) -> Session | None:
    """Find the session of a cookie, in whatever study of the database."""
    if token is None:
        return None
    return transaction.scalar(_LOCKED if lock else _FOUND, {"hash": token_hash(token)})


def is_of(session: Session, recruiter_id: str | None, *, somebody_else: bool = False) -> bool:
    """Whether a cookie's session is the visitor's: the recruiter's id says who comes, before the browser does."""
    known = session.player.recruiter_id
    return known == recruiter_id if recruiter_id else not (somebody_else and known is None)


def recruiter_id_of(collection: Collection, recruiter: Mapping[str, str]) -> str | None:
    """Read who comes from a recruiter's parameters; who should come with an id and has none is not let in."""
    wanted = collection.settings.recruiter
    if any(_PLACEHOLDER.search(value) for value in recruiter.values()):
        raise Refusal(400, "error.placeholder")
    found = recruiter.get(wanted.parameters[0]) if wanted.parameters else None
    if wanted.required and not found:
        raise Refusal(403, "error.no_recruiter")
    return found or None


def enter(
    transaction: Transaction,
    collection: Collection,
    *,
    game: str,
    token: str,
    language: str,
    screen: str,
    recruiter: Mapping[str, str],
    known: Player | None = None,
) -> Session:
    """Begin a session, or go on with one that the person has begun; ``known`` is who came by the same browser."""
    settings, now = collection.settings, time.time()
    if settings.blocks:
        game = settings.blocks[0].game
    if game not in settings.game:
        raise Refusal(404, "error.no_game")
    recruiter_id = recruiter_id_of(collection, recruiter)
    player = known
    if recruiter_id:
        player = transaction.scalar(select(Player).where(Player.recruiter_id == recruiter_id))
    if player is not None:
        before = _begun(transaction, collection, player, game)
        if before is not None:
            # a submission that was reopened has other parameters; the code is for those of the same one
            whole = len(recruiter) == len(settings.recruiter.parameters)
            reopened = whole and (before.state not in ENDED or dict(recruiter) == player.recruiter)
            if player is not known and not reopened:
                raise Refusal(403, "error.took_part")
            player.recruiter = dict(recruiter) or player.recruiter
            before.token_hash, before.active_at = token_hash(token), now
            return before
    if settings.closes_at is not None and now > settings.closes_at:
        raise Refusal(403, "error.closed")
    if collection.chooser is not None and collection.chooser.enough:
        raise Refusal(403, "error.full")
    if settings.n_sessions is not None and _n_sessions(transaction, collection, game) >= settings.n_sessions:
        raise Refusal(403, "error.full")
    if player is None:
        pseudonym = f"P{secrets.token_hex(5)}"
        player = Player(pseudonym=pseudonym, recruiter_id=recruiter_id, recruiter=dict(recruiter), created_at=now)
        transaction.add(player)
        transaction.flush()
    session = Session(
        study_id=collection.study_id,
        player_id=player.id,
        game=game,
        token_hash=token_hash(token),
        state="consent",
        language=language,
        screen=screen if screen in _SCREENS else "",
        seed=secrets.randbits(31),
        pilot=settings.pilot,
        created_at=now,
        active_at=now,
    )
    transaction.add(session)
    transaction.flush()
    return session


def _begun(transaction: Transaction, collection: Collection, player: Player, game: str) -> Session | None:
    """Find a session of this study that the person is in, or one of the same game that has ended."""
    query = select(Session).where(Session.player_id == player.id, Session.study_id == collection.study_id)
    there = transaction.scalars(query.order_by(Session.id)).all()
    whole = bool(collection.settings.blocks)
    return next((each for each in there if whole or each.state not in ENDED or each.game == game), None)


def go_on(session: Session, collection: Collection) -> None:
    """Take a session to its next part or block; parts without questions are left out."""
    settings = collection.settings
    following = {
        "consent": "before" if collection.before else "instructions",
        "before": "instructions",
        "instructions": "training" if settings.block(session.game).training_rounds else "play",
        "training": "play",
        "play": "after" if collection.after else "done",
        "after": "done",
    }
    if session.state == "play" and session.block + 1 < len(settings.blocks):
        session.block += 1
        session.game, session.state = settings.blocks[session.block].game, "instructions"
        session.n_checks = session.n_trained = session.n_counted = 0
        session.training_points = session.points = 0.0
        return
    session.state = following[session.state]
    if session.state == "done":
        finish(session, collection)


def finish(session: Session, collection: Collection) -> None:
    """End a session: the completion code is there from now on."""
    session.state = "done"
    session.ended_at = time.time()
    session.completion_code = collection.settings.recruiter.completion_code or secrets.token_hex(4).upper()


def store_survey(transaction: Transaction, session: Session, *, moment: str, answers: Mapping[str, str]) -> None:
    """Write the answers to the questions before or after the game."""
    now = time.time()
    transaction.add_all(
        SurveyAnswer(session_id=session.id, moment=moment, question=name, value=value, answered_at=now)
        for name, value in answers.items()
    )


def _n_sessions(transaction: Transaction, collection: Collection, game: str) -> int:
    """Count the sessions that are done or go on."""
    silent_since = time.time() - 60 * collection.settings.idle_minutes
    query = select(func.count(Session.id)).where(
        Session.study_id == collection.study_id,
        *(() if collection.settings.blocks else (Session.game == game,)),
        Session.pilot == collection.settings.pilot,
        (Session.state == "done") | (Session.state.not_in(ENDED) & (Session.active_at > silent_since)),
    )
    return transaction.scalar(query) or 0
