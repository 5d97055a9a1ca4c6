"""Everything that an endpoint can say, and what the client makes of it: one line, in time, and nothing given away."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import socketserver
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.inference.api.calls import Position, call_for, positions_of
from shannon_game.inference.api.client import ApiClient
from shannon_game.inference.api.keys import holds_key
from shannon_game.inference.api.scoring import TextWindow, score_windows
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.store import AnswerStore
from tests.inference.api.fake_server import KEY
from tests.inference.api.hostile_server import (
    HUNG,
    answer,
    chat,
    drips,
    floods,
    hostile,
    http,
    resets,
    says,
    serving_forever,
    silent,
    then,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
START = b"HTTP/1.1 200 OK\r\n"
LATE = "no usable answer in 3 attempts, the last: no whole answer came in 60 s"
BROKEN = r"in 3 attempts, the last: the answer did not come \(\w+\)"
NOT_JSON = "in 3 attempts, the last: the answer is not JSON"
UNREAD = "the answer's logprobs cannot be read"
DEEP = "nested too deeply"
LONG = "longer than max_answer_bytes=50000"
KEPT_OUT = "the answer repeats the key"
NOTHING = "the answer has no choices"
P99 = -0.01005


CONTEXT = cache(ssl.create_default_context)


def encoded(before: str = "", after: str = "") -> str:
    return base64.b64encode(f"{before}{KEY}{after}".encode()).decode()


# name: what the server says, what the client says (None: it takes the answer), how often it asks
CASES: dict[str, tuple[Any, str | None, int]] = {
    # the answer does not come
    "silent": (silent, LATE, 3),
    "drip-body": (drips(http(b"", length=10**6), b" "), LATE, 3),
    "drip-error": (drips(http(b"", "500 Oops", length=10**6), b"x"), "HTTP 500: ;", 3),
    "flood-headers": (floods(START, b"X: y\r\n" * 1000), BROKEN, 3),
    "reset": (resets, BROKEN, 3),
    # the answer is too much, or no JSON
    "flood-chunks": (floods(CHUNKED, b"10000\r\n" + b" " * 65536 + b"\r\n"), LONG, 2),
    "flood-error": (floods(http(b"", "500 Oops", length=10**12), b"x" * 65536), r"HTTP 500: x+;", 3),
    "gzip": (says(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}), r"is compressed \(gzip\)", 2),
    "cut": (says(json.dumps(answer()).encode()[:40]), NOT_JSON, 3),
    "deep-lists": (says(b"[" * 40_000), DEEP, 2),
    # it is of another shape
    "no-choices": (says({"choices": []}), NOTHING, 3),
    "no-logprobs": (says({"choices": [{"text": "x"}]}), "no logprobs; does the endpoint give them", 3),
    "tokens-a-text": (says({"choices": [{"logprobs": {"tokens": "a", "top_logprobs": [{"a": -1}]}}]}), UNREAD, 2),
    "no-ranking": (says(answer({})), "a position has no ranked tokens", 2),
    "chat": (says(chat((" a", -1), (" b", -2))), None, 1),
    # numbers
    "positive": (says(answer({" a": 0.5})), "a log-probability is above 0", 2),
    "nan": (says(b'{"choices": [{"logprobs": {"tokens": ["a"], "top_logprobs": [{"a": NaN}]}}]}'), "not finite", 2),
    "three-99": (says(chat((" a", P99), (" b", P99), (" c", P99))), "the probabilities of one list add up to 2.97", 2),
    "sum-1.02": (says(answer({" a": -0.01, " b": -3.35})), "add up to 1.025", 2),
    # texts
    "surrogate-sampled": (says(answer(sampled="\ud83d")), "half a character", 2),
    "surrogate-elsewhere": (says(answer(note="\ud83d")), None, 1),
    # of which model, at what price
    "other-model": (says(answer(model="else")), r"of the model 'else', not of 'fake'; .* accept_model_names", 2),
    "dated-model": (says(answer(model="fake-2024-08-06")), None, 1),
    "usage-part": (says(answer(usage={"prompt_tokens": 3})), None, 1),
    "usage-good": (says(answer(usage={"prompt_tokens": 3, "completion_tokens": 1})), None, 1),
    "usage-more": (says(answer(usage={"prompt_tokens": 300, "completion_tokens": 2})), None, 1),
    # it says no
    "401": (
        says(b"bad key " + KEY.encode(), "401 Unauthorized"),
        r"refused the call, HTTP 401: bad key \[key\]; check the key in",
        1,
    ),
    "401-encoded": (says(encoded("x").encode(), "401 Unauthorized"), "a text that repeats the key is not shown", 1),
    "redirect": (says(b"", "302 Found", {"Location": "/chat/v1/completions"}), "HTTP 302", 1),
    "429-nan": (says(b"busy", "429 Busy", {"Retry-After": "nan"}), "HTTP 429: busy", 3),
    "quota": (says(b'{"code": "insufficient_quota"}', "429 Busy"), "refused the call, HTTP 429", 1),
    "503": (then(says(b"busy", "503 Busy"), says()), None, 2),
    "500-usage": (says({"usage": {"prompt_tokens": 3}}, "500 Oops"), "HTTP 500", 3),
    # it repeats the key
    "key": (says(answer({KEY: -1.0})), KEPT_OUT, 2),
    "key-hex": (says(answer(text=KEY.encode().hex())), KEPT_OUT, 2),
    "key-base64-inside": (says(answer(text=encoded("Bearer ", "; and"))), KEPT_OUT, 2),
    "key-base64-url": (says(answer(text=base64.urlsafe_b64encode(KEY.encode()).decode())), KEPT_OUT, 2),
    "key-url": (says(answer(text=quote(KEY, safe=""))), KEPT_OUT, 2),
    "key-spaced": (says(answer(text=" ".join(KEY))), KEPT_OUT, 2),
    "key-escaped": (says(json.dumps(answer(text=KEY)).replace("Very", "\\u0056ery").encode()), KEPT_OUT, 2),
    "key-in-tokens": (says(answer(text=[KEY[:4], KEY[4:12], KEY[12:]])), KEPT_OUT, 2),
    "key-in-header": (says(headers={"X-Echo": KEY}), None, 1),
    "key-not-json": (says(f"<p>{KEY}</p>".encode()), KEPT_OUT, 2),
    # once wrong, then right
    "wrong-once": (then(says(chat((" a", P99), (" b", P99))), says()), None, 2),
    "key-once": (then(says(answer(text=KEY)), says()), None, 2),
}


# of "once 0", 6 characters: a dollar a million tokens, at most one for a byte and one before them
MOST_USD = 7e-6
USAGE_USD = {"usage-good": 3e-6, "usage-part": 3e-6, "usage-more": 300e-6}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Counter[str]]]:
    with hostile({name: case[0] for name, case in CASES.items()}) as serving:
        yield serving


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    # a twentieth of a second each
    monkeypatch.setattr(ssl, "create_default_context", CONTEXT)
    monkeypatch.setattr(asyncio, "timeout", when_hung)


TIMEOUT = asyncio.timeout


@asynccontextmanager
async def when_hung(seconds: float) -> AsyncIterator[None]:
    """The client's time is up when the server hangs, however busy the machine is."""
    assert seconds == 60
    async with TIMEOUT(None) as limit:

        async def watch() -> None:
            while not HUNG.acquire(blocking=False):
                await asyncio.sleep(0.005)
            limit.reschedule(asyncio.get_running_loop().time())

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()


def settings(url: str, name: str, **changes: Any) -> ApiSettings:
    default = {
        "model": "fake",
        "key_env": "FAKE_KEY",
        "reuse": False,
        "max_answer_bytes": 50_000,
        "max_attempts": 3,
        "backoff_s": 0.001,
        "backoff_max_s": 0.01,
        "usd_per_million_input": 1.0,
        "budget_usd": 1.0,
    }
    return ApiSettings(base_url=f"{url}/{name}/v1", **default | changes)


def windows(n: int = 1) -> list[TextWindow]:
    return [TextWindow("text", f"{number}", ("once", f" {number}"), (" a",)) for number in range(n)]


def asked(chosen: ApiSettings, store: Path, n_windows: int = 1) -> str | None:
    """What the client says, None if it takes the answer."""
    try:
        study = score_windows(windows(n_windows), chosen, store)
    except InputError as error:
        causes: BaseException | None = error
        while causes is not None:
            assert not holds_key(str(causes), KEY)
            causes = causes.__cause__ or causes.__context__
        return str(error)
    assert study.sizes["token"] == n_windows
    return None


@pytest.mark.parametrize("name", CASES)
def test_a_case(name: str, server: tuple[str, Counter[str]], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url, counted = server
    _, match, n_requests = CASES[name]
    with caplog.at_level(logging.DEBUG):
        said = asked(settings(url, name), tmp_path / "s.db")
    if match is None:
        assert said is None
    else:
        assert said is not None
        assert re.search(match, said)
        assert said.isprintable()
    assert counted[name] == n_requests
    assert not holds_key(caplog.text, KEY)
    with AnswerStore(tmp_path / "s.db") as store:
        ledger = store.ledger()
    assert ledger.n_answers == (match is None)
    if name in ("503", "500-usage"):
        assert ledger.n_unsure == (0 if name == "503" else 3)
    if name.startswith("usage"):
        assert ledger.paid_usd == USAGE_USD.get(name, MOST_USD)
    # no attempt is left open
    wrong_once = name in ("wrong-once", "key-once")
    assert ledger.n_apart == (2 if match is not None and n_requests == 2 else wrong_once)
    for path in tmp_path.iterdir():
        assert not holds_key(path.read_bytes().decode("latin-1"), KEY)
    # a resume pays for no answer twice, and asks no call a third time whose answers were wrong
    if match is None or ledger.n_apart == 2:
        again = asked(settings(url, name), tmp_path / "s.db")
        assert (again is None) == (match is None)
        assert counted[name] == n_requests


@pytest.mark.parametrize("late_s", [0, 0.05])
@pytest.mark.parametrize("extra", ["whole", "length too short"])
def test_bytes_after_an_answer_are_no_answer_to_another_prompt(extra: str, late_s: float, tmp_path: Path) -> None:
    """A server that keeps connections open and sends the same answer again, before it is asked the next prompt."""
    served: list[str] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                while self.rfile.readline():
                    length = 0
                    while line := self.rfile.readline().strip().lower():
                        length = int(line.partition(b":")[2]) if line.startswith(b"content-length:") else length
                    prompt = json.loads(self.rfile.read(length))["prompt"]
                    served.append(prompt)
                    content = http(answer({prompt: -1.0}, sampled=prompt), headers={"Connection": "keep-alive"})
                    more = content if extra == "whole" else b" " * 40 + content
                    if late_s:
                        self.wfile.write(content)
                        time.sleep(late_s)
                        self.wfile.write(more)
                    else:
                        self.wfile.write(content + more)

    with serving_forever(Handler) as url, AnswerStore(tmp_path / "s.db") as store:
        chosen = settings(url, "v", concurrency=1)

        async def ask() -> list[list[Position]]:
            async with ApiClient(chosen, store, positions_of) as client:
                found = []
                for prompt in ("one", "two", "three"):
                    found.append(await client.answer(call_for(chosen, prompt)))
                    # what comes late has come
                    await asyncio.sleep(2 * late_s)
                return found

        answers = asyncio.run(ask())
    assert [position[0].sampled for position in answers] == served == ["one", "two", "three"]
