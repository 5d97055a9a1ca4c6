"""Folders that belong to one process as long as it lives: nobody else writes there.

The lock of the package filelock goes on in a child that outlives its parent, and does not say who holds it.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from shannon_game.estimators.errors import InputError

LOCK = ".running"
"""Name of the file that the owner of a folder has locked; it says who that is."""

_held: dict[Path, IO[str]] = {}


def take(folder: Path, *, field: str = "outputs") -> None:
    """Make a folder this process's own until it ends, however it ends, or gives it back."""
    folder = folder.resolve()
    if sys.platform == "win32" or folder in _held:
        return
    while True:
        file = (folder / LOCK).open("a+", encoding="utf-8")
        if not _lock(file):
            file.seek(0)
            owner = file.read().strip() or "another process"
            file.close()
            raise InputError(
                f"{owner} writes there; wait for its end, or name another folder", source=str(folder), field=field
            )
        # the owner before may have removed the file between our opening and our locking it
        with suppress(FileNotFoundError):
            if (folder / LOCK).stat().st_ino == os.fstat(file.fileno()).st_ino:
                break
        file.close()
    file.seek(0)
    if (found := file.read(80)) and not found.startswith("process "):
        file.close()
        raise InputError(f"its file {LOCK} is not of this toolkit; move it, or name another folder", source=str(folder))
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()
    _held[folder] = file


def _lock(file: IO[str]) -> bool:
    """Lock a file; False if another process has it. The system lets go of it when the process dies."""
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        # of a process, not of a file handle as flock is: a child that outlives us does not keep it
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # some network disks know no locks
    return True


def is_taken(folder: Path) -> bool:
    """Whether a process that lives has the folder."""
    if folder.resolve() in _held:
        return True
    if sys.platform == "win32" or not (folder / LOCK).exists():
        return False
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        return not _lock(file)


def release() -> None:
    """Give back all folders that this process has taken."""
    for folder in list(_held):
        _give_back(folder)


@contextmanager
def own(folder: Path, *, field: str = "outputs") -> Iterator[None]:
    """Have a folder for as long as the block lasts; one that this process has already stays its own."""
    is_new = folder.resolve() not in _held
    take(folder, field=field)
    try:
        yield
    finally:
        if is_new:
            _give_back(folder.resolve())


def _give_back(folder: Path) -> None:
    file = _held.pop(folder, None)
    if file is not None:
        with suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
            file.close()
