"""Sessions: who comes in, where a person is, and how it goes on from consent to the completion code."""

from __future__ import annotations

import hashlib
import logging
import math
import re
import secrets
import time
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, and_, bindparam, func, or_, select, update
from sqlalchemy.orm import Session as Transaction

from shannon_game.experiments.collect.assign import lock_study
from shannon_game.experiments.collect.collection import Collection
from shannon_game.experiments.collect.deletion import has_withdrawn
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.tables import (
    ANSWERED,
    REJECTED,
    Assignment,
    Player,
    Question,
    Session,
)

log = logging.getLogger("shannon-game")

PLACES: Mapping[str, str] = {
    "consent": "/consent",
    "before": "/before",
    "instructions": "/instructions",
    "training": "/play",
    "play": "/play",
    "after": "/after",
    "done": "/thanks",
    "screened": "/screened",
    "declined": "/declined",
    "withdrawn": "/declined",
}
"""Where the pages of each state are."""

ENDED = ("done", *REJECTED)
_SCREENS = ("small", "medium", "large")
_POINTERS = ("fine", "coarse", "none")
_FOUND = select(Session).where(Session.token_hash == bindparam("hash"))
_LOCKED = _FOUND.with_for_update()
_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"  # of MTurk, before somebody accepts
# what recruiters and survey tools leave where they had nothing to put in
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\$\{|\$e\{|^%.*%$|^\[.*\]$|^<.*>$")


class Refusal(Exception):  # noqa: N818 - a page, not a mistake of the program
    """What a person asked for is not given; the page says why."""

    def __init__(self, status: int, key: str, **values: object) -> None:
        super().__init__(key)
        self.status = status
        self.key = key
        self.values = values


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
    if recruiter.get("assignmentId") == _PREVIEW:
        raise Refusal(403, "error.preview")
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
    screen: str = "",
    pointer: str = "",
    recruiter: Mapping[str, str],
    known: Session | None = None,
) -> Session:
    """Begin a session, or go on with one that the person has begun.

    `known` is a session whose secret the person holds. The recruiter's id alone begins a visit: whoever knows it, or
    counts up to it, gets into none that is there.
    """
    settings, now = collection.settings, time.time()
    if (settings.blocks[0].game if settings.blocks else game) not in settings.game:
        raise Refusal(404, "error.no_game")
    recruiter_id = recruiter_id_of(collection, recruiter)
    player = None if known is None else known.player
    if recruiter_id and player is None:
        player = transaction.scalar(select(Player).where(Player.recruiter_id == recruiter_id))
    there = [] if player is None else visits_of(transaction, collection, player)
    # a visit to another study proves nothing: the id alone begins one
    stranger = bool(there) and (known is None or known.study_id != collection.study_id)
    if stranger or (not there and recruiter_id and has_withdrawn(transaction, recruiter_id)):
        raise Refusal(403, "error.came_before")
    before = _begun(there, settings, game)
    if before is not None:
        # a submission that was reopened has other parameters
        before.player.recruiter = before.player.recruiter | dict(recruiter)
        before.token_hash, before.active_at = token_hash(token), now
        return before
    if settings.closes_at is not None and now > settings.closes_at:
        raise Refusal(403, "error.closed")
    if collection.chooser is not None and collection.chooser.enough:
        raise Refusal(403, "error.full")
    lock_study(transaction, collection.study_id)
    arm, item_list = (there[-1].arm, there[-1].item_list) if there else _cell(transaction, collection, game)
    if settings.blocks:
        game = settings.of_arm(arm).blocks[0].game
    _refuse_full(transaction, collection, game)
    if player is None:
        pseudonym = f"P{secrets.token_hex(5)}"
        player = Player(pseudonym=pseudonym, recruiter_id=recruiter_id, recruiter=dict(recruiter), created_at=now)
        transaction.add(player)
        transaction.flush()
    session = Session(
        study_id=collection.study_id,
        player_id=player.id,
        game=game,
        arm=arm,
        item_list=item_list,
        token_hash=token_hash(token),
        state="consent",
        language=language,
        screen=screen if screen in _SCREENS else "",
        pointer=pointer if pointer in _POINTERS else "",
        seed=secrets.randbits(31),
        pilot=settings.pilot,
        n_announced=sum(block.n_questions for block in settings.of_arm(arm).blocks or (settings.block(game),)),
        created_at=now,
        active_at=now,
    )
    transaction.add(session)
    transaction.flush()
    return session


def visits_of(transaction: Transaction, collection: Collection, player: Player) -> Sequence[Session]:
    """Visits of a person to this study."""
    query = select(Session).where(Session.player_id == player.id, Session.study_id == collection.study_id)
    return transaction.scalars(query.order_by(Session.id)).all()


def _begun(there: Sequence[Session], settings: CollectSettings, game: str) -> Session | None:
    whole = bool(settings.blocks)
    return next((each for each in there if whole or each.state not in ENDED or each.game == game), None)


def go_on(session: Session, collection: Collection) -> None:
    """Take a session to its next part or block; parts without questions are left out."""
    settings = collection.of(session)
    following = {
        "consent": "before" if collection.before else "instructions",
        "before": "instructions",
        "instructions": "training" if settings.block(session.game).training_rounds else "play",
        "training": "play",
        "play": "after" if collection.after else "done",
        "after": "done",
    }
    wanted = settings.block(session.game).n_questions
    if session.state == "play" and session.n_counted < wanted:
        said = (session.player.pseudonym, session.n_counted, wanted, session.game)
        log.warning("%s was asked %d of the %d questions announced of %s", *said)
    if session.state == "play" and session.block + 1 < len(settings.blocks):
        session.block += 1
        session.game, session.state = settings.blocks[session.block].game, "instructions"
        session.n_checks = session.n_trained = session.n_counted = 0
        session.training_points = session.points = 0.0
        return
    session.state = following[session.state]
    if session.state == "done":
        session.ended_at = time.time()
        session.completion_code = settings.recruiter.completion_code or secrets.token_hex(4).upper()


def screen_out(transaction: Transaction, session: Session) -> None:
    """End a session by failed checks: its answers stay, marked by its state, and its questions are free for others."""
    session.state, session.ended_at = "screened", time.time()
    held = select(Assignment.question_id).where(Assignment.session_id == session.id, Assignment.state == ANSWERED)
    transaction.execute(
        update(Question).where(Question.id.in_(held)).values(n_held=Question.n_held - 1),
        execution_options={"synchronize_session": False},
    )


def holds_a_place(collection: Collection) -> ColumnElement[bool]:
    """Sessions that are done or go on; who was silent for ``idle_minutes`` has given the place back."""
    silent_since = time.time() - 60 * collection.settings.idle_minutes
    return and_(
        Session.study_id == collection.study_id,
        Session.pilot == collection.settings.pilot,
        or_(Session.state == "done", and_(Session.state.not_in(ENDED), Session.active_at > silent_since)),
    )


def _refuse_full(transaction: Transaction, collection: Collection, game: str) -> None:
    """Let nobody in for whom there is no place; say whether one may become free."""
    settings = collection.settings
    if settings.n_sessions is None:
        return
    query = select(func.count(Session.id), func.count(Session.id).filter(Session.state == "done"))
    query = query.where(holds_a_place(collection), *(() if settings.blocks else (Session.game == game,)))
    n_held, n_done = transaction.execute(query).one()
    if n_done >= settings.n_sessions:
        raise Refusal(403, "error.full")
    if n_held >= settings.n_sessions:
        raise Refusal(403, "error.full_now", minutes=math.ceil(settings.idle_minutes))


def _cell(transaction: Transaction, collection: Collection, game: str) -> tuple[str, str]:
    """Draw one of the arms and lists that the fewest people have; who was silent or screened out is not counted."""
    settings = collection.settings
    arms, lists = [arm.name for arm in settings.arms] or [""], list(settings.lists) or [""]
    query = select(Session.arm, Session.item_list, func.count(Session.id)).where(holds_a_place(collection))
    query = query.where(*(() if settings.blocks else (Session.game == game,)))
    counts = {(arm, name): n for arm, name, n in transaction.execute(query.group_by(Session.arm, Session.item_list))}
    of_arm = {arm: sum(counts.get((arm, name), 0) for name in lists) for arm in arms}
    cells = [(arm, name) for arm in arms for name in lists]
    return min(cells, key=lambda cell: (of_arm[cell[0]], counts.get(cell, 0), secrets.randbits(31)))
