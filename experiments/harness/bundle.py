"""A folder, and a zip of it, for a repository beside a paper: what was done, with what, and what came out."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import re
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any

import pandas as pd
from omegaconf import OmegaConf

from shannon_game.estimators.code_identity import PACKAGES, code_hash, package_version
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.bundle_checks import Check, check_bundle, without_texts
from shannon_game.experiments.harness.csv_tables import csv_text, write_csv
from shannon_game.experiments.harness.given_keys import public
from shannon_game.experiments.harness.pseudonyms import PEOPLE_SETTINGS, people_of
from shannon_game.experiments.harness.report import fill, save_figures
from shannon_game.experiments.harness.tables import latex_table, markdown_table
from shannon_game.experiments.harness.views import View
from shannon_game.inference.disk import write_whole
from shannon_game.inference.manifest import MANIFEST, replaced
from shannon_game.inference.progress import counted

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.harness.result import ExperimentResult
    from shannon_game.inference.settings import Settings

_LONGEST = 60
"""Rows of a table that a page can hold."""
_WIDEST = 8

_DOWNLOADED = "The command downloads the data and checks them; `SHANNON_DATA=FOLDER` reads copies that you have."
_ORIGINS = {
    "lm_game": _DOWNLOADED,
    "rank_perplexity": _DOWNLOADED,
    "provo": "Clone GitHub `evgeniael/predict_next_word` to `FOLDER/provo`, and set `SHANNON_DATA=FOLDER`.",
}
_NOT_AGAIN = ("hydra.", "output.print", "output.bundle")
_FOLDERS = re.compile(r"(?<![\w./:])/[^,=\[\]{}'\"]*/")
"""Of absolute paths, without their last part."""

_PACKAGES = (
    *("numpy", "scipy", "pandas", "xarray", "h5netcdf", "matplotlib", "pydantic", "hydra-core", "omegaconf"),
    *("pymc", "pytensor", "arviz", "nutpie", "numba", "torch", "transformers", "scikit-learn"),
)
# zip cannot say an earlier time
_EPOCH = (1980, 1, 1, 0, 0, 0)


def bundle(
    study: xr.Dataset,
    result: ExperimentResult,
    folder: str | Path,
    *,
    settings: Settings | None = None,
    config: Mapping[str, object] | None = None,
    experiment: str = "",
    data: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
) -> Path:
    """Write a folder for a repository, and ``FOLDER.zip`` beside it; the same run gives the same bytes.

    Parameters
    ----------
    study : xarray.Dataset
        What the experiment was run on; its people have pseudonyms, see :func:`pseudonymous`.
    folder : str or Path
        One that this function wrote before is replaced, ``FOLDER.zip`` beside it too.
    settings : Settings, optional
        Of the experiment.
    config : mapping, optional
        What the command was given, resolved.
    experiment : str
        Name of the experiment, as on the command line.
    data : mapping of str to str, optional
        Setting that names a file or folder -> its SHA-256.
    overrides : sequence of str
        Arguments of the command, with which the README says how to run it again.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        If the study has people by their ids, or the folder or the zip holds something else, or has been changed
        since; nothing has been touched.
    """
    people = people_of(study)
    if people is None:
        problem = "names people; give pseudonymous(study)[0], and the result of the experiment on it"
        raise InputError(problem, source="bundle", field="study")
    folder = Path(folder)
    packed = folder.with_name(f"{folder.name}.zip")
    if packed.is_symlink() or (packed.exists() and not _is_zip_of(packed, folder)):
        raise InputError("is not the zip of the bundle beside it; move it, or name another folder", source=str(packed))
    given = {} if settings is None else {"settings": settings.model_dump(mode="json")}
    given |= {"command": _without_ids(config)} if config else {}
    digests = {"study": str(study.attrs.get("data_sha256", "")), **(data or {})}
    name = str(study.attrs.get("name", ""))
    view = replace(result.view, table=without_texts(name, {"shown": result.view.table})[0]["shown"])
    tables, left_out = without_texts(name, {"table": result.table, **result.tables})
    shared = OmegaConf.to_yaml(OmegaConf.create(_shareable(public(given))))
    checks = check_bundle(name, tables, people=people, left_out=left_out, settings=shared)
    texts = {
        "METHODS.md": _methods(study, view, result.warnings, people, experiment),
        "CHECKS.md": fill("checks.md", checks=checks, n_warn=sum(each.verdict == "warn" for each in checks)),
        "CITATION.cff": fill("citation.cff", version=package_version()),
        "settings.yaml": shared,
        "versions.json": json.dumps(_versions(), indent=2) + "\n",
        "data.csv": csv_text(pd.DataFrame(list(filter(all, digests.items())), columns=["data", "sha256"])),
    }
    with replaced(folder, "bundle") as staging:
        for part in ("tables", "figures"):
            (staging / part).mkdir()
        _write_tables(staging / "tables", tables, view, experiment)
        save_figures(staging / "figures", result.figures, kinds=("svg", "pdf"))
        for path, text in texts.items():
            write_whole(staging / path, text)
        again = {
            "command": _command(overrides),
            "extras": ",".join(_extras(config or {})),
            "version": package_version(),
            "origin": _origin(name, overrides, read=any(digests.values())),
        }
        write_whole(staging / "README.md", _readme(staging, name, experiment, checks, again))
    zip_folder(folder, packed)
    return folder


def _is_zip_of(path: Path, folder: Path) -> bool:
    stream = io.BytesIO()
    if folder.is_dir():
        zip_folder(folder, stream)
    return path.is_file() and path.read_bytes() == stream.getvalue()


def zip_folder(folder: Path, path: Path | IO[bytes]) -> None:
    """Pack a folder so that equal folders give equal files: sorted, without times and owners."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in _files(folder):
            entry = zipfile.ZipInfo(f"{folder.name}/{file.relative_to(folder).as_posix()}", _EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            packed.writestr(entry, file.read_bytes())


def _methods(study: xr.Dataset, view: View, warnings: Sequence[str], people: Sequence[str], experiment: str) -> str:
    """What was analysed with what, and the main numbers; of texts of the study only those that may be shared."""
    sizes = [counted(len(people), "person", "people")] if people else []
    return fill(
        "methods.md",
        study=str(study.attrs.get("name", "")),
        sizes=[*sizes, *(counted(size, str(dim)) for dim, size in study.sizes.items())],
        version=package_version(),
        experiment=experiment,
        constants=view.constants,
        table=markdown_table(view.table.head(_LONGEST)),
        warnings=warnings,
    )


def _write_tables(folder: Path, tables: Mapping[str, pd.DataFrame], view: View, experiment: str) -> None:
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")
    # the main table as a reader sees it; the CSV has all columns
    pages = {"table": view.table, **{name: table for name, table in tables.items() if name != "table"}}
    for name, table in pages.items():
        if len(table) <= _LONGEST and (name == "table" or len(table.columns) <= _WIDEST):
            caption = f"{experiment or 'Results'}: {name}" if name != "table" else experiment or "Results"
            caption = f"{caption} ({view.constants})" if view.constants and name == "table" else caption
            text = latex_table(table, caption=caption, label=f"tab:{name.replace('_', '-')}")
            write_whole(folder / f"{name}.tex", text)


def _without_ids(value: Any) -> Any:
    """What the command was given, without the people that it names."""
    if isinstance(value, Mapping):
        hidden = {key for key, inner in value.items() if key in PEOPLE_SETTINGS and inner not in (None, "auto")}
        return {key: "(not shared)" if key in hidden else _without_ids(inner) for key, inner in value.items()}
    return value


def _shareable(value: Any) -> Any:
    """Settings in which an absolute path is its last part: folders tell who ran it, and where."""
    if isinstance(value, Mapping):
        return {key: _shareable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shareable(inner) for inner in value]
    return f".../{PurePath(value).name}" if isinstance(value, str) and PurePath(value).is_absolute() else value


def _command(overrides: Sequence[str]) -> str:
    """Arguments to run it again; empty if there was no command."""
    shown = [_without_person(text) for text in overrides if not text.startswith(_NOT_AGAIN)]
    return shlex.join([*shown, "output.bundle=true", "hydra.run.dir=again"]) if shown else ""


def _without_person(override: str) -> str:
    """Shorten an argument: no ids of people, and of an absolute path the last part."""
    key, equals, value = override.partition("=")
    if any(name in override for name in PEOPLE_SETTINGS):
        return f"{key}=NOT_SHARED"
    return public(f"{key}{equals}{_FOLDERS.sub('.../', value)}")


def _extras(config: Mapping[str, Any]) -> Sequence[str]:
    found = config.get("experiment", {}).get("extra") or ()
    return [found] if isinstance(found, str) else found


def _origin(study: str, overrides: Sequence[str], *, read: bool) -> str:
    """Where the data come from."""
    if "study=norms" in overrides:
        return _DOWNLOADED
    if not read:
        return "The study is simulated from these settings: no data are read."
    other = "Ask the authors of this bundle for the files whose SHA-256 is in `data.csv`."
    return next((text for name, text in _ORIGINS.items() if study.startswith(name)), other)


def _versions() -> dict[str, object]:
    packages = {name: package_version(name) for name in _PACKAGES}
    return {
        "shannon-game": package_version(),
        "code_sha256": code_hash(*PACKAGES),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: version for name, version in packages.items() if version != "not installed"},
    }


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)


def _readme(folder: Path, study: str, experiment: str, checks: Sequence[Check], again: Mapping[str, str]) -> str:
    """Write what is in the folder, with the SHA-256 of every file but this one."""
    contents = {file.relative_to(folder).as_posix(): file.read_bytes() for file in _files(folder)}
    files = [(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()]
    warned = [check for check in checks if check.verdict == "warn"]
    table = next(digest for name, _, digest in files if name == "tables/table.csv")
    return fill(
        "bundle_readme.md",
        experiment=experiment or "Results",
        study=study,
        warned=warned,
        files=files,
        table=table,
        again=again,
    )
