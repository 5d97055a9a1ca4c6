"""An endpoint that keeps books: what it charged for, by idempotency key, and the faults it makes on purpose."""

from __future__ import annotations

import hashlib
import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-Very/Secret+0123456789"
_VOCABULARY = [" the", " a", " cat", " dog", " sat", ",", ".", " on", " mat", "the", "\n", " ran"]


def ranking(text: str, n: int) -> list[tuple[str, float]]:
    """What this model thinks comes next: a function of all the text before, and of nothing else."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    rng = random.Random(seed)
    weights = sorted((rng.random() ** 4 for _ in _VOCABULARY), reverse=True)
    total = sum(weights) * 1.1
    tokens = rng.sample(_VOCABULARY, len(_VOCABULARY))
    return [(token, math.log(weight / total)) for token, weight in zip(tokens, weights, strict=True)][:n]


def completion(prompt: str, n_tokens: int, n_ranked: int) -> list[tuple[str, list[tuple[str, float]]]]:
    """Sampled tokens, now and then not the best one, with their rankings."""
    found = []
    for _ in range(n_tokens):
        ranked = ranking(prompt, n_ranked)
        sampled = ranked[1 if len(prompt) % 5 == 0 else 0][0]
        found.append((sampled, ranked))
        prompt += sampled
    return found


class FakeEndpoint:
    """State of the server; `fault` is told the number of the request and gives the name of a fault, or None."""

    def __init__(self, fault: Callable[[int], str | None], *, idempotent: bool = True, seconds: float = 0.0) -> None:
        self.fault = fault
        self.idempotent = idempotent
        self.seconds = seconds
        self.charged: Counter[str] = Counter()
        self.answers: dict[str, bytes] = {}
        self.faults: Counter[str] = Counter()
        self.n_requests = 0
        self.most_at_once = 0
        self._at_once = 0
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        self.url = ""

    def answer(self, path: str, body: dict[str, Any]) -> bytes:
        if path.endswith("chat/completions"):
            positions = completion(body["messages"][-1]["content"], body["max_tokens"], body["top_logprobs"])
            content = [
                {
                    "token": sampled,
                    "logprob": -1.0,
                    "top_logprobs": [{"token": token, "logprob": value} for token, value in ranked],
                }
                for sampled, ranked in positions
            ]
            logprobs: dict[str, Any] = {"content": content}
        else:
            positions = completion(body["prompt"], body["max_tokens"], body["logprobs"])
            logprobs = {
                "tokens": [sampled for sampled, _ in positions],
                # in no order, as a mapping may be
                "top_logprobs": [dict(sorted(ranked)) for _, ranked in positions],
            }
        usage = {"prompt_tokens": 10, "completion_tokens": len(positions)}
        return json.dumps({"choices": [{"logprobs": logprobs}], "usage": usage}).encode()


def handler(endpoint: FakeEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def reply(self, status: int, content: bytes, length: int | None = None, **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content) if length is None else length))
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            with endpoint.lock:
                endpoint._at_once += 1
                endpoint.most_at_once = max(endpoint.most_at_once, endpoint._at_once)
            try:
                self.answer()
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                with endpoint.lock:
                    endpoint._at_once -= 1

        def answer(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if not raw:  # killed before it had sent its body
                return None
            body = json.loads(raw)
            key = self.headers["Idempotency-Key"]
            with endpoint.lock:
                endpoint.n_requests += 1
                number = endpoint.n_requests
                endpoint.bodies.append(body)
                endpoint.headers.append(dict(self.headers))
                fault = endpoint.fault(number)
                if fault:
                    endpoint.faults[fault] += 1
            if endpoint.seconds:
                time.sleep(endpoint.seconds)
            if fault == "429":
                return self.reply(429, b'{"error": "slow down"}', Retry_After="0.01")
            if fault == "500":
                return self.reply(500, b"oops")
            # from here on the call is charged for, once for every idempotency key
            with endpoint.lock:
                if not (endpoint.idempotent and key in endpoint.answers):
                    endpoint.charged[key] += 1
                    endpoint.answers[key] = endpoint.answer(self.path, body)
            content = endpoint.answers[key]
            if fault == "timeout":
                time.sleep(2.0)
                return None
            if fault == "truncated":
                return self.reply(200, content[: len(content) // 2])
            if fault == "broken off":
                self.reply(200, content[: len(content) // 2], length=len(content))
                self.close_connection = True
                return None
            if fault == "no logprobs":
                return self.reply(200, b'{"choices": [{"text": "x", "logprobs": null}]}')
            return self.reply(200, content)

    return Handler


@contextmanager
def serving(endpoint: FakeEndpoint) -> Iterator[FakeEndpoint]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(endpoint))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


FAULTS = ("429", "500", "timeout", "truncated", "broken off", "no logprobs")


def three_in_ten(seed: int, faults: tuple[str, ...] = FAULTS) -> Callable[[int], str | None]:
    """A fault in 30% of requests, each kind as often."""

    def fault(number: int) -> str | None:
        rng = random.Random(f"{seed} {number}")
        return rng.choice(faults) if rng.random() < 0.3 else None

    return fault


def never(_: int) -> None:
    return None
