"""Cookies that are signed, forms that come from our own pages, headers, and a login that cannot be tried for ever."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Mapping

from itsdangerous import BadSignature, URLSafeTimedSerializer

COOKIE, ADMIN_COOKIE = "shannon_collect", "shannon_collect_admin"
AGES_SECONDS: Mapping[str, int] = {COOKIE: 90 * 24 * 3600, ADMIN_COOKIE: 8 * 3600}
"""How long a cookie is believed."""

FRAMES: Mapping[str, tuple[str, ...]] = {"mturk": ("https://worker.mturk.com", "https://workersandbox.mturk.com")}
"""Platform -> sites that may show the pages in a frame."""
SUBMITS: Mapping[str, tuple[str, ...]] = {"mturk": ("https://www.mturk.com", "https://workersandbox.mturk.com")}
"""Platform -> sites to which the last page may send a form."""


def headers(platform: str) -> dict[str, str]:
    """Headers of every response; no site but the platform's may show the pages in a frame."""
    frames = " ".join(FRAMES.get(platform, ()))
    submits = " ".join(("'self'", *SUBMITS.get(platform, ())))
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        f"form-action {submits}; frame-ancestors " + (frames or "'none'")
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        **({} if frames else {"x-frame-options": "DENY"}),
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
    }


def new_token() -> str:
    """Make a secret for a cookie."""
    return secrets.token_urlsafe(24)


def signed(key: bytes, name: str, token: str) -> str:
    """Sign a cookie's content."""
    return str(URLSafeTimedSerializer(key, salt=name).dumps(token))


def read_cookie(key: bytes, name: str, value: str | None) -> str | None:
    """Read a cookie; None where it is missing, too old, or not ours."""
    if not value:
        return None
    try:
        token = URLSafeTimedSerializer(key, salt=name).loads(value, max_age=AGES_SECONDS[name])
    except BadSignature:
        return None
    return token if isinstance(token, str) else None


def csrf_token(key: bytes, token: str) -> str:
    """What a form holds that only a page for this cookie can know."""
    return hmac.new(key, f"csrf {token}".encode(), hashlib.sha256).hexdigest()


class Attempts:
    """Counts wrong passwords, by address and in all, and says when no more are taken."""

    def __init__(self, most: int = 5, most_in_all: int = 50, seconds: float = 900.0) -> None:
        self._most, self._most_in_all, self._seconds = most, most_in_all, seconds
        self._failed: list[tuple[float, str]] = []
        self._lock = threading.Lock()

    def failed(self, address: str) -> None:
        """Count a wrong password."""
        with self._lock:
            self._failed = [*self._recent(), (time.monotonic(), address)]

    def is_blocked(self, address: str) -> bool:
        """Whether no password is taken from an address now."""
        with self._lock:
            recent = self._recent()
        return len(recent) >= self._most_in_all or sum(each == address for _, each in recent) >= self._most

    def _recent(self) -> list[tuple[float, str]]:
        since = time.monotonic() - self._seconds
        return [each for each in self._failed if each[0] > since]
