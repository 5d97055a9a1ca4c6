"""Checks of settings and arguments that are numbers or switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import word


def named(settings: object, *names: str) -> dict[str, Any]:
    """Fields of settings, by name."""
    return {name: getattr(settings, name) for name in names}


def check_numbers(
    values: Mapping[str, Any],
    source: str | None = None,
    *,
    whole: bool = False,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> None:
    """Refuse what is no finite (or whole) number between the limits."""
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    limits = {"above": above, "at least": at_least, "below": below, "at most": at_most}
    tests = {"above": np.greater, "at least": np.greater_equal, "below": np.less, "at most": np.less_equal}
    given = {word: limit for word, limit in limits.items() if limit is not None}
    for name, value in values.items():
        good = isinstance(value, kinds) and not isinstance(value, bool) and np.isfinite(value)
        if not good or not all(tests[word](value, limit) for word, limit in given.items()):
            kind = "a whole number" if whole else "a finite number"
            right = " and ".join([kind, *(f"{word} {limit:g}" for word, limit in given.items())])
            raise InputError(f"is {value!r}, should be {right}", source=source, field=name)


def check_switches(values: Mapping[str, Any], source: str | None = None) -> None:
    """Refuse what is neither true nor false."""
    for name, value in values.items():
        if not isinstance(value, bool):
            raise InputError(f"is {word(value)}, should be {word(True)} or {word(False)}", source=source, field=name)
