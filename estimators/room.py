"""What does not fit into memory or onto the disk is refused before it is begun: both end a process without a word."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from estimators.errors import InputError

__all__ = ["check_memory", "make_room"]

_OVERHEAD_BYTES = 2**17
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


def make_room(path: Path, n_bytes: float) -> None:
    """Refuse to begin a file that the disk has no room for: HDF5 brings the process down when a disk is full.

    Parameters
    ----------
    path : Path
        Of the file that is to be written; its folder exists.
    n_bytes : float
        Of its numbers.

    Raises
    ------
    OSError
        If the disk is full, or the user may fill no more of it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_room(Path(folder, "results.nc"), 1000)
    """
    wanted = int(1.1 * n_bytes) + _OVERHEAD_BYTES
    if shutil.disk_usage(path.parent).free < wanted:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    if hasattr(os, "posix_fallocate"):
        # what a user may fill is known when it is asked for only
        trial = path.with_name(f".{path.name}.room")
        try:
            with trial.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, wanted)
        finally:
            trial.unlink(missing_ok=True)


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
