"""The one exception that means "your input is wrong", wherever it is found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

_LIMIT = Path("/sys/fs/cgroup/memory.max")


class InputError(ValueError):
    """Bad input: the message names the source, the field, the value and what would be right.

    Parameters
    ----------
    problem : str
        What is wrong and what would be right, as one sentence.
    source : str, optional
        The file, dataset or argument group in which it was found.
    field : str, optional
        The field, column, variable or parameter; a setting as :class:`~shannon_game.estimators.messages.Set`.
    """

    unknown: str = ""
    """Name of a setting that does not exist: what it was given may be a secret, and is written nowhere."""

    def __init__(self, problem: str, *, source: object = None, field: object = None) -> None:
        self.problem, self.source, self.field = problem, source, field
        place = ", ".join(str(part) for part in (source, field) if part is not None)
        message = f"{place}: {problem}" if place else problem
        # a path may hold bytes that are no UTF-8, and a value of a file commands to a terminal
        super().__init__(printable(message))


def printable(text: str) -> str:
    r"""Show line ends, commands to a terminal and halves of surrogate pairs as Python writes them in a string."""
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def unknown_choice(what: str, value: object, valid: Iterable[object], *, source: object = None) -> InputError:
    """Build the error for a name that is not among the valid ones, which it lists; `what` says what it should name."""
    names = [str(name) for name in valid]
    near = get_close_matches(str(value), names, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    there = f"choose one of: {', '.join(names)}" if names else "there is none to choose"
    error = InputError(f"unknown {what} {value!r}; {meant}{there}", source=source)
    error.unknown = str(value) if what == "setting" else ""
    return error


def require_packages(packages: Iterable[str], extra: str, *, source: object = None, field: object = None) -> None:
    """Refuse to start what needs a missing package, and say which extra brings it."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise InputError(how_to_install(", ".join(missing), extra), source=source, field=field)


def how_to_install(missing: str, extra: str) -> str:
    """Say that something is not installed, and which extra of this project brings it."""
    return f"{missing} not installed; in the project's folder: pip install -c constraints.txt '.[{extra}]'"


def check_memory(n_bytes: float, *, source: object = None, field: object = None) -> None:
    """Refuse what needs more memory than this machine, or this container, has."""
    there = _memory()
    if there is not None and n_bytes > there:
        problem = f"would need about {n_bytes / 2**30:,.0f} GiB of memory; there are {there / 2**30:,.0f}"
        raise InputError(problem, source=source, field=field)


def _memory() -> float | None:
    """Bytes of memory; None where the system does not say."""
    try:
        own = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(own, float(_LIMIT.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return own
