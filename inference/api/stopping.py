"""Being stopped while calls are in flight: what may be paid for ends and is stored first.

asyncio by itself cancels every task at the first Ctrl-C, and knows no SIGTERM.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from shannon_game.inference.api.calls import Call
from shannon_game.inference.api.client import ApiClient, Found, UnusableCallError
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.store import AnswerStore, Ledger

Result = TypeVar("Result")
"""What a piece of work gives, of one call or of several."""


@contextmanager
def first_signal_waits(ask: Callable[[], object]) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM ask for an end, and act on it at the end of the block; a second acts at once."""
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
        ask()

    for number in before:
        signal.signal(number, first)
    try:
        yield
    finally:
        if came:
            signal.raise_signal(came[0])
        put_back()


def run_calls(
    settings: ApiSettings,
    store: AnswerStore,
    read: Callable[[Any, Call], Found],
    work: Sequence[Callable[[ApiClient[Found], Callable[[], None]], Coroutine[Any, Any, Result]]],
    *,
    total: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[list[Result | UnusableCallError], set[str]]:
    """Do work that calls an endpoint, side by side, and give its results and what else the model was called."""
    client = ApiClient(settings, store, read)
    n_done = 0

    def done() -> None:
        nonlocal n_done
        n_done += 1
        if progress is not None:
            progress(n_done, total)

    async def one(each: Callable[..., Coroutine[Any, Any, Result]]) -> Result | UnusableCallError:
        try:
            return await each(client, done)
        except UnusableCallError as error:
            # the rest goes on, once any call has had a usable answer
            if not client.n_usable:
                raise
            return error

    def stop() -> None:
        logging.getLogger("shannon-game").warning(
            "stopping: the calls in flight end first (%g s at most); a second signal stops at once", settings.timeout_s
        )
        client.stop()

    async def every() -> list[Result | UnusableCallError]:
        async with client:
            tasks = [asyncio.ensure_future(one(each)) for each in work]
            try:
                return list(await asyncio.gather(*tasks))
            except BaseException:
                # what is in flight may be paid for: it is let to end and is stored, nothing new is begun
                client.stop()
                await asyncio.gather(*tasks, return_exceptions=True)
                raise

    # a signal comes while the loop sleeps
    with asyncio.Runner() as runner, first_signal_waits(lambda: runner.get_loop().call_soon_threadsafe(stop)):
        return runner.run(every()), client.other_names


def ask_each(
    calls: Sequence[Call],
    settings: ApiSettings,
    store: Path,
    read: Callable[[Any, Call], Found],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Found | UnusableCallError], Ledger]:
    """Make calls that do not depend on one another, equal ones once, and say what the store has cost."""

    async def asked(client: ApiClient[Found], done: Callable[[], None], *, call: Call) -> Found:
        found = await client.answer(call)
        done()
        return found

    if progress is not None:
        progress(0, len(calls))
    with AnswerStore(store) as answers:
        work = [partial(asked, call=call) for call in calls]
        found, _ = run_calls(settings, answers, read, work, total=len(work), progress=progress)
        return found, answers.ledger()
