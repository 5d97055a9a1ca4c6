"""Life signs of long work: a bar in a terminal, else a line every half minute, so that no log is mute or full.

The bar is that of rich. Stages stand inside each other (a run, its fits, the draws of one fit), which no library puts
into one line of a log::

    human_loss, 6 min so far: fits 2 of 7, about 14 min left: draws 12,000 of 40,000
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

Show = Callable[..., None]
"""Takes how much is done and, if that has changed, of how much (`total`) and what is being done (`now`); and how long
the rest takes (`seconds_left`), where that is known better than by the pace so far."""

_EVERY_SECONDS = 30.0


@dataclass
class _Stage:
    what: str
    total: int | None
    start: float
    done: int = 0
    now: str = ""
    done_before: int | None = None
    left: float | None = None
    task: Any = None

    @property
    def name(self) -> str:
        return f"{self.what} ({self.now})" if self.now else self.what

    def seconds_left(self, inner: float) -> float | None:
        """Expect the rest to go as what was done here, unless told; `inner` is the part done of the next one."""
        if self.left is not None:
            return self.left
        if self.done == self.total:
            # what follows the last one is not counted
            return None
        done = self.done + inner - (self.done_before or 0)
        # the first of several is no measure before it has ended: its steps differ
        if not self.total or done <= 0 or (self.total > 1 and self.done == (self.done_before or 0)):
            return None
        return (time.monotonic() - self.start) * max(self.total - self.done - inner, 0) / done


class _Display:
    """All stages of this process, outermost first, and what shows them."""

    def __init__(self) -> None:
        self.stages: list[_Stage] = []
        self.bars: Any = None
        self.ended = threading.Event()

    def open(self, stage: _Stage) -> None:
        self.stages.append(stage)
        if len(self.stages) == 1:
            if sys.stderr.isatty():
                self.bars = _bars()
                self.bars.start()
            else:
                self.ended = threading.Event()
                threading.Thread(target=_tick, args=(self.ended,), daemon=True, name="life signs").start()
        if self.bars is not None:
            stage.task = self.bars.add_task(stage.what, total=stage.total)

    def close(self, stage: _Stage) -> None:
        self.stages.remove(stage)
        if self.bars is not None:
            self.bars.remove_task(stage.task)
        if not self.stages:
            self.ended.set()
            if self.bars is not None:
                self.bars.stop()
                self.bars = None

    def show(self, stage: _Stage) -> None:
        if self.bars is not None:
            self.bars.update(stage.task, completed=stage.done, total=stage.total, description=stage.name)


_display = _Display()


@contextmanager
def stage(what: str, total: int | None = None, *, announced: bool = False) -> Iterator[Show]:
    """Show, as long as the block runs, what is done and how far it is."""
    found = _Stage(what, total, start=time.monotonic())

    def show(done: int, total: int | None = None, *, now: str = "", seconds_left: float | None = None) -> None:
        found.now = now
        found.left = seconds_left
        found.total = found.total if total is None else total
        if found.done_before is None:
            found.done_before = done
            if announced and found.total is not None:
                before = f", {done:,} were done before" if done else ""
                say(f"{what}: {found.total - done:,} to do{before}")
        found.done = done
        _display.show(found)

    _display.open(found)
    try:
        yield show
    finally:
        _display.close(found)


def advance(what: str) -> None:
    """Count one more in the innermost stage of that name, wherever it was opened."""
    for one in reversed(_display.stages):
        if one.what == what:
            one.done_before = one.done_before or 0
            one.done += 1
            _display.show(one)
            return


def say(text: str) -> None:
    """Write one line to stderr, above the bar if there is one."""
    # the log is gone with its reader or its disk: no reason to lose the work
    with suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def duration(seconds: float) -> str:
    """Time as a person says it."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def counted(n: int, thing: str, things: str | None = None) -> str:
    """Number with its noun, in the plural unless it is one."""
    return f"{n:,} {thing if n == 1 else things or f'{thing}s'}"


def _tick(ended: threading.Event) -> None:
    said = ""
    while not ended.wait(_EVERY_SECONDS):
        stages = list(_display.stages)
        line = _line(stages)
        # after the first minute times are whole minutes, and what stands still would be said twice
        if line != said or (stages and time.monotonic() - stages[0].start < 60):
            say(line)
        said = line


def _line(stages: list[_Stage]) -> str:
    """Describe the stages; an inner one that has no end of its own counts nothing towards the outer one.

    Only the outermost that has several things to do says how long it takes: that is what a reader waits for.
    """
    whole = next((one for one in stages if (one.total or 1) > 1), None)
    parts: list[str] = []
    inner = 0.0
    for one in reversed(stages):
        left = one.seconds_left(inner) if one is whole else None
        said = one.what if one.total is None else f"{one.what} {one.done:,} of {one.total:,}"
        said += f" ({one.now})" if one.now else ""
        parts.append(said if left is None else f"{said}, about {duration(left)} left")
        inner = min((one.done + inner) / one.total, 1.0) if one.total else 0.0
    if stages:
        parts[-1] += f", {duration(time.monotonic() - stages[0].start)} so far"
    return ": ".join(reversed(parts))


def _bars() -> Any:
    from rich.console import Console  # noqa: PLC0415 - only where somebody watches
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import TimeRemainingColumn as Left  # noqa: PLC0415

    text = TextColumn("{task.description}", markup=False)
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), Left(compact=True))
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
