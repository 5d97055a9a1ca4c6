"""Whose folder it is: a run has one of its own, and nobody else writes there as long as it lives."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from estimators.errors import InputError
from experiments.harness.command_line import quoted

__all__ = ["OwnFolder", "Refused", "is_taken", "release", "take", "take_unused"]

LOCK = ".running"
"""Name of the file that the owner of a folder has locked; it says who that is."""


_held: dict[Path, IO[str]] = {}


class Refused(BaseException):
    """A run may not start; no ``Exception``, because Hydra swallows those of its callbacks."""


class OwnFolder(Callback):
    """Hydra callback: give the run, or the sweep, a folder before anything is written there."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002 - Hydra's signature
        """Take the folder of a run."""
        with _refused():
            _set(config, "run", _own(Path(str(config.hydra.run.dir)), is_new="${now:" in _raw(config, "hydra.run.dir")))

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002 - Hydra's signature
        """Take the folder of a sweep."""
        is_new = "${sweep}" in _raw(config, "hydra.sweep.dir") and "${now:" in _raw(config, "sweep")
        with _refused():
            folder = _own(Path(str(config.hydra.sweep.dir)), is_new=is_new)
            _set(config, "sweep", folder)
            if is_new:
                # the name by which the user goes on with it
                config.sweep = folder.name


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except InputError as problem:
        raise Refused(str(problem)) from problem
    except OSError as problem:
        raise Refused(
            f"cannot write the outputs: {problem}; start where files can be written, or set hydra.run.dir"
        ) from problem


def _raw(config: DictConfig, key: str) -> str:
    """A setting as it is written, before anything is filled in."""
    plain: Any = OmegaConf.to_container(config, resolve=False)
    for name in key.split("."):
        plain = plain[name]
    return str(plain)


def _set(config: DictConfig, what: str, folder: Path) -> None:
    with read_write(config.hydra), open_dict(config.hydra):
        config.hydra[what].dir = str(folder)
        if what == "sweep":
            # each job composes its config anew, from the overrides
            config.hydra.overrides.hydra.append(f"hydra.sweep.dir={quoted(str(folder))}")


def _own(wanted: Path, *, is_new: bool) -> Path:
    if is_new:
        wanted = take_unused(wanted)
    else:
        wanted.mkdir(parents=True, exist_ok=True)
    take(wanted)
    return wanted


def take_unused(wanted: Path) -> Path:
    """Make a folder that was not there: the one that is wanted, or ``wanted_2``, ``wanted_3``, ... after it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     [take_unused(Path(home, "a")).name for _ in range(3)]
    ['a', 'a_2', 'a_3']
    """
    for number in count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}_{number}")
        # not "is it there?" and then "make it": another run may do both in between
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise AssertionError


def take(folder: Path) -> None:
    """Make a folder this process's own until it ends, however it ends.

    Parameters
    ----------
    folder : Path
        Exists.

    Raises
    ------
    InputError
        If it is another process's, which lives.
    """
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
                f"{owner} writes there; wait for its end, or name another folder", source=str(folder), field="outputs"
            )
        # the owner before may have removed the file between our opening and our locking it
        with suppress(FileNotFoundError):
            if (folder / LOCK).stat().st_ino == os.fstat(file.fileno()).st_ino:
                break
        file.close()
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
    for folder, file in list(_held.items()):
        with suppress(OSError):
            (folder / LOCK).unlink(missing_ok=True)
            file.close()
        del _held[folder]
