"""Being stopped from outside: what a scheduler or `kill` sends ends a run as Ctrl-C does, with its work kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


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
