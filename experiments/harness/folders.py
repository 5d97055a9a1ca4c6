"""Whose folder it is: a run has one of its own, and nobody else writes there as long as it lives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from estimators.errors import InputError
from experiments.harness.command_line import quoted
from inference.own_folder import LOCK, is_taken, release, take

__all__ = ["LOCK", "OwnFolder", "Refused", "is_taken", "release", "take", "take_unused"]


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
