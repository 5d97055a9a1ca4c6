"""The experimenter's pages: login, who is where and looks wrong, the running estimate, exports, deletion."""

from __future__ import annotations

import hmac
import math
import os
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from sqlalchemy import delete, func, or_, select
from starlette.responses import Response

from shannon_game.experiments.collect.deletion import forget, n_gone
from shannon_game.experiments.collect.export import answers_csv, export_csv, pay_table, visits
from shannon_game.experiments.collect.monitor import look
from shannon_game.experiments.collect.pages import Handler
from shannon_game.experiments.collect.security import (
    ADMIN_COOKIE,
    AGES_SECONDS,
    Attempts,
    new_token,
    read_cookie,
    signed,
)
from shannon_game.experiments.collect.sessions import Refusal, token_hash
from shannon_game.experiments.collect.tables import REJECTED, STATES, Answer, Assignment, Player, ServerValue, Session
from shannon_game.experiments.collect.visit import Visit, page, redirect

PASSWORD = "SHANNON_COLLECT_PASSWORD"
"""Environment variable with the password; without it there is no login."""

_ATTEMPTS = Attempts()
_SHORTEST = 8
_LOGIN = "login "
_LONGEST_SEARCH = 128


def is_admin(visit: Visit) -> bool:
    """Whether the visitor has logged in, and not out again: a copy of the cookie ends with it."""
    token = _token(visit)
    if token is None:
        return False
    with visit.collection.database.read() as transaction:
        return transaction.get(ServerValue, _login_name(token)) is not None


def _token(visit: Visit) -> str | None:
    return read_cookie(visit.collection.key, ADMIN_COOKIE, visit.request.cookies.get(ADMIN_COOKIE))


def _login_name(token: str) -> str:
    """Under which a login is stored; who reads the database cannot log in with it."""
    return f"{_LOGIN}{token_hash(token)[:48]}"


def login(visit: Visit) -> Response:
    """Ask for the password."""
    return redirect("/admin") if is_admin(visit) else page(visit, "admin_login.html", problem=None)


def login_given(visit: Visit) -> Response:
    """Check the password."""
    visit.checked()
    wanted = os.environ.get(PASSWORD, "")
    if len(wanted) < _SHORTEST:
        raise Refusal(403, "admin.no_password")
    if _ATTEMPTS.is_blocked(visit.address):
        raise Refusal(429, "admin.blocked")
    if not hmac.compare_digest(visit.form.get("password", "").encode(), wanted.encode()):
        _ATTEMPTS.failed(visit.address)
        return page(visit, "admin_login.html", status=403, problem="admin.wrong_password")
    token, now = new_token(), time.time()
    with visit.collection.database.write() as transaction:
        for old in transaction.scalars(select(ServerValue).where(ServerValue.name.startswith(_LOGIN))):
            if float(old.value) < now - AGES_SECONDS[ADMIN_COOKIE]:
                transaction.delete(old)
        transaction.add(ServerValue(name=_login_name(token), value=str(now)))
    response = redirect("/admin")
    response.set_cookie(
        ADMIN_COOKIE,
        signed(visit.collection.key, ADMIN_COOKIE, token),
        max_age=AGES_SECONDS[ADMIN_COOKIE],
        path="/admin",
        httponly=True,
        samesite="strict",
        secure=visit.secure,
    )
    return response


def logout(visit: Visit) -> Response:
    """Take the login away."""
    visit.checked()
    token = _token(visit)
    if token is not None:
        with visit.collection.database.write() as transaction:
            transaction.execute(delete(ServerValue).where(ServerValue.name == _login_name(token)))
    response = redirect("/admin/login")
    response.delete_cookie(ADMIN_COOKIE, path="/admin")
    return response


def overview(visit: Visit) -> Response:
    """Show who is where, all or those whom a search finds, and how many answers come in."""
    if not is_admin(visit):
        return redirect("/admin/login")
    study_id, now = visit.collection.study_id, time.time()
    wanted = visit.request.query_params.get("find", "").strip()[:_LONGEST_SEARCH]
    ids = (Player.pseudonym, Player.recruiter_id)
    which = [or_(*(column.icontains(wanted, autoescape=True) for column in ids))] if wanted else []
    states = select(Session.state, func.count(Session.id)).where(Session.study_id == study_id).group_by(Session.state)
    recent = (
        select(func.count(Answer.id))
        .join(Assignment)
        .join(Session)
        .where(Session.study_id == study_id, Answer.answered_at > now - 3600)
    )
    seen = look(visit.collection)
    with visit.collection.database.read() as transaction:
        found = {row[0]: row[1] for row in transaction.execute(states)}
        everybody = visits(transaction, study_id)
        took = _median_minutes(everybody)
        return page(
            visit,
            "admin.html",
            rows=visits(transaction, study_id, *which) if which else everybody,
            summary=_summary(everybody, took),
            median_minutes=took,
            balance=_balance(everybody) if visit.collection.settings.arms or visit.collection.settings.lists else {},
            minutes=_minutes,
            # in the order of a session's course
            by_state={state: found[state] for state in STATES if state in found},
            n_gone={kind: n_gone(transaction, kind, study_id) for kind in ("declined", "withdrawn")},
            find=wanted,
            course=getattr(visit.collection.chooser, "course", None),
            per_hour=transaction.scalar(recent) or 0,
            look=seen,
            ln=math.log,
            study=visit.collection.study_name,
        )


def _median_minutes(rows: Sequence[Any]) -> float | None:
    took = [_minutes(row[0]) for row in rows if row[0].state == "done"]
    return median(took) if took else None


def _summary(rows: Sequence[Any], took: float | None) -> dict[str, object]:
    return {
        "done": sum(row[0].state == "done" for row in rows),
        "of": len(rows),
        "n": sum(row.n_answers for row in rows if row[0].state not in REJECTED),
        "failed": sum(row.n_failed for row in rows),
        "checks": sum(row.n_checks for row in rows),
        "minutes": "?" if took is None else round(took),
    }


def _minutes(session: Session) -> float:
    """From the first question to the end, or to the last request."""
    return 0.0 if session.started_at is None else ((session.ended_at or session.active_at) - session.started_at) / 60


def _balance(rows: Sequence[Any]) -> dict[tuple[str, str], list[int]]:
    """Arm and list -> people, people who are complete, answers that count."""
    found: dict[tuple[str, str], list[int]] = {}
    for session, _, n_answers, *_ in rows:
        cell = found.setdefault((session.arm, session.item_list), [0, 0, 0])
        for at, more in enumerate((1, session.state == "done", n_answers)):
            cell[at] += more
    return dict(sorted(found.items()))


def table(visit: Visit) -> Response:
    """Give all answers, or what every session earned, as one table."""
    if not is_admin(visit):
        return redirect("/admin/login")
    name, study_id = visit.request.url.path.rsplit("/", 1)[1], visit.collection.study_id
    with visit.collection.database.read() as transaction:
        if name == "pay.csv":
            text = export_csv(pay_table(transaction, study_id, visit.collection.settings.pay))
        else:
            text = answers_csv(transaction, study_id)
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def delete_player(visit: Visit) -> Response:
    """Delete a participant with all that was answered."""
    if not is_admin(visit):
        return redirect("/admin/login")
    visit.checked()
    with visit.collection.database.write() as transaction:
        forget(transaction, visit.form.get("pseudonym", ""))
    return redirect("/admin")


ADMIN_PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/admin", overview),
    ("GET", "/admin/login", login),
    ("POST", "/admin/login", login_given),
    ("POST", "/admin/logout", logout),
    ("GET", "/admin/answers.csv", table),
    ("GET", "/admin/pay.csv", table),
    ("POST", "/admin/delete", delete_player),
)
"""Method, address, handler."""
