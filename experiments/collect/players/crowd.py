"""Many players at once against one server: a running one by its address, or an application in this process."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvicorn

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.players.browser import Answerer, Browser, Played, play_session
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.visit import PERSONAL

if TYPE_CHECKING:
    from shannon_game.experiments.collect.collection import Collection

_START_SECONDS = 30.0
_REQUEST_SECONDS = 60.0


@dataclass(frozen=True)
class Crowd:
    """What became of the players."""

    n_sent: Counter[str]
    """Answers by game."""
    seconds: float
    problems: tuple[str, ...] = ()


def play_all(
    players: Sequence[tuple[str, Answerer]],
    game: str,
    *,
    address: str | None = None,
    application: Any = None,
    parameters: Sequence[str] = (),
    links: Mapping[str, str] | None = None,
    at_once: int = 40,
) -> Crowd:
    """Let players play, each a session from the first page to the completion code; `links` lead to those begun."""
    import httpx  # noqa: PLC0415 - only players need it

    # a line a request, of which there are thousands
    logging.getLogger("httpx").setLevel(logging.WARNING)
    gate, began = asyncio.Semaphore(at_once), time.monotonic()

    async def one(name: str, player: Answerer) -> Counter[str] | str:
        query = dict.fromkeys(parameters, "simulated") | ({parameters[0]: name} if parameters else {})
        if links and name in links:
            query = {PERSONAL: links[name]}
        transport = None if application is None else httpx.ASGITransport(application)
        base = address or "http://127.0.0.1"
        async with (
            gate,
            httpx.AsyncClient(
                transport=transport, base_url=base, follow_redirects=True, timeout=_REQUEST_SECONDS, trust_env=False
            ) as client,
        ):
            try:
                return await play_session(Browser(client), game, player, query)
            except (Played, httpx.HTTPError) as problem:
                return f"{name}: {str(problem) or type(problem).__name__}"

    async def everybody() -> list[Counter[str] | str]:
        return await asyncio.gather(*(one(name, player) for name, player in players))

    # a notebook has an event loop that runs: another one needs a thread of its own
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(asyncio.run, everybody()).result()
    n_sent = sum((each for each in found if isinstance(each, Counter)), Counter[str]())
    return Crowd(n_sent, time.monotonic() - began, tuple(each for each in found if isinstance(each, str)))


@contextmanager
def served(collection: Collection) -> Iterator[str]:
    """Serve a collection on a free port of this machine while the block runs; gives the address."""
    config = uvicorn.Config(
        app_of(collection), host="127.0.0.1", port=0, log_level="warning", access_log=False, server_header=False
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, name="collect", daemon=True)
    thread.start()
    waited_since = time.monotonic()
    while not server.started:
        if not thread.is_alive() or time.monotonic() - waited_since > _START_SECONDS:
            server.should_exit = True
            raise InputError("did not start on 127.0.0.1", source="collect", field="port")
        time.sleep(0.02)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=_START_SECONDS)
