"""Files that stand whole or not at all; one that the disk has no room for is refused before it is begun."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

__all__ = ["make_room", "write_whole"]

_OVERHEAD_BYTES = 2**17


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
