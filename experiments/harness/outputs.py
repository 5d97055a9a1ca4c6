"""What a run leaves in its folder: table, dataset, figures, report, status."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from omegaconf import DictConfig, OmegaConf

from shannon_game.estimators.code_identity import PACKAGES, code_hash, own_packages, package_version
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.harness.csv_tables import write_csv, write_tables
from shannon_game.experiments.harness.given_keys import public
from shannon_game.experiments.harness.pseudonyms import people_of
from shannon_game.experiments.harness.registry import leaves
from shannon_game.experiments.harness.report import report, save_figures
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.inference.disk import make_room, write_whole
from shannon_game.inference.manifest import Manifest, is_as_written, put, remove, take_unused
from shannon_game.inference.own_folder import LOCK
from shannon_game.inference.settings import Settings

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

_STATUS = "status.json"
PSEUDONYMS = "pseudonyms.csv"
"""Who is who in a bundle."""


@dataclass(frozen=True)
class JobStatus:
    """The content of ``status.json``; a folder whose job was killed stays at "running"."""

    status: Literal["running", "ok", "failed", "interrupted"]
    experiment: str
    overrides: tuple[str, ...]
    """What the user set on the command line for this job."""
    config_hash: str
    started: str
    """ISO 8601 with offset."""
    seconds: float | None = None
    """Wall-clock time; None while the job runs."""
    warnings: tuple[str, ...] = ()
    error: str | None = None
    """One line; the traceback of an unexpected error is in ``run.log``."""
    gate_failed: bool = False
    code_hash: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    """Setting that names a file or folder -> hash of what was there when the job began."""
    sha256: Manifest = field(default_factory=dict)
    """File that the job wrote, or is writing -> its digests."""


def config_hash(cfg: DictConfig) -> str:
    """SHA-256 of what decides a job's numbers apart from its data: the resolved config, the version and the code.

    ``resume``, ``sweep`` and ``output.print`` are left out: they change no output file.
    """
    settings = _decisive(cfg)
    payload = {"config": settings, "version": package_version(), "code": job_code(cfg)}
    # a mapping may have numbers and names as keys, such as cards' memory, which do not sort
    payload = json.loads(json.dumps(payload))
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()


def job_code(cfg: DictConfig) -> str:
    """SHA-256 of the code that a job runs: all packages, and the modules of every ``_target_`` that is not theirs."""
    found = ((name, value) for name, value in leaves(OmegaConf.to_container(cfg)) if isinstance(value, str))
    modules = {value.rpartition(".")[0] for name, value in found if name.rpartition(".")[2] == "_target_"} - {""}
    return code_hash(*PACKAGES, *(name for name in modules if not own_packages(name) and find_spec(name)))


def _decisive(cfg: DictConfig) -> dict[str, Any]:
    settings = public(cast("dict[str, Any]", OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)))
    for key in ("resume", "sweep", "hydra"):
        settings.pop(key, None)
    settings.get("output", {}).pop("print", None)
    return settings


def write_status(folder: Path, status: JobStatus) -> None:
    """Replace ``status.json`` in one step: a reader sees the old one or the new one, never half of it."""
    folder.mkdir(exist_ok=True)
    write_whole(folder / _STATUS, json.dumps(public(asdict(status)), indent=2) + "\n", private=True)


def read_status(folder: Path) -> JobStatus | None:
    """Read the status of the run in a folder; None if there is none (the job is then as good as not done)."""
    try:
        content = json.loads((folder / _STATUS).read_text(encoding="utf-8"))
        known = {name: value for name, value in content.items() if name in JobStatus.__dataclass_fields__}
        return JobStatus(**known | {name: tuple(known[name]) for name in ("overrides", "warnings")})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def check_run_folder(folder: Path, *, in_sweep: bool = False) -> None:
    """Refuse a folder that holds files and is no run's, or that holds a result; nothing is touched."""
    # the job of a sweep that was killed early has what Hydra writes and no status
    known = {LOCK, ".hydra", "run.log"} if in_sweep else {LOCK}
    before, problem = read_status(folder), ""
    if before is None and folder.exists() and any(path.name not in known for path in folder.iterdir()):
        problem = "holds files that no run wrote; name a new or an empty folder"
    elif before is not None and before.status == "ok" and not in_sweep:
        problem = f"holds the result of {before.experiment} of {before.started}; name another folder"
    if problem:
        raise InputError(problem, source=str(folder), field="hydra.sweep.dir" if in_sweep else "hydra.run.dir")


def refuse_links(folder: Path) -> None:
    """Refuse a folder of a run with links, which lead elsewhere, or pipes, which a reader waits at for ever."""
    for place in (folder, folder / ".hydra"):
        for path in place.iterdir() if place.is_dir() else ():
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                what = "a link, and a run writes through none" if path.is_symlink() else "neither a file nor a folder"
                raise InputError(f"is {what}; move it, or name another folder", source=str(path))


def begin(folder: Path, status: JobStatus) -> Path | None:
    """Write the first status of a run; give the folder of an earlier result, which is moved aside.

    What a kill left of a result that was being put there goes.
    """
    before, aside = read_status(folder), None
    if before is not None and before.status == "ok":
        aside = set_aside(folder)
    elif before is not None:
        remove(folder, before.sha256)
    write_status(folder, status)
    return aside


def set_aside(folder: Path) -> Path:
    """Move the folder of a job that is done again, with all that it holds, and make a new one for it."""
    other = moved_aside(folder)
    folder.mkdir()
    # what Hydra wrote of the new job
    if (other / ".hydra").is_dir():
        shutil.copytree(other / ".hydra", folder / ".hydra")
    return other


def moved_aside(folder: Path) -> Path:
    """Rename a folder to ``NAME_before_N``."""
    other = next(at for number in count(1) if not (at := folder.with_name(f"{folder.name}_before_{number}")).exists())
    return folder.rename(other)


def finish(folder: Path, staging: Path, status: JobStatus) -> Path:
    """Put a whole result into the folder of its run, or beside it if a file stands in the way."""

    def record(coming: Manifest) -> None:
        write_status(folder, replace(status, status="running", sha256=coming))

    try:
        new = put(staging, folder, {}, record)
    except InputError:
        folder = take_unused(folder)
        new = put(staging, folder, {}, record)
    write_status(folder, replace(status, status="ok", sha256=new))
    return folder


def report_of(folder: Path) -> Path:
    """File that a reader opens first."""
    page = folder / "report.html"
    return page if page.exists() else folder / "report.md"


def broken_output(folder: Path, status: JobStatus) -> str | None:
    """Name of an output file that is missing or not as the job wrote it; None if all are whole."""
    changed = (name for name in status.sha256 if not is_as_written(folder, name, status.sha256))
    return next(changed, None if (folder / "table.csv").is_file() else "table.csv")


def write_outputs(
    staging: Path,
    cfg: DictConfig,
    study: xr.Dataset,
    result: ExperimentResult,
    *,
    settings: Settings | None = None,
    status: JobStatus | None = None,
    timings: Mapping[str, float] | None = None,
    key: pd.DataFrame | None = None,
) -> None:
    """Write table, dataset, the loader's notes, figures as PNG and SVG, report, posteriors."""
    import pandas as pd  # noqa: PLC0415 - the help and a skipped job need none

    write_csv(result.table, staging / "table.csv")
    text = json.dumps({"fields": [one.described() for one in result.columns]}, indent=1, ensure_ascii=False)
    (staging / "columns.json").write_text(text + "\n", encoding="utf-8")
    # what was dropped, repaired or kept in spite of doubts, for programs; the report has it for readers
    noted = pd.DataFrame(notes(study), columns=["level", "count", "text"]).astype({"count": "Int64"})
    write_csv(noted, staging / "notes.csv")
    dataset = result.dataset.assign_attrs(
        experiment=str(cfg.experiment.name),
        study=str(study.attrs.get("name", "")),
        data_sha256=str(study.attrs.get("data_sha256", "")),
        config=json.dumps(_decisive(cfg), sort_keys=True),
        settings="" if settings is None else json.dumps(public(settings.model_dump(mode="json"))),
        version=package_version(),
    )
    make_room(staging / "results.nc", dataset.nbytes)
    dataset.to_netcdf(staging / "results.nc", engine="h5netcdf")
    for name, idata in result.posteriors.items():
        from shannon_game.inference.posterior.storage import save_posterior  # noqa: PLC0415 - only a Bayesian result has any

        save_posterior(idata, staging / f"posterior_{name}.nc")
    write_tables(result.tables, staging)
    for name, write in result.writers.items():
        write(staging / name)
    figures = staging / "figures"
    figures.mkdir()
    save_figures(figures, result.figures, dpi=int(cfg.output.dpi), title=bool(cfg.output.title))
    overrides = () if status is None else status.overrides
    text = report(cfg, study, result, config_hash(cfg), settings=settings, overrides=overrides, timings=timings or {})
    (staging / "report.md").write_text(text, encoding="utf-8")
    if cfg.output.html:
        from shannon_game.experiments.harness.html_page import html_page  # noqa: PLC0415 - a run that writes none needs no parser

        (staging / "report.html").write_text(html_page(text, [staging, staging.parent]), encoding="utf-8")
    if cfg.output.bundle:
        from shannon_game.experiments.harness.bundle import bundle  # noqa: PLC0415 - as above

        if key is not None and len(key):
            write_csv(key, staging / PSEUDONYMS, private=True)
        name, data = str(cfg.experiment.name), None if status is None else status.data
        folder = staging / "bundle"
        config = _decisive(cfg)
        bundle(study, result, folder, settings=settings, config=config, experiment=name, data=data, overrides=overrides)
    elif people_of(study) is None:
        # with a bundle people have pseudonyms; else their own ids may stand anywhere
        for path in filter(Path.is_file, staging.rglob("*")):
            path.chmod(0o600)
