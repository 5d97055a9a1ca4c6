"""The server: routes, errors, headers; ``app`` for a test, ``serve`` for people."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from sqlalchemy.exc import DBAPIError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set, word
from shannon_game.experiments.collect.admin_pages import ADMIN_PAGES
from shannon_game.experiments.collect.collection import Collection, open_collection
from shannon_game.experiments.collect.consent_pages import CONSENT_PAGES
from shannon_game.experiments.collect.database import Database
from shannon_game.experiments.collect.pages import PAGES, Handler
from shannon_game.experiments.collect.play_pages import PLAY_PAGES
from shannon_game.experiments.collect.preview_pages import PREVIEW_PAGES, preview_key
from shannon_game.experiments.collect.security import headers
from shannon_game.experiments.collect.sessions import Refusal
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.visit import read_form, refuse, visit_of
from shannon_game.inference.progress import say

if TYPE_CHECKING:
    import xarray as xr

log = logging.getLogger("shannon-game")

_STATIC = Path(__file__).parent / "static"


def app(settings: CollectSettings, study: xr.Dataset, database: Database) -> Starlette:
    """Make the application of a study: what a test's client or any ASGI server takes."""
    return app_of(open_collection(settings, study, database))


def app_of(collection: Collection) -> Starlette:
    """Make the application of a collection that is open."""
    # routes are tried one after the other: those of the game come first
    pages = (*PLAY_PAGES, *PAGES, *CONSENT_PAGES, *ADMIN_PAGES, *PREVIEW_PAGES)
    routes = [Route(path, _endpoint(collection, handler), methods=[method]) for method, path, handler in pages]
    made = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=_STATIC))],
        exception_handlers={HTTPException: _http_error(collection), Exception: _unexpected},
    )
    made.add_middleware(_Headers, headers=headers(collection.settings.recruiter.platform))
    made.state.collection = collection
    return made


def serve(collection: Collection) -> None:
    """Serve until Ctrl-C or SIGTERM; requests under way are answered first."""
    settings = collection.settings
    listening, pay = _socket(settings.host, settings.port), settings.pay
    if pay.base and pay.planned_minutes:
        an_hour = f"{pay.an_hour(pay.planned_minutes):.2f} {pay.currency}"
        say(f"pay for {pay.planned_minutes:g} planned minutes is {an_hour} an hour")
    elif pay.base:
        say(f"pay.planned_minutes is {word(None)}: the pay per hour is unknown")
    config = uvicorn.Config(
        app_of(collection),
        proxy_headers=True,
        forwarded_allow_ips=settings.proxies,
        server_header=False,
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=10,
    )
    with listening:
        shown = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        say(f"all pages, of which nothing is stored: {address}preview?key={preview_key(collection)}")
        say(f"open {address} in a browser; Ctrl-C ends")
        _Server(config).run(sockets=[listening])


def _socket(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason, _, _ = (error.strerror or str(error)).partition(" (while")
        problem = f"is {port}, where the server cannot listen on {host} ({reason}); "
        problem += f"{Set('experiment.port', 0)} takes a free one"
        raise InputError(problem, field=Set("experiment.port")) from error


class _Server(uvicorn.Server):
    """Ends by a signal as anything ends: uvicorn's own would raise it again, and what came in would not be counted."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _endpoint(collection: Collection, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Run a handler in the thread pool: the database answers it there while other requests go on."""

    async def endpoint(request: Request) -> Response:
        try:
            form = await read_form(request) if request.method == "POST" else {}
        except Refusal as refusal:
            return refuse(visit_of(request, collection, {}), refusal)
        return await run_in_threadpool(_handled, handler, request, collection, form)

    return endpoint


def _handled(handler: Handler, request: Request, collection: Collection, form: dict[str, str]) -> Response:
    visit = visit_of(request, collection, form)
    try:
        return handler(visit)
    except Refusal as refusal:
        return refuse(visit, refusal)
    except DBAPIError as error:
        # nothing was stored: the person tries again
        log.warning("the database refused: %s", type(error.orig).__name__)
        log.info("database error", exc_info=True)
        return refuse(visit, Refusal(503, "error.database"))


def _http_error(collection: Collection) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def shown(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        key = "error.not_found" if status in (404, 405) else "error.form"
        return refuse(visit_of(request, collection, {}), Refusal(status, key))

    return shown


async def _unexpected(_request: Request, _error: Exception) -> Response:
    # no template: whatever failed may fail again
    return Response("Something went wrong here. Please go back and try again.\n", 500, media_type="text/plain")


class _Headers:
    """Puts our headers on every response, those of errors and files too."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self.app = app
        self.more = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self.more]
            await send(message)

        await self.app(scope, receive, send_with_headers)
