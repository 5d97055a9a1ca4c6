"""Calls to an endpoint: several at a time, retried with backoff, each paid for once.

By httpx and tenacity: the openai SDK retries by itself, and what it pays for then would be in no ledger.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shannon_game.estimators.errors import InputError, printable, require_packages
from shannon_game.inference.api.calls import (
    Call,
    UnusableAnswerError,
    WrongAnswerError,
    answer_of,
    model_of,
    text_of,
    tokens_paid,
)
from shannon_game.inference.api.connection import TryAgainError, body_of, connection, seconds_of, waits
from shannon_game.inference.api.keys import holds_key, key_of
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.store import AnswerStore, NoAnswerError

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("shannon-game")

_RETRIED = (408, 409, 425, 429)
# of a key or an account
_NOT_LET_IN = (401, 402, 403)
# bad gateway, gateway time-out, and those of Cloudflare
_GATEWAYS = (502, 504, *range(520, 528))
_SHOWN = 300
# of an error's text, which is shown in part
_MOST_ERROR_BYTES = 100_000
# a wrong answer is asked for once more
_MOST_WRONG = 2
# what a claim lasts longer than its call: the answer is read and stored
_LEASE_SLACK_S = 10.0
_POLL_S = 0.1


Found = TypeVar("Found")
"""What is read of an answer."""


class StoppedError(Exception):
    """The client was told to stop before the call was sent."""


class UnusableCallError(InputError):
    """The endpoint answers a call, and its answers cannot be used; it is not asked again."""


class ApiClient(Generic[Found]):
    """An endpoint with a store; an asynchronous context manager."""

    def __init__(self, settings: ApiSettings, store: AnswerStore, read: Callable[[Any, Call], Found]) -> None:
        require_packages(("httpx", "tenacity"), "api", source="the client of the endpoint")

        self.settings = settings
        self.store = store
        self._wanted = read
        self._secret = key_of(settings)
        self._slots = asyncio.Semaphore(settings.concurrency)
        # two windows may ask the same: the second waits for the first's answer
        self._locks: dict[str, asyncio.Lock] = {}
        self._stopped = asyncio.Event()
        self._is_told = False
        self.n_usable = 0
        """Calls so far whose answer could be used, stored ones too."""
        self.other_names: set[str] = set()
        """What used answers call the model, where that is not as it was asked for."""
        self._http = connection(settings, self._secret)

    async def __aenter__(self) -> ApiClient[Found]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def stop(self) -> None:
        """Begin no further attempt; those in flight end and are stored."""
        self._stopped.set()

    async def answer(self, call: Call) -> Found:
        """Answer a call: from the store, or from the endpoint and then in the store."""
        async with self._locks.setdefault(call.key, asyncio.Lock()):
            found = self._stored(call)
            if found is None:
                async with self._slots:
                    found = await self._with_retries(call)
        self.n_usable += bool(found)
        return found

    def _stored(self, call: Call) -> Found | None:
        """Answer from the store; an answer there that cannot be used never was one."""
        text = self.store.answer(call)
        if text is not None:
            try:
                return self._read(text, call)[1]
            except UnusableAnswerError as error:
                self.store.move_apart(call.key, self._shown(str(error)), self._kept(text))
        apart = self.store.apart(call)
        for _, kept in apart:
            with suppress(UnusableAnswerError):
                # other settings can use it
                if kept is not None:
                    return self._read(kept, call)[1]
        if len(apart) >= _MOST_WRONG:
            raise UnusableCallError(
                f"{len(apart)} answers to one call cannot be used, the last: {apart[-1][0]}; they are kept apart, and "
                "the call is not asked again",
                source=f"{self.settings.base_url}, {self.store.path}",
            )
        return None

    def _read(self, text: str, call: Call) -> tuple[Any, Found]:
        """Read an answer's JSON and what is wanted of it, if it may be stored and used."""
        if holds_key(text, self._secret):
            raise WrongAnswerError("the answer repeats the key, and is not kept")
        answer = answer_of(text)
        found = self._wanted(answer, call)
        named = model_of(answer, self.settings)
        self.other_names |= {named} - {self.settings.model}
        return answer, found

    async def _with_retries(self, call: Call) -> Found:
        from tenacity import AsyncRetrying, before_sleep_log, retry_if_exception_type, stop_after_attempt  # noqa: PLC0415

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TryAgainError),
            stop=stop_after_attempt(self.settings.max_attempts),
            wait=waits(self.settings),
            before_sleep=before_sleep_log(log, logging.INFO),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return await retrying(self._once, call)
        except TryAgainError as error:
            raise NoAnswerError(
                f"no usable answer in {self.settings.max_attempts} attempts, the last: {error}; what was paid for is "
                "kept, the same command goes on from it",
                source=self.settings.base_url,
            ) from None

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), seconds)

    async def _once(self, call: Call) -> Found:
        import httpx  # noqa: PLC0415

        settings = self.settings
        most = settings.cost_usd(call.most_input_tokens, call.most_output_tokens)
        while True:
            if self._stopped.is_set():
                raise StoppedError("stopped before all was asked; the same command goes on from what is stored")
            attempt = self.store.begin(call.key, most, settings.budget_usd or 0.0, settings.timeout_s + _LEASE_SLACK_S)
            if attempt is not None:
                break
            # another process has asked it
            await self._sleep(_POLL_S)
            found = self._stored(call)
            if found is not None:
                return found
        # an endpoint that knows idempotency keys would give a wrong answer again
        n_wrong = len(self.store.apart(call))
        headers = {"Idempotency-Key": f"{call.key}-{n_wrong}" if n_wrong else call.key}
        response = None
        try:
            async with (
                asyncio.timeout(settings.timeout_s),
                self._http.stream("POST", call.path, json=dict(call.body), headers=headers) as response,
            ):
                ok = response.status_code == httpx.codes.OK
                content = await body_of(response, settings.max_answer_bytes if ok else _MOST_ERROR_BYTES)
        except (httpx.TransportError, TimeoutError) as error:
            if response is None or not response.is_error:
                is_sent = not isinstance(error, httpx.ConnectError)
                (self.store.unsure if is_sent else self.store.refused)(attempt)
                late = f"no whole answer came in {settings.timeout_s:g} s (timeout_s)"
                broken = f"the {'answer did not come' if is_sent else 'endpoint cannot be reached'}"
                broken += f" ({type(error).__name__}); check that the server runs, and base_url"
                if not (is_sent or self._is_told):
                    self._is_told = True
                    log.warning("%s cannot be reached and is tried again", settings.base_url)
                raise TryAgainError(late if isinstance(error, TimeoutError) else broken) from None
            content = b""
        if response.status_code != httpx.codes.OK:
            # what is no refusal may have been paid for, and a gateway's error what stands behind it has answered
            paid = response.status_code < 400 or response.status_code in _GATEWAYS or b'"usage"' in content
            (self.store.unsure if paid else self.store.refused)(attempt)
            raise self._refusal(response, content[:_MOST_ERROR_BYTES].decode(errors="replace"))
        return self._keep(attempt, call, response.headers.get("Content-Encoding"), content)

    def _keep(self, attempt: int, call: Call, encoding: str | None, content: bytes) -> Found:
        """Store an answer before anything is done with it, or keep it apart."""
        text, settings = None, self.settings
        try:
            text = text_of(content, encoding, settings.max_answer_bytes)
            answer, found = self._read(text, call)
        except WrongAnswerError as error:
            self.store.set_apart(attempt, call, self._shown(str(error)), self._kept(text))
            # the second one ends the call
            self._stored(call)
            raise TryAgainError(self._shown(str(error))) from None
        except UnusableAnswerError as error:
            self.store.unsure(attempt)
            raise TryAgainError(self._shown(str(error))) from None
        self.store.keep(attempt, call, text, settings.cost_usd(*tokens_paid(call, answer)))
        return found

    def _refusal(self, response: httpx.Response, said: str) -> Exception:
        status = response.status_code
        text = f"HTTP {status}: {self._shown(said)}"
        # an empty account is not a busy endpoint
        is_empty = "insufficient_quota" in said
        if (status in _RETRIED or status >= 500) and not is_empty:
            return TryAgainError(text, seconds_of(response.headers.get("Retry-After", "")))
        kind = NoAnswerError if is_empty or status in _NOT_LET_IN else InputError
        variable = self.settings.key_variable
        fix = {
            401: f"check the key in {variable}" if variable else "no key was sent: name its variable by key_env",
            404: f"check base_url and the model's name, {self.settings.model!r}",
        }.get(status)
        return kind(f"refused the call, {text}{f'; {fix}' if fix else ''}", source=self.settings.base_url)

    def _shown(self, text: str) -> str:
        """A message as it may be shown: endpoints repeat a wrong key, and may send what moves a terminal's cursor."""
        hidden = text.replace(self._secret, "[key]") if self._secret else text
        if holds_key(hidden, self._secret):
            return "(a text that repeats the key is not shown)"
        return printable(" ".join(hidden.split())[:_SHOWN])

    def _kept(self, text: str | None) -> str | None:
        return None if text is None or holds_key(text, self._secret) else text
