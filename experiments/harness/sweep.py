"""The summary of a sweep: one table and one figure over all of its jobs, made at its end.

It reads only what the jobs left in their folders, so it does not matter which launcher ran them, where, and in how
many sittings.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.csv_tables import read_guarded_csv, unguarded, write_csv
from shannon_game.experiments.harness.given_keys import HIDDEN
from shannon_game.experiments.harness.outputs import broken_output, read_status
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.report import fill, save_figures
from shannon_game.experiments.harness.rows import Column, columns_of, typed
from shannon_game.experiments.harness.tables import latex_table, markdown_table, print_table
from shannon_game.experiments.harness.views import View, paper_table, swept
from shannon_game.inference.manifest import replaced
from shannon_game.inference.progress import counted

if TYPE_CHECKING:
    import pandas as pd
    from hydra.core.override_parser.types import Override

_SAID = 300
"""Characters of a message of Slurm that are shown."""

_NOT_SETTINGS = frozenset({"resume", "sweep"})
_PRINTED_ROWS = 60


@dataclass(frozen=True)
class SweptJob:
    """What one job of a sweep left behind."""

    number: int
    """Name of its folder."""
    status: str
    """As in ``status.json``; "missing" if there is none, or of a job with other settings or without an output."""
    overrides: Mapping[str, str]
    """Setting -> value as the user wrote it, ``resume`` and ``sweep`` left out."""
    error: str
    table: pd.DataFrame | None = None
    """Cells of ``table.csv`` as they were written."""
    columns: Sequence[Column] = ()
    """What the columns are, as the experiment declares them or else by their types."""


def settings_of(overrides: Sequence[str]) -> dict[str, str]:
    """Settings of a job, without those of the sweep itself."""
    pairs = (text.lstrip("+").split("=", 1) for text in overrides if "=" in text)
    return {key: value for key, value in pairs if key not in _NOT_SETTINGS and not key.startswith("hydra.")}


def planned_jobs(config: DictConfig) -> list[dict[str, str]] | None:
    """List the settings of every job of a sweep, in order; None if a sweeper other than Hydra's own decides them."""
    if not str(config.hydra.sweeper._target_).endswith(".BasicSweeper"):
        return None
    given = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
    given += cast("list[str]", OmegaConf.to_container(config.hydra.overrides.task, resolve=False))
    return [settings_of(overrides) for overrides in expanded(given)]


def expanded(given: Sequence[str]) -> list[tuple[str, ...]]:
    """Overrides of every job of a sweep, in the order of Hydra's own sweeper."""
    levels = []
    for one in OverridesParser.create().parse_overrides(list(given)):
        values = one.sweep_string_iterator() if one.is_sweep_override() else [one.get_value_element_as_str()]
        levels.append([f"{one.get_key_element()}={value}" for value in values])
    return list(product(*levels))


def collect(folder: Path, planned: Sequence[Mapping[str, str]] | None = None) -> list[SweptJob]:
    """Read what the jobs of a sweep left."""
    if planned is None:
        numbers = sorted(int(path.name) for path in folder.iterdir() if path.is_dir() and path.name.isdigit())
        return [_read_job(folder, number, None) for number in numbers]
    return [_read_job(folder, number, settings) for number, settings in enumerate(planned)]


def _read_job(folder: Path, number: int, planned: Mapping[str, str] | None) -> SweptJob:
    status = read_status(folder / str(number))
    found = settings_of(status.overrides) if status else {}
    # of what was hidden there is nothing to compare
    hidden = {key: value for key, value in found.items() if HIDDEN in value and key in (planned or ())}
    wanted = found if planned is None else {**planned, **hidden}
    lost = status is not None and status.status == "ok" and broken_output(folder / str(number), status) is not None
    if status is None or found != wanted or lost:
        return SweptJob(number, "missing", wanted, "")
    if status.status != "ok":
        return SweptJob(number, status.status, wanted, status.error or "")
    declared, path = folder / str(number) / "columns.json", folder / str(number) / "table.csv"
    if declared.is_file():
        columns = columns_of(json.loads(declared.read_text(encoding="utf-8")))
    else:
        # of a version whose runs did not say what their columns are
        import pandas as pd  # noqa: PLC0415 - only the end of a sweep reads tables

        columns = typed(pd.read_csv(path).rename(columns=unguarded))
    return SweptJob(number, "ok", wanted, "", read_guarded_csv(path), columns)


def swept_settings(jobs: Sequence[SweptJob]) -> list[str]:
    """Settings that differ between jobs, in the order of the command line."""
    keys = dict.fromkeys(key for job in jobs for key in job.overrides)
    return [key for key in keys if len({job.overrides.get(key) for job in jobs}) > 1]


def summary_table(jobs: Sequence[SweptJob]) -> pd.DataFrame:
    """Put the tables of all jobs under each other, as text."""
    import pandas as pd  # noqa: PLC0415 - only the end of a sweep makes tables

    swept = {f"sweep.{key}": key for key in swept_settings(jobs)}
    tables = [job.table if job.table is not None and len(job.table) else pd.DataFrame(index=[0]) for job in jobs]
    names = ["job", "status", *swept, *dict.fromkeys(name for table in tables for name in table), "error"]
    parts = [pd.DataFrame(columns=names, dtype=object)]
    for job, table in zip(jobs, tables, strict=True):
        cells = {"job": str(job.number), "status": job.status, "error": job.error}
        cells |= {name: job.overrides.get(key, "") for name, key in swept.items()}
        parts.append(table.assign(**cells).reindex(columns=names, fill_value="").astype(object))
    return pd.concat(parts, ignore_index=True)


def declared_rows(jobs: Sequence[SweptJob]) -> tuple[pd.DataFrame, list[Column]] | None:
    """Rows of all jobs, each once, with what was swept as keys; None where no job is done."""
    import pandas as pd  # noqa: PLC0415 - as above

    done = [job for job in jobs if job.table is not None]
    if not done:
        return None
    columns = list({one.name: one for job in done for one in job.columns}.values())
    settings, parts = swept_settings(jobs), []
    for job in done:
        typed = {one.name: _typed(job.table[one.name], one.type) for one in job.columns if job.table is not None}
        parts.append(pd.DataFrame(typed).assign(**{f"sweep.{name}": job.overrides.get(name, "") for name in settings}))
    return swept(pd.concat(parts, ignore_index=True), columns, settings)


def _typed(cells: pd.Series[str], kind: str) -> pd.Series[Any]:
    import pandas as pd  # noqa: PLC0415 - as above

    return pd.to_numeric(cells.replace("", None)) if kind in ("number", "integer") else cells


def write_summary(folder: Path, jobs: Sequence[SweptJob], *, title: str, dpi: int = 200) -> View:
    """Write ``summary.csv``, ``summary.md``, ``.tex``, ``.png`` and ``.svg`` into the sweep's folder."""
    text, declared = summary_table(jobs), declared_rows(jobs)
    if declared is None or not len(declared[0]):
        view, figure = View(text.drop(columns="error")), None
    else:
        from shannon_game.experiments.harness.sweep_figure import draw_sweep  # noqa: PLC0415

        view = paper_table(*declared)
        figure = draw_sweep(*declared, title)
    with replaced(folder, "sweep") as staging:
        write_csv(text, staging / "summary.csv")
        if declared is not None:
            caption = "; ".join(each for each in (title, view.constants, view.notes) if each)
            (staging / "summary.tex").write_text(latex_table(view.table, caption=caption), encoding="utf-8")
        if figure is not None:
            save_figures(staging, {"summary": figure}, dpi=dpi, title=True)
        page = fill(
            "sweep.md",
            title=title,
            counts=_counts(jobs),
            broken=[job for job in jobs if job.status != "ok"],
            has_figure=figure is not None,
            table=markdown_table(view.table),
            notes=[each for each in (view.notes, view.constants) if each],
        )
        (staging / "summary.md").write_text(page, encoding="utf-8")
    return view


def _counts(jobs: Sequence[SweptJob]) -> str:
    states = Counter(sorted(job.status for job in jobs))
    return f"{counted(len(jobs), 'job')}: " + ", ".join(f"{n} {state}" for state, n in states.items())


# --- what the command needs -------------------------------------------------------------------------------------------


STARTED: list[DictConfig] = []
"""Sweeps of this process: Hydra swallows what a callback raises, and returns nothing from a sweep."""


def finish() -> bool | None:
    """Write and print the summary of this process's sweep; whether all jobs are done, None if there was no sweep."""
    if not STARTED:
        return None
    config = STARTED[-1]
    folder = Path(str(config.hydra.sweep.dir))
    jobs = collect(folder, planned_jobs(config))
    name = OmegaConf.select(config, "experiment.name") or "experiments"
    title = f"{name} by {listed(swept_settings(jobs))}" if swept_settings(jobs) else name
    view = write_summary(folder, jobs, title=title, dpi=int(config.output.dpi))
    if config.output.print:
        n_rows, shown = len(view.table), min(len(view.table), _PRINTED_ROWS)
        cut = "" if shown == n_rows else f"; the first {shown} of {n_rows} rows"
        about = f"{_counts(jobs)}; all columns in {folder / 'summary.csv'}{cut}"
        print_table(view.table.head(_PRINTED_ROWS), about, view.constants)
        sys.stdout.write(f"{view.notes}\n" if view.notes else "")
        for error in dict.fromkeys(job.error for job in jobs if job.error):
            numbers = [str(job.number) for job in jobs if job.error == error]
            sys.stdout.write(f"job{'s' * (len(numbers) > 1)} {', '.join(numbers)}: {error}\n")
    complete = all(job.status == "ok" for job in jobs)
    if not complete:
        sys.stderr.write(f"to do only what is missing: the same command with sweep={config.sweep} resume=true\n")
    return complete


def refusal(error: Exception) -> str:
    """Say what Slurm answered where it is submitit that failed, and not this package; "" otherwise."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or "submitit" not in Path(frames[-1].filename).parts:
        return ""
    said = " ".join(str(error).split())
    return f"Slurm, by way of submitit: {said if len(said) <= _SAID else f'... {said[-_SAID:]}'}"


def check_folder(given: Mapping[str, Override], *, resume: bool) -> None:
    """Refuse to resume what has no name, and to write over what exists."""
    if "exp" not in given:
        return
    home = Path("multirun") / str(given["exp"].value())
    named = "sweep" in given or "hydra.sweep.dir" in given
    if resume and not named:
        exist = ", ".join(path.parent.name for path in sorted(home.glob("*/multirun.yaml")))
        problem = f"which sweep? add sweep=NAME; in {home} there is: {exist or 'none yet'}"
        raise InputError(problem, source="command line", field="resume")
    if not named or resume:
        return
    own = given.get("hydra.sweep.dir")
    folder = home / str(given["sweep"].value()) if own is None else Path(str(own.value()))
    # Hydra leaves a multirun.yaml even where it refused the sweep, so that alone is none
    if folder.is_dir() and any(path.name.isdigit() for path in folder.iterdir()):
        problem = f"{folder} exists; add resume=true to go on with it, or choose another name"
        raise InputError(problem, source="command line", field="sweep")
