"""Sides that compute the same numbers take turns, so that what else the machine does slows all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

Result = TypeVar("Result")


def take_turns(
    sides: Mapping[str, Callable[[], Result]],
    turns: int,
    *,
    repeats: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> tuple[dict[str, list[float]], dict[str, Result]]:
    """Seconds of each turn of every side, and what it gave last; a turn is the mean of so many repeats."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    results: dict[str, Result] = {}
    for _ in range(turns):
        for name, side in sides.items():
            begin = clock()
            for _ in range(repeats):
                results[name] = side()
            seconds[name].append((clock() - begin) / repeats)
    return seconds, results
