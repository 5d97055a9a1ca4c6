"""A request as the pages see it, and what they answer: a page of a template, or another address."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from shannon_game.experiments.collect.collection import Collection
from shannon_game.experiments.collect.games.protocol import BY_SCRIPT
from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.collect.security import (
    AGES_SECONDS,
    COOKIE,
    FRAMES,
    csrf_token,
    new_token,
    read_cookie,
    signed,
)
from shannon_game.experiments.collect.sessions import PLACES, Refusal
from shannon_game.experiments.collect.surveys import in_language
from shannon_game.experiments.collect.tables import Session

LARGEST_BODY = 64 * 1024
"""Bytes of a form; more is refused."""
BODY_SECONDS = 20.0
"""A form that takes longer to come is given up."""
_MOST_FIELDS = 200
PERSONAL = "personal"
"""Parameter of the link by which a person, and nobody else, gets to a visit from any browser."""

_MARKS = {" ": ("·", "mark.space"), "\n": ("↵", "mark.newline"), "\t": ("⇥", "mark.tab")}


@dataclass(frozen=True)
class Visit:
    """A request."""

    collection: Collection
    request: Request
    form: Mapping[str, str]
    token: str | None
    address: str
    language: str
    secure: bool

    def checked(self) -> str:
        """Return the cookie's secret after a look at the form's own token."""
        wanted, given = csrf_token(self.collection.key, self.token or ""), self.form.get("csrf", "")
        if self.token is None or not hmac.compare_digest(wanted.encode(), given.encode()):
            raise Refusal(403, "error.csrf")
        return self.token


def visit_of(request: Request, collection: Collection, form: Mapping[str, str]) -> Visit:
    """Read what a request says."""
    headers = Headers(scope=request.scope)
    return Visit(
        collection=collection,
        request=request,
        form=form,
        token=read_cookie(collection.key, COOKIE, request.cookies.get(COOKIE)),
        address=request.client.host if request.client else "",
        language=collection.strings.choose(request.query_params.get("lang"), headers.get("accept-language", "")),
        secure=collection.settings.https or request.url.scheme == "https",
    )


async def read_form(request: Request) -> dict[str, str]:
    """Read a form, the last value of each field; nothing but a plain form of a decent size is taken."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise Refusal(415, "error.form")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _body(request)
    except TimeoutError:
        # nobody holds the server by sending a byte a minute
        raise Refusal(408, "error.form") from None
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
    except ValueError:
        raise Refusal(400, "error.form") from None
    return dict(pairs)


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise Refusal(413, "error.too_large")
    return body


def page(
    visit: Visit, template: str, *, session: Session | None = None, status: int = 200, **values: object
) -> Response:
    """Render a template; a visitor without a cookie gets one, because every form needs it."""
    collection = visit.collection
    token = visit.token or new_token()
    language = session.language if session is not None else visit.language
    strings = collection.strings

    def t(key: str, **more: object) -> str:
        return strings.say(language, key, **more)

    def visible(text: str) -> Markup:
        return _visible(text, {sign: (mark, t(name)) for sign, (mark, name) in _MARKS.items()})

    context: dict[str, Any] = {
        "t": t,
        "visible": visible,
        "words": lambda words: in_language(words, language),
        "language": language,
        "direction": strings.direction(language),
        "languages": [(code, strings.say(code, "name")) for code in strings.languages],
        "csrf": csrf_token(collection.key, token),
        "settings": collection.settings,
        "version": collection.page_version,
        "session": session,
        "values": {},
        "back": None,
        "preview": None,
        "personal": f"/?{PERSONAL}={token}",
        **values,
    }
    folders = tuple(dict.fromkeys(game.folder for game in GAMES.values()))
    response = HTMLResponse(_templates(folders).get_template(template).render(context), status_code=status)
    response.headers["cache-control"] = "no-store"
    if visit.token is None:
        set_cookie(response, visit, token)
    return response


def set_cookie(response: Response, visit: Visit, token: str) -> None:
    """Give a visitor a cookie."""
    key = visit.collection.key
    framed = visit.collection.settings.recruiter.platform in FRAMES
    response.set_cookie(
        COOKIE,
        signed(key, COOKIE, token),
        max_age=AGES_SECONDS[COOKIE],
        httponly=True,
        samesite="none" if framed else "lax",
        secure=visit.secure,
    )
    if framed:
        # browsers that keep no cookies of frames keep those of each site that frames the page
        response.headers["set-cookie"] += "; Partitioned"


def redirect(to: str | Session) -> Response:
    """Send on to an address, or to where a session is."""
    address = to if isinstance(to, str) else PLACES[to.state]
    return RedirectResponse(address, status_code=303, headers={"cache-control": "no-store"})


def refuse(visit: Visit, refusal: Refusal, back: str | None = None) -> Response:
    """Say why not, with a way on or back to the recruiter."""
    return page(visit, "message.html", status=refusal.status, key=refusal.key, values=refusal.values, back=back)


@cache
def _templates(folders: tuple[Path, ...]) -> Environment:
    loader = FileSystemLoader([Path(__file__).parent / "templates", *folders])
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.globals |= {"games": GAMES, "by_script": BY_SCRIPT}
    return made


def _visible(text: str, marks: Mapping[str, tuple[str, str]]) -> Markup:
    parts = []
    for sign in text:
        if sign in marks:
            mark, name = marks[sign]
            parts.append(Markup('<span class="mark" role="img" aria-label="{}">{}</span>').format(name, mark))
        else:
            parts.append(escape(sign))
    return Markup("").join(parts)
