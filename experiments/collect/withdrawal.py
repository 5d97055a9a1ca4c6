"""The pages on which a participant withdraws: what is deleted, the button, and that it is done."""

from __future__ import annotations

import logging

from sqlalchemy.orm import Session as Transaction
from starlette.responses import Response

from shannon_game.experiments.collect.deletion import forget
from shannon_game.experiments.collect.pages import Handler
from shannon_game.experiments.collect.security import COOKIE
from shannon_game.experiments.collect.sessions import session_of
from shannon_game.experiments.collect.tables import ServerValue
from shannon_game.experiments.collect.visit import Visit, page, redirect

__all__ = ["WITHDRAWAL_PAGES", "n_withdrawn"]

log = logging.getLogger("shannon-game")


def withdraw_page(visit: Visit) -> Response:
    """Say what is deleted."""
    with visit.collection.database.read() as transaction:
        session = session_of(transaction, visit.token)
        return redirect("/") if session is None else page(visit, "withdraw.html", session=session)


def withdraw_given(visit: Visit) -> Response:
    """Delete the participant with everything that was answered, and count the withdrawal without a name."""
    token = visit.checked()
    with visit.collection.database.write() as transaction:
        session = session_of(transaction, token, lock=True)
        if session is None:
            return redirect("/")
        forget(transaction, session.player.pseudonym)
        _count(transaction, visit.collection.study_id)
    log.info("a participant withdrew; everything of theirs was deleted")
    response = redirect("/withdrawn")
    response.delete_cookie(COOKIE)
    return response


def withdrawn(visit: Visit) -> Response:
    """Say that everything is deleted."""
    return page(visit, "message.html", key="withdraw.done")


def n_withdrawn(transaction: Transaction, study_id: int) -> int:
    """Count the participants of a study who withdrew; nothing else is known of them."""
    stored = transaction.get(ServerValue, _name(study_id))
    return 0 if stored is None else int(stored.value)


def _count(transaction: Transaction, study_id: int) -> None:
    stored = transaction.get(ServerValue, _name(study_id), with_for_update=True)
    if stored is None:
        transaction.add(ServerValue(name=_name(study_id), value="1"))
    else:
        stored.value = str(int(stored.value) + 1)


def _name(study_id: int) -> str:
    return f"withdrawn {study_id}"


WITHDRAWAL_PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/withdraw", withdraw_page),
    ("POST", "/withdraw", withdraw_given),
    ("GET", "/withdrawn", withdrawn),
)
"""Method, address, handler."""
