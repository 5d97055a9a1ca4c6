"""What does not fit into memory is refused before it is begun: the system kills a process without a word."""

from __future__ import annotations

import os
from pathlib import Path

from estimators.errors import InputError

__all__ = ["check_memory"]

_LIMIT = Path("/sys/fs/cgroup/memory.max")


def check_memory(n_bytes: float, *, source: object = None, field: object = None) -> None:
    """Refuse what needs more memory than this machine, or this container, has.

    Parameters
    ----------
    n_bytes : float
        Needed at least.
    source, field : object, optional
        Setting that makes it so large.

    Raises
    ------
    InputError
        Says what it would need and what there is.

    Examples
    --------
    >>> check_memory(1000)
    >>> check_memory(1e15, field="vocab_size")
    Traceback (most recent call last):
        ...
    estimators.errors.InputError: vocab_size: would need about 931,323 GiB of memory; there are ...
    """
    there = _memory()
    if there is not None and n_bytes > there:
        raise InputError(
            f"would need about {n_bytes / 2**30:,.0f} GiB of memory; there are {there / 2**30:,.0f}",
            source=source,
            field=field,
        )


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
