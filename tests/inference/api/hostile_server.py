"""A server that says whatever a case wants, byte by byte if it must; each case is a path of its own."""

from __future__ import annotations

import json
import socket
import socketserver
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

Say = Callable[[socket.socket, int], None]
"""Told the connection and the number of the request, from 1."""
HUNG = threading.Semaphore(0)
"""Released by every answer that will not end, once it has gone on for a while."""


def answer(ranked: Any = None, sampled: Any = " a", **more: Any) -> dict[str, Any]:
    """A good answer of completions, with one thing wrong."""
    ranked = {" a": -0.5, " b": -1.5} if ranked is None else ranked
    choice = {"text": " a", "logprobs": {"tokens": [sampled], "top_logprobs": [ranked]}}
    return {"model": "fake", "choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 1}} | more


def chat(*ranked: tuple[Any, Any]) -> dict[str, Any]:
    """An answer of a chat."""
    content = [{"token": " a", "top_logprobs": [{"token": token, "logprob": value} for token, value in ranked]}]
    return {"choices": [{"logprobs": {"content": content}}]}


def http(
    body: object, status: str = "200 OK", headers: Mapping[str, str] | None = None, length: int | None = None
) -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Length": str(len(content) if length is None else length), "Connection": "close"} | dict(
        headers or {}
    )
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in given.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode() + content


def says(body: object = None, status: str = "200 OK", headers: Mapping[str, str] | None = None) -> Say:
    """The same answer to every request."""
    return raw(http(answer() if body is None else body, status, headers))


def raw(content: bytes) -> Say:
    return lambda connection, _: connection.sendall(content)


def then(*each: Say) -> Say:
    """One after the other, the last one from then on."""
    return lambda connection, number: each[min(number, len(each)) - 1](connection, number)


def drips(start: bytes, again: bytes, seconds: float = 0.02) -> Say:
    """A start, and then without end a little more: no single read takes long."""

    def say(connection: socket.socket, _: int) -> None:
        connection.sendall(start)
        for number in range(1000):
            time.sleep(seconds)
            connection.sendall(again)
            if number == 3:
                HUNG.release()

    return say


def floods(start: bytes, again: bytes) -> Say:
    """As much as the connection takes, for ever."""

    def say(connection: socket.socket, _: int) -> None:
        connection.sendall(start)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            connection.sendall(again)

    return say


def silent(connection: socket.socket, _: int) -> None:
    connection.settimeout(20)
    HUNG.release()
    # the client hangs up first
    with suppress(OSError):
        connection.recv(1)


def resets(connection: socket.socket, _: int) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64


@contextmanager
def hostile(cases: Mapping[str, Say]) -> Iterator[tuple[str, Counter[str]]]:
    """Serve the cases: the address before their names, and how often each was asked."""
    asked: Counter[str] = Counter()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                name = self.rfile.readline().split(b"/")[1].decode()
                length = 0
                while line := self.rfile.readline().strip().lower():
                    length = int(line.partition(b":")[2]) if line.startswith(b"content-length:") else length
                self.rfile.read(length)
                asked[name] += 1
                cases[name](self.connection, asked[name])

    with serving_forever(Handler) as url:
        yield url, asked


@contextmanager
def serving_forever(handler: type[socketserver.BaseRequestHandler]) -> Iterator[str]:
    """Serve in a thread; the address."""
    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
