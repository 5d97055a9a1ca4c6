"""Files that stand whole or not at all, that fit on the disk, or that their owner alone reads; SQLite files shared."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shannon_game.estimators.errors import InputError

_MARK = b"\nshannon-game sha256 "
_SIGNED_BYTES = len(_MARK) + 32
_OVERHEAD_BYTES = 2**17
_RETRY_SECONDS = 0.02
_CREATING = threading.Lock()


def cache_folder() -> Path:
    """Folder of what is kept on the machine between runs."""
    import pooch  # noqa: PLC0415 - it brings what downloads, which a run of one's own data needs not

    return Path(pooch.os_cache("shannon-game"))


def sign(path: Path) -> None:
    """Append the SHA-256 of a file to it: HDF5's checksums are of chunks, and it does not look beyond its own end."""
    digest = _digest(path, path.stat().st_size)
    with path.open("ab") as file:
        file.write(_MARK + digest)


def refuse_other(path: Path, is_own: Callable[[Path], bool], what: str) -> None:
    """Refuse to replace a file that the toolkit did not write."""
    if path.is_symlink() or (path.exists() and not (path.is_file() and is_own(path))):
        raise InputError(f"exists and is no {what} of this toolkit; move it, or name another file", source=path)


def is_signed(path: Path) -> bool:
    """Whether a file bears a mark of :func:`sign`, right or not."""
    return _end(path).startswith(_MARK)


def is_as_signed(path: Path) -> bool:
    """Whether a file is what :func:`sign` signed; another program's files bear no mark and pass."""
    return not is_signed(path) or _end(path) == _MARK + _digest(path, path.stat().st_size - _SIGNED_BYTES)


def _end(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _SIGNED_BYTES, 0))
        return file.read()


def _digest(path: Path, length: int) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while length > 0 and (part := file.read(min(length, 2**20))):
            digest.update(part)
            length -= len(part)
    return digest.digest()


def create_private(path: Path) -> None:
    """Make a file that its owner alone reads, unless it is there; what is there is not opened."""
    # a thread that found the file made connects to it once it is closed here, see write_ahead
    with _CREATING, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def close_to_others(path: Path) -> None:
    """Let the owner of a file alone read it."""
    # another user's file keeps its mode, some file systems have none, and a log may go while it is looked at
    with suppress(OSError):
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            path.chmod(mode & 0o700)


def make_room(path: Path, n_bytes: float) -> None:
    """Refuse to begin a file that the disk has no room for: HDF5 brings the process down when a disk is full."""
    wanted = int(1.1 * n_bytes) + _OVERHEAD_BYTES
    if shutil.disk_usage(path.parent).free < wanted:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
    if hasattr(os, "posix_fallocate"):
        # what a user may fill is known when it is asked for only
        with tempfile.TemporaryFile(dir=path.parent) as file:
            os.posix_fallocate(file.fileno(), 0, wanted)


@contextmanager
def whole(path: Path, *, private: bool = False) -> Iterator[Path]:
    """Give a new file beside a path that takes its place once the block ends well: a reader sees all of it or none."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=f".partial{path.suffix}", dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        if not private:
            os.umask(mask := os.umask(0o077))
            partial.chmod(0o666 & ~mask)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str, *, private: bool = False) -> Path:
    """Write a text as UTF-8 in one step, its line ends as they are."""
    with whole(path, private=private) as partial:
        partial.write_text(text, encoding="utf-8", newline="")
    return path


def write_ahead(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch an SQLite file to a write-ahead log, while other processes may do the same; its owner alone reads it.

    SQLite alone opens the file: POSIX locks belong to the process, and whoever in it closes the file by other means
    drops them all. Another process then takes itself for the last user and deletes the log that this one writes to
    (section 2.2 of https://www.sqlite.org/howtocorrupt.html).
    """
    # a connection's own time to wait holds for transactions, not for this switch
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            # what is no database is the user's: SQLite refuses it here
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            # the low byte is the kind of error, the rest its reason
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            break
    for _, _, file in connection.execute("PRAGMA database_list").fetchall():
        for end in ("", "-wal", "-shm", "-journal") if file else ():
            close_to_others(Path(f"{file}{end}"))
