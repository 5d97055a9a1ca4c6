"""Run the parts of ``+exp=reproduce``: commands in folders of their own, side by side, resumable."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig

from shannon_game.estimators.messages import quoted
from shannon_game.experiments.harness.csv_tables import write_csv
from shannon_game.experiments.harness.figures import png_of
from shannon_game.experiments.harness.outputs import moved_aside, read_status
from shannon_game.experiments.harness.process import Terminated
from shannon_game.experiments.harness.resume import done_before, job_identity
from shannon_game.experiments.papers.reproduce.parts import DATA, PAPER_FIGURES, PaperPart
from shannon_game.experiments.papers.reproduce.sheet import figure_sheet
from shannon_game.experiments.studies.public_data import public_folder
from shannon_game.inference.progress import counted, say, stage

State = Literal["done", "done before", "failed", "data missing", "not run"]

# what children get to leave by themselves after Ctrl-C, which a terminal sends to them too
_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Planned:
    """A part with everything it needs to run."""

    part: PaperPart
    folder: Path
    overrides: tuple[str, ...]
    """Arguments of the command, without the output folder."""
    problem: str
    """Why its data are not there, and what to do; empty if they are."""
    may_download: bool
    unwanted: str = ""
    """Why it is not asked for, and which setting would; empty if it is."""


@dataclass(frozen=True)
class Outcome:
    """What became of a part."""

    planned: Planned
    state: State
    seconds: float = float("nan")
    message: str = ""
    """Error, or what to do."""
    gate_failed: bool = False

    @property
    def name(self) -> str:
        """Of the part."""
        return self.planned.part.name

    @property
    def has_outputs(self) -> bool:
        """Whether its folder holds a complete run."""
        return self.state in ("done", "done before")


def data_root(data: Mapping[str, Path | str | None], group: str) -> tuple[str | None, str]:
    """Find the folder of a group's data, and say what is wrong with it."""
    source = DATA[group]
    own, root = data[source.folder], data["root"]
    if own is None and root is None:
        own = public_folder(source.folder)
    if own is None and root is None:
        said = f"there is no download; get {source.what}, and set data.{source.folder}=FOLDER"
        return None, "" if source.downloads else f"{said} (or data.root, or SHANNON_DATA)"
    path = Path(own or Path(str(root)) / source.folder).absolute()
    if path.is_file() or any((path / name).exists() for name in source.any_of):
        return str(path), ""
    found = f"{path} has no {' or '.join(source.any_of)}" if path.is_dir() else f"{path} is not there"
    return str(path), f"{found}; put there {source.what}, or set data.{source.folder}=FOLDER"


def plan(
    parts: Sequence[PaperPart],
    *,
    data: Mapping[str, Path | str | None],
    folder: Path,
    common: Sequence[str] = (),
    extra: Mapping[str, Sequence[str]] | None = None,
    unwanted: Callable[[PaperPart], str] = lambda _: "",
) -> list[Planned]:
    """Give every part its folder, its command and what stands in its way."""
    found = []
    for part in parts:
        root, problem = data_root(data, part.group)
        overrides = (
            *(f"+exp={part.experiment}", f"study={DATA[part.group].study}"),
            *([] if root is None else [f"study.root={quoted(root)}"]),
            *part.settings,
            *common,
            *(extra or {}).get(part.name, ()),
        )
        found.append(Planned(part, folder / part.name, overrides, problem, root is None, unwanted(part)))
    return found


def run_parts(planned: Sequence[Planned], *, n_jobs: int, again: Sequence[str] = ()) -> list[Outcome]:
    """Run what is wanted, can run, and is not there yet."""
    outcomes: dict[str, Outcome] = {}
    todo: list[Planned] = []
    for one in planned:
        if one.unwanted or one.problem:
            state: State = "not run" if one.unwanted else "data missing"
            outcomes[one.part.name] = Outcome(one, state, message=one.unwanted or one.problem)
        elif one.part.name not in again and _is_done(one):
            outcomes[one.part.name] = _finished(one, "done before")
        else:
            todo.append(one)
    if todo:
        n_before = sum(one.state == "done before" for one in outcomes.values())
        say(f"to do: {counted(len(todo), 'part')}, {n_jobs} at a time; {n_before} done before")
        outcomes |= {one.name: one for one in _side_by_side(todo, n_jobs)}
    return [outcomes[one.part.name] for one in planned]


def _is_done(one: Planned) -> bool:
    if read_status(one.folder) is None:
        return False
    # inside the command Hydra is set up already; in a test or a notebook it is not
    started = GlobalHydra.instance().is_initialized()
    with nullcontext() if started else initialize_config_module("shannon_game.conf", version_base="1.3"):
        cfg: DictConfig = compose("config", overrides=list(one.overrides))
    return done_before(one.folder, job_identity(cfg))[0]


def _finished(one: Planned, state: State) -> Outcome:
    status = read_status(one.folder)
    if status is None or status.status != "ok":
        return Outcome(one, "failed", message="" if status is None else status.error or "")
    return Outcome(one, state, status.seconds or float("nan"), gate_failed=status.gate_failed)


def _side_by_side(todo: Sequence[Planned], n_jobs: int) -> list[Outcome]:
    """Run commands in threads that wait for them: the work is in the processes."""
    running: dict[str, subprocess.Popen[bytes]] = {}
    found: list[Outcome] = []
    start = time.monotonic()
    with stage("parts", len(todo)) as show, ThreadPoolExecutor(max_workers=n_jobs) as pool:
        futures = {pool.submit(_run_one, one, running, n_jobs) for one in todo}
        try:
            while futures:
                done, futures = wait(futures, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in done:
                    found.append(future.result())
                    say(f"{len(found)} of {len(todo)}: {_line(found[-1])}")
                show(len(found), now=", ".join(sorted(running)), seconds_left=_seconds_left(todo, found, start))
        except KeyboardInterrupt as stop:
            for future in futures:
                future.cancel()
            # a terminal sends Ctrl-C to the parts as well; nobody told them of the other
            _stop(list(running.values()), grace_seconds=0 if isinstance(stop, Terminated) else _GRACE_SECONDS)
            raise
    return found


def _seconds_left(todo: Sequence[Planned], found: Sequence[Outcome], start: float) -> float | None:
    done = sum(outcome.planned.part.seconds for outcome in found)
    whole = sum(one.part.seconds for one in todo)
    return (time.monotonic() - start) * (whole / done - 1) if found else None


def _line(outcome: Outcome) -> str:
    if not outcome.has_outputs:
        return f"{outcome.name}: {outcome.state}: {outcome.message}"
    return f"{outcome.name}: {outcome.seconds:.1f} s" + (", did not converge" if outcome.gate_failed else "")


def _stop(processes: Sequence[subprocess.Popen[bytes]], *, grace_seconds: float) -> None:
    for seconds, stop in ((grace_seconds, subprocess.Popen.terminate), (_GRACE_SECONDS, subprocess.Popen.kill)):
        end = time.monotonic() + seconds
        for process in processes:
            try:
                process.wait(max(end - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                stop(process)


def _run_one(one: Planned, running: dict[str, subprocess.Popen[bytes]], n_jobs: int) -> Outcome:
    if (before := read_status(one.folder)) is not None and before.status == "ok":
        # a result is never replaced
        say(f"{one.part.name}: the result of before is in {moved_aside(one.folder).name}")
    one.folder.mkdir(parents=True, exist_ok=True)
    threads = str(max(1, cores() // n_jobs))
    limits = {name: os.environ.get(name, threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    arguments = [*one.overrides, f"hydra.run.dir={quoted(str(one.folder))}", "output.print=false"]
    # not in the part's folder, where only the part writes
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "shannon_game", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # its data are among its settings, by which it is found again
            env={name: value for name, value in os.environ.items() if name != "SHANNON_DATA"} | limits,
        )
        running[one.part.name] = process
        try:
            code = process.wait()
        finally:
            running.pop(one.part.name, None)
        log.seek(0)
        lines = log.read().decode("utf-8", errors="replace").splitlines()
    last = next((line for line in reversed(lines) if line.strip()), "nothing was said")
    outcome = _finished(one, "done")
    # the command's exit codes, see shannon_game.experiments.run
    if code in (0, 3) and outcome.has_outputs:
        return outcome
    # a command that could not start leaves the status of the one before
    message = f"ended with exit code {code}: {last}" if outcome.has_outputs else outcome.message or last
    if code == 2 and one.may_download:
        source = DATA[one.part.group]
        missing = f"{message}; or get {source.what}, and set data.{source.folder}=FOLDER"
        return Outcome(one, "data missing", message=missing)
    return Outcome(one, "failed", message=message)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_figures(outcomes: Mapping[str, Outcome], papers: Iterable[str], folder: Path) -> None:
    """Copy the papers' figures to a folder, named as there; ``figures.csv`` says what is not drawn, and why.

    ``sheet.png`` has all of them, each below what the paper's figure shows.
    """
    folder.mkdir()
    rows = []
    asked = ((paper, *each) for paper in papers for each in PAPER_FIGURES.get(paper, {}).items())
    for paper, where, one in asked:
        outcome, found = outcomes.get(one.get("part", "")), list[Path]()
        row = {"paper": paper, "figure": where, "file": "", "note": one.get("note", ""), "caption": one["caption"]}
        if outcome is not None and outcome.has_outputs:
            found = sorted((outcome.planned.folder / "figures").glob(f"{one['figure']}.*"))
        elif outcome is not None:
            row["note"] = f"{outcome.state}: {outcome.message}"
        for path in found:
            name = f"{paper}_{where}".replace(" ", "_") + f"_{path.stem}" * ("*" in one["figure"]) + path.suffix
            shutil.copyfile(path, folder / name)
            rows.append({**row, "file": name})
        rows += [] if found else [row]
    write_csv(pd.DataFrame(rows), folder / "figures.csv")
    (folder / "sheet.png").write_bytes(png_of(figure_sheet(rows, folder)))
