"""What happens to a process from outside: it is told to end, the readers of its streams go, a disk is full."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TextIO, cast


class Terminated(KeyboardInterrupt):
    """SIGTERM came. Whatever cleans up after Ctrl-C cleans up after this."""


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise :class:`Terminated` inside the block.

    Python's own answer is to die on the spot, with the status left at "running" and child processes left to run on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python hands no signal to other threads
        return
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated


class _Kept:
    """A text stream that swallows what cannot be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        return not self._stream.closed and self._stream.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def keep_streams() -> None:
    """Let a stream that was closed, or whose reader has gone, lose no more than what it would have shown."""
    # else a file of results takes the number of a closed stream, and what C code prints goes into it
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as long as the process
        if not isinstance(stream, _Kept):
            setattr(sys, name, cast("TextIO", _Kept(stream)))


def leave(code: int) -> NoReturn:
    """End the process at once, after what was registered for its end and with nothing left unwritten.

    Python would first take every module apart: 2 s of the processor where torch was imported, a sixth of a short run.
    """
    # another thread may still be at work; Python waits for it
    if threading.active_count() > 1:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
