"""Files that stand whole or not at all, that fit on the disk, or that their owner alone reads; SQLite files shared."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

__all__ = ["make_private", "make_room", "open_private", "write_ahead", "write_whole"]

_OVERHEAD_BYTES = 2**17
_RETRY_SECONDS = 0.02


def make_private(path: Path) -> None:
    """Leave the reading of a file or folder to its owner; a file that is not there is made."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        # another user's file keeps its mode, and some file systems have none
        with suppress(OSError):
            path.chmod(mode & 0o700)


def open_private(path: Path, mode: str = "w", **how: Any) -> IO[Any]:
    """Open a file for writing that its owner alone can read, before anything is in it."""
    make_private(path)
    return path.open(mode, **how)


def make_room(path: Path, n_bytes: float) -> None:
    """Refuse to begin a file that the disk has no room for: HDF5 brings the process down when a disk is full."""
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


def write_whole(path: Path, text: str, *, private: bool = False) -> Path:
    """Write a text as UTF-8 in one step, its line ends as they are: a reader sees the whole file or the one before."""
    partial = path.with_name(f".{path.name}.partial")
    if private:
        make_private(partial)
    partial.write_text(text, encoding="utf-8", newline="")
    return partial.replace(path)


def write_ahead(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch an SQLite file to a write-ahead log, while other processes may do the same; its owner alone reads it.

    SQLite refuses the switch at once where another connection makes it or closes the file: the connection's own time to
    wait holds for transactions only. New files of the log get the mode of the database.
    """
    for _, _, file in connection.execute("PRAGMA database_list").fetchall():
        for name in (file, f"{file}-wal", f"{file}-shm", f"{file}-journal"):
            if file and Path(name).exists():
                make_private(Path(name))
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            # the low byte is the kind of error, the rest its reason
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return
