"""The pages on which people agree, refuse, withdraw, or are told that their visit has ended."""

from __future__ import annotations

import logging
import time

from sqlalchemy.orm import Session as Transaction
from starlette.responses import Response

from shannon_game.experiments.collect.deletion import count_gone, forget_visit, withdraw
from shannon_game.experiments.collect.pages import Handler, filled, posted, shown_at
from shannon_game.experiments.collect.security import COOKIE
from shannon_game.experiments.collect.sessions import Refusal, go_on, session_of
from shannon_game.experiments.collect.surveys import text_version
from shannon_game.experiments.collect.tables import Session
from shannon_game.experiments.collect.visit import Visit, page, redirect

log = logging.getLogger("shannon-game")


def consent(visit: Visit) -> Response:
    """Show what people agree to."""
    texts = visit.collection.consent
    return shown_at(
        visit,
        "consent",
        lambda _, session: page(visit, "consent.html", session=session, paragraphs=texts[session.language]),
    )


def consent_given(visit: Visit) -> Response:
    """Note that somebody agrees; of somebody who does not, nothing stays but the number of those who did not."""

    def done(transaction: Transaction, session: Session) -> None:
        if visit.form.get("agree") == "yes":
            session.consented_at = time.time()
            session.consent_version = text_version(visit.collection.consent[session.language])
            go_on(session, visit.collection)
        elif visit.form.get("agree") == "no":
            count_gone(transaction, "declined", session.study_id)
            forget_visit(transaction, session)
        else:
            raise Refusal(400, "error.no_choice")

    with visit.collection.database.read() as transaction:
        session = session_of(transaction, visit.collection, visit.token)
        recruiter = {} if session is None else session.player.recruiter
    response, url = posted(visit, "consent", done), visit.collection.settings.recruiter.declined_url
    if url is None or response.headers["location"] != "/declined":
        return response
    # nothing of the person is there any more by which another page could fill in the address
    return page(visit, "message.html", key="consent.declined", back=filled(url, recruiter))


def screened(visit: Visit) -> Response:
    """Tell somebody whose visit ended by the rules or by failed checks why, and the way back."""
    url = visit.collection.settings.recruiter.screened_url

    def shown(_: Transaction, session: Session) -> Response:
        back = url and filled(url, session.player.recruiter)
        # nothing was asked in the part in which the visit ended
        at_rules = not (session.n_trained or session.n_counted or session.n_checks)
        key = "screened.rules" if at_rules else "screened.why"
        return page(visit, "message.html", session=session, key=key, back=back)

    return shown_at(visit, "screened", shown)


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
        withdraw(transaction, session.player, session.study_id)
        count_gone(transaction, "withdrawn", visit.collection.study_id)
    log.info("a participant withdrew; everything of theirs was deleted")
    response = redirect("/withdrawn")
    response.delete_cookie(COOKIE)
    return response


def _said(key: str) -> Handler:
    """Make the page that says goodbye to somebody of whom nothing is stored."""
    return lambda visit: page(visit, "message.html", key=key)


CONSENT_PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/consent", consent),
    ("POST", "/consent", consent_given),
    ("GET", "/declined", _said("consent.declined")),
    ("GET", "/screened", screened),
    ("GET", "/withdraw", withdraw_page),
    ("POST", "/withdraw", withdraw_given),
    ("GET", "/withdrawn", _said("withdraw.done")),
)
"""Method, address, handler."""
