"""Whose folder it is: a run has one of its own, and nobody else writes there as long as it lives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import quoted
from shannon_game.experiments.harness import sweep
from shannon_game.experiments.harness.outputs import (
    JobStatus,
    check_run_folder,
    read_status,
    refuse_links,
    write_status,
)
from shannon_game.inference.manifest import claim, take_unused
from shannon_game.inference.own_folder import take


class Refused(BaseException):
    """A run may not start; no ``Exception``, because Hydra swallows those of its callbacks."""


class OwnFolder(Callback):
    """Hydra callback: give the run, or the sweep, a folder before anything is written there."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002 - Hydra's signature
        """Take the folder of a run."""
        with _refused():
            wanted = Path(str(config.hydra.run.dir))
            is_new = "${now:" in _raw(config, "hydra.run.dir")
            if not is_new:
                refuse_links(wanted)
                check_run_folder(wanted)
            folder = _own(wanted, is_new=is_new)
            if read_status(folder) is None:
                # before Hydra writes there, so that the folder is a run's from its first file on
                write_status(folder, JobStatus("running", "", (), "", datetime.now().astimezone().isoformat()))
            _set(config, "run", folder)

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:  # noqa: ARG002 - Hydra's signature
        """Take the folder of a sweep."""
        is_new = "${sweep}" in _raw(config, "hydra.sweep.dir") and "${now:" in _raw(config, "sweep")
        with _refused():
            if _raw(config, "hydra.sweep.subdir") != "${hydra.job.num}":
                raise InputError("is fixed: jobs are numbered; set hydra.sweep.dir", field="hydra.sweep.subdir")
            wanted = Path(str(config.hydra.sweep.dir))
            if not is_new:
                refuse_links(wanted)
                claim(wanted, "sweep")
                for job in (path for path in wanted.iterdir() if path.name.isdigit()):
                    refuse_links(job)
                    check_run_folder(job, in_sweep=True)
                _check_jobs(wanted, config)
            folder = _own(wanted, is_new=is_new)
            claim(folder, "sweep")
            _set(config, "sweep", folder)
            if is_new:
                # the name by which the user goes on with it
                config.sweep = folder.name
            sweep.STARTED.append(config)


def _check_jobs(folder: Path, config: DictConfig) -> None:
    """Refuse a plan in which a job that is done has other settings: its result would be replaced."""
    for number, planned in enumerate(sweep.planned_jobs(config) or []):
        before = read_status(folder / str(number))
        found = None if before is None or before.status != "ok" else sweep.settings_of(before.overrides)
        if found is not None and found != planned:
            said = ", ".join(f"{key}={value}" for key, value in found.items() if planned.get(key) != value)
            problem = f"job {number} is done with other settings ({said or 'fewer'}); give the sweep another name"
            raise InputError(problem, source=str(folder), field="sweep")


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except InputError as problem:
        raise Refused(str(problem)) from problem
    except OSError as problem:
        raise Refused(cannot_write(problem)) from problem


def cannot_write(error: OSError) -> str:
    """Line about outputs that have no place."""
    return f"cannot write the outputs: {error}; start where files can be written, or set hydra.run.dir"


def _raw(config: DictConfig, key: str) -> str:
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
