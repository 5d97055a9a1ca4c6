"""Which failure of a call is tried again, and when."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from inference.api.settings import ApiSettings

if TYPE_CHECKING:
    from tenacity import RetryCallState

__all__ = ["TryAgainError", "seconds_of", "waits"]


class TryAgainError(Exception):
    """The attempt failed and another may not; ``wait_s`` is what the endpoint asks for."""

    def __init__(self, problem: str, wait_s: float | None = None) -> None:
        super().__init__(problem)
        self.wait_s = wait_s


def seconds_of(header: str | None) -> float | None:
    """Seconds of a ``Retry-After``; its other form, a date, is left to the backoff."""
    try:
        seconds = math.nan if header is None else float(header)
    except ValueError:
        return None
    return None if math.isnan(seconds) else max(seconds, 0.0)


def waits(settings: ApiSettings) -> Callable[[Any], float]:
    """How long tenacity waits: at random, longer after every failure, unless the endpoint asks for a time."""
    from tenacity import wait_random_exponential  # noqa: PLC0415

    backoff = wait_random_exponential(multiplier=settings.backoff_s, max=settings.backoff_max_s)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.wait_s if isinstance(error, TryAgainError) else None
        return float(backoff(state)) if asked is None else min(asked, settings.backoff_max_s)

    return wait
