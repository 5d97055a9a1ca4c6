"""The connection to an endpoint: what a call sends, what is read of an answer, and when a failure is tried again."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.settings import ApiSettings

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState


def connection(settings: ApiSettings, key: str) -> httpx.AsyncClient:
    """Connect to an endpoint, with its key in the headers; who calls keeps the time."""
    import httpx  # noqa: PLC0415 - only this needs it

    # they write down what the endpoint says in its status line and headers, which may be the key
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # what comes compressed can be a thousand times longer than it looks
    headers = {"Accept-Encoding": "identity", "Connection": "close", "Cache-Control": "no-store"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    # one connection a call: what a server sends after an answer would be taken for the answer to the next call
    limits = httpx.Limits(max_connections=settings.concurrency, max_keepalive_connections=0)
    try:
        # redirects are not followed: the key is for this host; nor does a proxy see what stays on this machine
        return httpx.AsyncClient(
            base_url=settings.base_url.rstrip("/") + "/",
            headers=headers,
            timeout=None,
            limits=limits,
            trust_env=not settings.is_here,
        )
    except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
        what = "the address, or the proxy or certificates that the environment names,"
        raise InputError(f"{what} cannot be used ({type(error).__name__})", source=settings.base_url) from None


async def body_of(response: httpx.Response, most: int) -> bytes:
    """Read a body as it comes; of one that is too long, a little more than the most."""
    found = bytearray()
    async for part in response.aiter_raw():
        found += part
        if len(found) > most:
            break
    return bytes(found)


class TryAgainError(Exception):
    """The attempt failed and another may not; ``wait_s`` is what the endpoint asks for."""

    def __init__(self, problem: str, wait_s: float = math.nan) -> None:
        super().__init__(problem)
        self.wait_s = wait_s


def seconds_of(header: str) -> float:
    """Seconds of a ``Retry-After``; NaN where there are none, and its other form, a date, is left to the backoff."""
    with suppress(ValueError):
        return float(header)
    return math.nan


def waits(settings: ApiSettings) -> Callable[[Any], float]:
    """How long tenacity waits: at random, longer after every failure, unless the endpoint asks for a time."""
    from tenacity import wait_random_exponential  # noqa: PLC0415

    backoff = wait_random_exponential(multiplier=settings.backoff_s, max=settings.backoff_max_s)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.wait_s if isinstance(error, TryAgainError) else math.nan
        return float(backoff(state)) if math.isnan(asked) else min(max(asked, 0.0), settings.backoff_max_s)

    return wait
