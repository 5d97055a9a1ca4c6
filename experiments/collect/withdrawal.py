"""The pages on which a participant withdraws: what is deleted, the button, and that it is done."""

from __future__ import annotations

import logging

from starlette.responses import Response

from shannon_game.experiments.collect.deletion import count_gone, forget
from shannon_game.experiments.collect.pages import Handler
from shannon_game.experiments.collect.security import COOKIE
from shannon_game.experiments.collect.sessions import session_of
from shannon_game.experiments.collect.visit import Visit, page, redirect

__all__ = ["WITHDRAWAL_PAGES"]

log = logging.getLogger("shannon-game")


def withdraw_page(visit: Visit) -> Response:
    """Say what is deleted."""
    with visit.collection.database.read() as transaction:
        session = session_of(transaction, visit.collection, visit.token)
        return redirect("/") if session is None else page(visit, "withdraw.html", session=session)


def withdraw_given(visit: Visit) -> Response:
    """Delete the participant with everything that was answered, and count the withdrawal without a name."""
    token = visit.checked()
    with visit.collection.database.write() as transaction:
        session = session_of(transaction, visit.collection, token, lock=True)
        if session is None:
            return redirect("/")
        forget(transaction, session.player.pseudonym)
        count_gone(transaction, "withdrawn", visit.collection.study_id)
    log.info("a participant withdrew; everything of theirs was deleted")
    response = redirect("/withdrawn")
    response.delete_cookie(COOKIE)
    return response


def withdrawn(visit: Visit) -> Response:
    """Say that everything is deleted."""
    return page(visit, "message.html", key="withdraw.done")


WITHDRAWAL_PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/withdraw", withdraw_page),
    ("POST", "/withdraw", withdraw_given),
    ("GET", "/withdrawn", withdrawn),
)
"""Method, address, handler."""
