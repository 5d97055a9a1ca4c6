"""Being stopped while calls are in flight: what may be paid for ends and is stored first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["first_signal_waits"]


@contextmanager
def first_signal_waits() -> Iterator[Callable[[Callable[[], object]], None]]:
    """Let the first Ctrl-C or SIGTERM ask for an end, and act on it at the end of the block; a second acts at once.

    Yields
    ------
    callable
        Takes what asks for the end; it is called by the first signal.
    """
    asks: list[Callable[[], object]] = []
    came: list[int] = []
    # Python hands signals to its main thread alone; one that is ignored, as under nohup, stays so
    main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if main else ()
    before = {number: how for number in numbers if (how := signal.getsignal(number)) not in (None, signal.SIG_IGN)}

    def put_back() -> None:
        for number, how in before.items():
            signal.signal(number, how)

    def first(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        put_back()
        for ask in asks:
            ask()

    def when_asked(ask: Callable[[], object]) -> None:
        asks.append(ask)
        if came:
            ask()

    for number in before:
        signal.signal(number, first)
    try:
        yield when_asked
    finally:
        if came:
            signal.raise_signal(came[0])
        put_back()
