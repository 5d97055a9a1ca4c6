"""Files that stand whole or not at all; one that the disk has no room for is refused before it is begun.

And databases in one file that several processes make at the same time.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import time
from pathlib import Path

__all__ = ["make_room", "write_ahead", "write_whole"]

_OVERHEAD_BYTES = 2**17
_RETRY_SECONDS = 0.02


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


def write_whole(path: Path, text: str) -> Path:
    r"""Write a text as UTF-8 in one step, its line ends as they are: a reader sees the whole file or the one before.

    Parameters
    ----------
    path : Path
        In a folder that exists.
    text : str

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "answers.csv"), "word\n").read_text()
    'word\n'
    """
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8", newline="")
    return partial.replace(path)


def write_ahead(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch an SQLite file to a write-ahead log, while other processes may do the same.

    SQLite refuses the switch at once where another connection makes it or closes the file: the connection's own time to
    wait holds for transactions only.

    Parameters
    ----------
    connection : sqlite3.Connection
        Outside of a transaction.
    busy_seconds : float
        How long to try.

    Raises
    ------
    sqlite3.OperationalError
        If the file stays locked for so long, or cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     connection = sqlite3.connect(Path(folder, "answers.db"))
    ...     write_ahead(connection, busy_seconds=1)
    ...     print(connection.execute("PRAGMA journal_mode").fetchone())
    ...     connection.close()
    ('wal',)
    """
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
