"""The connection to an endpoint: what is sent with every call, and what is read of an answer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from estimators.errors import InputError
from inference.api.settings import ApiSettings

if TYPE_CHECKING:
    import httpx

__all__ = ["body_of", "connection"]


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
            transport=httpx.AsyncHTTPTransport(limits=limits) if settings.is_here else None,
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
