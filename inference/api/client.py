"""Calls to an endpoint: several at a time, retried with backoff, each paid for once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from estimators.errors import InputError, require_packages
from inference.api.calls import Call, Position, UnusableAnswerError, positions_of, usage_of
from inference.api.settings import ApiSettings, key_of
from inference.api.store import AnswerStore

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

__all__ = ["ApiClient"]

log = logging.getLogger("shannon-game")

_RETRIED = (408, 409, 425, 429)
_SHOWN = 300


class _TryAgainError(Exception):
    """The attempt failed and another may not; ``wait_s`` is what the endpoint asks for."""

    def __init__(self, problem: str, wait_s: float | None = None) -> None:
        super().__init__(problem)
        self.wait_s = wait_s


class ApiClient:
    """An endpoint with a store; an asynchronous context manager.

    Parameters
    ----------
    settings : ApiSettings
    store : AnswerStore

    Raises
    ------
    InputError
        If a package of the extra ``api`` or the key is missing.
    """

    def __init__(self, settings: ApiSettings, store: AnswerStore) -> None:
        require_packages(("httpx", "tenacity"), "api", source="the client of the endpoint")
        import httpx  # noqa: PLC0415 - only this needs it

        self.settings = settings
        self.store = store
        self._secret = key_of(settings)
        self._slots = asyncio.Semaphore(settings.concurrency)
        # two windows may ask the same: the second waits for the first's answer
        self._locks: dict[str, asyncio.Lock] = {}
        self._stopped = asyncio.Event()
        # redirects are not followed: the key is for this host
        self._http = httpx.AsyncClient(
            base_url=settings.base_url.rstrip("/") + "/",
            headers={"Authorization": f"Bearer {self._secret}"} if self._secret else {},
            timeout=settings.timeout_s,
            limits=httpx.Limits(max_connections=settings.concurrency),
        )

    async def __aenter__(self) -> ApiClient:
        """Give the client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self._http.aclose()

    def stop(self) -> None:
        """Begin no further attempt; those in flight end and are stored."""
        self._stopped.set()

    async def positions(self, call: Call) -> list[Position]:
        """Ranked tokens for a call: from the store, or from the endpoint and then in the store.

        Raises
        ------
        InputError
            If the endpoint refuses the call for good, or does not answer usably in ``max_attempts`` attempts.
        BudgetSpentError
            If the call could bring the cost above the budget.
        """
        async with self._locks.setdefault(call.key, asyncio.Lock()):
            stored = self.store.answer(call.key)
            if stored is not None:
                return positions_of(stored, self.settings.top_logprobs)
            async with self._slots:
                return await self._with_retries(call)

    async def _with_retries(self, call: Call) -> list[Position]:
        from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt  # noqa: PLC0415

        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(_TryAgainError),
                stop=stop_after_attempt(self.settings.max_attempts),
                wait=_wait(self.settings),
                before_sleep=self._note,
                sleep=self._sleep,
                reraise=True,
            ):
                with attempt:
                    return await self._once(call)
        except _TryAgainError as error:
            raise InputError(
                f"no usable answer in {self.settings.max_attempts} attempts, the last: {error}; what was paid for is "
                "kept, the same command goes on from it",
                source=self.settings.base_url,
            ) from None
        raise AssertionError  # pragma: no cover - the loop returns or raises

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    def _note(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        log.info("attempt %d at %s: %s", state.attempt_number, self.settings.base_url, error)

    async def _once(self, call: Call) -> list[Position]:
        import httpx  # noqa: PLC0415

        if self._stopped.is_set():
            raise asyncio.CancelledError
        settings = self.settings
        most = settings.cost_usd(call.most_input_tokens, call.most_output_tokens)
        attempt = self.store.begin(call.key, most, settings.budget_usd)
        try:
            response = await self._http.post(call.path, json=dict(call.body), headers={"Idempotency-Key": call.key})
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            self.store.refused(attempt)
            raise _TryAgainError(f"the endpoint cannot be reached ({type(error).__name__})") from None
        except httpx.TransportError as error:
            self.store.unsure(attempt)
            raise _TryAgainError(f"the answer did not come ({type(error).__name__})") from None
        if response.status_code != httpx.codes.OK:
            self.store.refused(attempt)
            raise self._refusal(response)
        try:
            answer = response.json()
            positions = positions_of(answer, settings.top_logprobs)
        except (ValueError, UnusableAnswerError) as error:
            self.store.unsure(attempt)
            what = str(error) if isinstance(error, UnusableAnswerError) else "the answer is not JSON"
            raise _TryAgainError(self._shown(what)) from None
        usage = usage_of(answer)
        usd = most if usage is None else settings.cost_usd(*usage)
        self.store.keep(attempt, call.key, {"path": call.path, "body": dict(call.body)}, answer, usd)
        return positions

    def _refusal(self, response: httpx.Response) -> Exception:
        status = response.status_code
        text = f"HTTP {status}: {self._shown(response.text)}"
        # an empty account is not a busy endpoint
        if (status in _RETRIED or status >= 500) and "insufficient_quota" not in response.text:
            return _TryAgainError(text, _seconds(response.headers.get("Retry-After")))
        return InputError(f"refused the call, {text}", source=self.settings.base_url)

    def _shown(self, text: str) -> str:
        """A message as it may be shown: endpoints repeat a wrong key."""
        hidden = text.replace(self._secret, "[key]") if self._secret else text
        return " ".join(hidden.split())[:_SHOWN]


def _seconds(header: str | None) -> float | None:
    """Seconds of a ``Retry-After``; its other form, a date, is left to the backoff."""
    try:
        return None if header is None else max(float(header), 0.0)
    except ValueError:
        return None


def _wait(settings: ApiSettings) -> Callable[[Any], float]:
    from tenacity import wait_random_exponential  # noqa: PLC0415

    backoff = wait_random_exponential(multiplier=settings.backoff_s, max=settings.backoff_max_s)

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome is not None else None
        asked = error.wait_s if isinstance(error, _TryAgainError) else None
        return float(backoff(state)) if asked is None else min(asked, settings.backoff_max_s)

    return wait
