"""The command: ``python -m experiments.run +exp=NAME`` (or ``shannon-game +exp=NAME``).

It composes the config, loads the study, runs the experiment and writes its outputs; ``--help`` lists what can be set
and what the exit codes mean.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import NoReturn, cast

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from shannon_game.estimators.errors import InputError, require_packages, unknown_choice
from shannon_game.estimators.messages import for_command
from shannon_game.experiments.harness import folders, sweep
from shannon_game.experiments.harness.command_line import OWN_COMMANDS, check_arguments, no_experiment, one_line
from shannon_game.experiments.harness.given_keys import hide_keys, public, take_out, values_of, without
from shannon_game.experiments.harness.job import SHARED, Job, prepare
from shannon_game.experiments.harness.outputs import (
    JobStatus,
    begin,
    finish,
    read_status,
    report_of,
    write_outputs,
    write_status,
)
from shannon_game.experiments.harness.process import Terminated, keep_streams, leave, terminate_as_interrupt
from shannon_game.experiments.harness.registry import EXTRAS, to_plain
from shannon_game.experiments.harness.report import warnings_of
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.experiments.harness.resume import JobIdentity, done_before, job_identity, take_over
from shannon_game.experiments.harness.settings import OutputSettings, figure_width
from shannon_game.experiments.harness.tables import print_table
from shannon_game.experiments.studies.public_data import with_public_folders
from shannon_game.inference.manifest import FITS, remove_scratch, scratch
from shannon_game.inference.own_folder import release
from shannon_game.inference.posterior.kept import keep_fits
from shannon_game.inference.processes import end_with
from shannon_game.inference.progress import duration, say, stage
from shannon_game.inference.settings import Settings, Text, settings_from

EXIT_OK = 0
EXIT_FAILED = 1
"""An unexpected error, or a failed job in a sweep."""
EXIT_INPUT = 2
"""A mistake in the settings or the data, or no room for it on the disk or in memory."""
EXIT_GATE = 3
"""A failed check, of convergence or of a published value; the outputs are there."""
EXIT_INTERRUPTED = 130
"""Ctrl-C."""
EXIT_TERMINATED = 143
"""SIGTERM, as from a scheduler whose time is up."""

# a command's process, for the processes that it starts
_STARTER = "SHANNON_GAME_PROCESS"

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG}
# HDF5 has the system's words in its own
_DISK_FULL = os.strerror(errno.ENOSPC)

_USER_ERRORS = (InputError, HydraException, OmegaConfBaseException)


class RunSettings(Settings):
    """What the command itself reads."""

    resume: bool = False
    """Sweeps (-m) only: with the sweep's name, redo only the jobs that are missing or failed."""
    sweep: Text = ""
    """Name of the sweep."""
    output: OutputSettings = OutputSettings()
    """What a run writes."""


_ROUGH_SECONDS = 600.0
"""Where a time in minutes says enough."""

_SETTINGS = ("experiment", "study", *SHARED, *RunSettings.model_fields)

log = logging.getLogger("shannon-game")

# Hydra drops what the task returns from a single run, so the exit code takes this way out.
_exit_codes: list[int] = []


@for_command()
def run_job(cfg: DictConfig) -> int:
    """Run one job in Hydra's output folder; a failure is written down, not raised.

    A raised exception would make Hydra stop a sweep before its summary, and leave ``run.log`` empty.
    """
    settings = HydraConfig.get()
    folder = Path(settings.runtime.output_dir)
    overrides = public(tuple(cast("list[str]", OmegaConf.to_container(settings.overrides.task, resolve=False))))
    in_sweep = settings.mode == RunMode.MULTIRUN
    prefix = f"job {settings.job.num}: " if in_sweep else ""
    _end_with_starter()
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False  # a log that cannot be written is no reason for a traceback a line
    start = time.perf_counter()
    name = str(OmegaConf.select(cfg, "experiment.name"))
    status = JobStatus("running", name, overrides, "", datetime.now().astimezone().isoformat(timespec="seconds"))

    shows: Callable[[], None] | None = None
    try:
        hide_keys(cfg, folder)
        _check_settings(cfg)
        cfg = with_public_folders(cfg)
        identity = job_identity(cfg)
        status = replace(status, **asdict(identity))
        before = _done(folder, identity, prefix) if cfg.resume else None
        if before is None:
            if (aside := begin(folder, status)) is not None:
                say(f"{prefix}the earlier result is in {_shown(aside)}")
            # a folder that somebody named is gone on with where it is
            named = in_sweep or any(text.startswith("hydra.run.dir=") for text in settings.overrides.hydra)
            earlier = None if named else take_over(folder, identity)
            if earlier is not None:
                say(f"goes on with what the same run left in {_shown(earlier)}")
            before, shows = _run(cfg, folder, status, identity, prefix=prefix)
        code = EXIT_GATE if before.gate_failed else EXIT_OK
    except KeyboardInterrupt:
        _end(folder, replace(status, status="interrupted", seconds=_since(start)))
        raise
    # extensions in Rust raise what is no Exception
    except BaseException as error:
        if unknown := values_of(cfg, getattr(error, "unknown", "")):
            take_out(unknown, folder)
            status = replace(status, overrides=tuple(without(overrides, unknown)))
        code, message = _told(error, folder, prefix)
        _end(folder, replace(status, status="failed", seconds=_since(start), error=message))
    _exit_codes.append(code)
    # the result stands: whatever happens to the screen
    if shows is not None:
        shows()
    return code


def _done(folder: Path, identity: JobIdentity, prefix: str) -> JobStatus | None:
    done, again = done_before(folder, identity)
    if again:
        say(f"{prefix}done again: {again}")
    if not done:
        return None
    say(f"{prefix}done before, skipped")
    return read_status(folder)


def _end_with_starter() -> None:
    """Let a worker of a launcher, or a part of another run, not outlive what started it."""
    starter = os.environ.get(_STARTER, "")
    # what is no number is no process's: nobody but this command sets the variable
    end_with(int(starter) if starter.isdecimal() else -1)


def _told(error: BaseException, place: Path, prefix: str) -> tuple[int, str]:
    code, message = _judged(error)
    if code == EXIT_INPUT:
        log.error("%serror: %s", prefix, message)
    else:
        log.info("unexpected error\n%s", public(traceback.format_exc()))  # the file alone takes this level
        log.error("%sunexpected error: %s; the traceback is in %s", prefix, message, _shown(place / "run.log"))
    return code, message


def _judged(error: BaseException) -> tuple[int, str]:
    message = public(one_line(error, _SETTINGS))
    if isinstance(error, (*_USER_ERRORS, PermissionError)):
        return EXIT_INPUT, message
    if isinstance(error, MemoryError):
        message = message or "no size is known"
        return EXIT_INPUT, f"not enough memory: {message}; ask for less, or use a larger machine"
    if getattr(error, "errno", None) in _NO_ROOM or _DISK_FULL in message:
        return EXIT_INPUT, f"cannot write: {message}; make room, or set hydra.run.dir to another disk"
    return EXIT_FAILED, f"{type(error).__name__}: {message}"


def _end(folder: Path, status: JobStatus) -> None:
    # what ended before it began leaves the result that stands there
    if (standing := read_status(folder)) is not None and standing.status == "ok":
        return
    try:
        write_status(folder, status)
    except OSError:
        with suppress(OSError):
            (folder / "status.json").unlink(missing_ok=True)


def _since(start: float) -> float:
    return round(time.perf_counter() - start, 3)


def _check_settings(cfg: DictConfig) -> None:
    for key in cfg:
        if key not in _SETTINGS:
            raise unknown_choice("setting", key, _SETTINGS)
    settings_from(RunSettings, {name: to_plain(cfg, name) for name in RunSettings.model_fields})


def _run(
    cfg: DictConfig, folder: Path, status: JobStatus, identity: JobIdentity, *, prefix: str
) -> tuple[JobStatus, Callable[[], None]]:
    """Load, run, write; give the last status, and what shows the result.

    `prefix` names a job of a sweep, whose summary is printed instead of its table.
    """
    start = time.perf_counter()
    if OmegaConf.select(cfg, "experiment.name") is None:
        raise no_experiment()
    with stage(f"{prefix}{cfg.experiment.name}"):
        job, key = prepare(cfg, status.overrides, folder=folder), None
        if cfg.output.bundle:
            # what computes is imported late
            from shannon_game.experiments.harness.pseudonyms import pseudonymous, settings_with_pseudonyms  # noqa: PLC0415

            study, key = pseudonymous(job.study)
            job = replace(job, study=study, settings=settings_with_pseudonyms(job.settings, key))
        prepared = time.perf_counter()
        log.info("loaded study %s in %.2f s", job.study.attrs.get("name"), prepared - start)
        with keep_fits(folder / FITS, job.experiment, of=identity), figure_width(OutputSettings(**cfg.output).inches):
            result = job.run()
        done = time.perf_counter()
        log.info("ran %s in %.2f s", cfg.experiment.name, done - prepared)
        timings = {"loading": prepared - start, "experiment": done - prepared}
        warnings = warnings_of(job.study, result)
        with scratch(folder) as staging:
            write_outputs(
                staging, cfg, job.study, result, settings=job.settings, status=status, timings=timings, key=key
            )
            status = replace(status, warnings=warnings, gate_failed=result.gate_failed, seconds=_since(start))
            found = finish(folder, staging, status)
    remove_scratch(folder / FITS)
    if found != folder:
        raise InputError(
            f"a file that no run wrote stands in the way of the result, which is in {found}", source=str(folder)
        )
    timings["outputs"] = time.perf_counter() - done

    def show() -> None:
        if not prefix:
            _show(cfg, job, result, warnings, timings)
        # minutes are whole ones, rounded down: right for what is left, rough for what a few of them took
        seconds = _since(start)
        took = f"{seconds:.0f} s" if seconds < _ROUGH_SECONDS else duration(seconds)
        say(f"{prefix}{status.experiment} took {took}; report: {_shown(report_of(folder))}")
        if result.gate_failed:
            say(f"{prefix}a check failed; see the warnings")

    return status, show


def _show(
    cfg: DictConfig, job: Job, result: ExperimentResult, warnings: Sequence[str], timings: Mapping[str, float]
) -> None:
    if cfg.output.print:
        sys.stdout.write(f"{result.answer}\n\n")
        name = f"{cfg.experiment.name}: {job.study.attrs.get('name')}"
        print_table(result.view.table, name, result.view.constants)
    for text in warnings:
        log.warning("warning: %s", text)
    say(", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in timings.items()))


def _shown(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


@hydra.main(version_base="1.3", config_path="pkg://shannon_game.conf", config_name="config")
def _hydra_main(cfg: DictConfig) -> int:
    return run_job(cfg)


@for_command()
def main() -> int:
    """Run the command with ``sys.argv`` and return the exit code (see ``--help``)."""
    # Otherwise Hydra prints errors its own way, over many lines, and leaves with code 1 whatever they are.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    keep_streams()
    # what is imported stays: to look through it for cycles after every 700 objects takes a tenth of a first run
    gc.set_threshold(200_000)
    _end_with_starter()
    os.environ[_STARTER] = str(os.getpid())
    own = OWN_COMMANDS.get(next(iter(sys.argv[1:]), ""))
    try:
        with terminate_as_interrupt():
            if own is not None:
                module, name, extra = own
                require_packages(EXTRAS.get(extra, ()), extra, source=sys.argv[1])
                command: Callable[[Sequence[str]], int] = getattr(import_module(module), name)
                _exit_codes.append(command(sys.argv[2:]))
            else:
                sys.argv[1:] = check_arguments(sys.argv[1:])
                _hydra_main()
                if (complete := sweep.finish()) is not None:
                    return EXIT_OK if complete else EXIT_FAILED
    except KeyboardInterrupt as stop:
        terminated = isinstance(stop, Terminated)
        say("terminated" if terminated else "interrupted")
        with suppress(InputError):
            sweep.finish()
        return EXIT_TERMINATED if terminated else EXIT_INTERRUPTED
    except (*_USER_ERRORS, folders.Refused) as error:
        say(f"error: {public(one_line(error, _SETTINGS))}")
        return EXIT_INPUT
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        # YAML: a file that another file of the user's settings names
        no_yaml = f"a file of settings is no YAML: {' '.join(str(error).split())}"
        say(f"error: {folders.cannot_write(error) if isinstance(error, OSError) else no_yaml}")
        return EXIT_INPUT
    except Exception as error:
        # a launcher that died (a killed worker, a cancelled Slurm job): what the jobs left is still worth a summary
        if refused := sweep.refusal(error):
            say(f"error: {refused}")
        else:
            log.exception("unexpected error")
        with suppress(InputError):
            sweep.finish()
        return EXIT_FAILED
    finally:
        release()
    return max(_exit_codes, default=EXIT_OK)


def command() -> NoReturn:
    """Run :func:`main` as a process of its own."""
    leave(main())


if __name__ == "__main__":
    # launchers send the task to other processes by module and name, and `__main__` is another module there
    from shannon_game.experiments.run import command as imported_command

    imported_command()
