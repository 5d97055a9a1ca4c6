"""A folder, and a zip of it, for a repository beside a paper: what was done, with what, and what came out."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any

import pandas as pd
from omegaconf import OmegaConf

from estimators.code_identity import code_hash, package_version
from estimators.errors import InputError
from experiments.harness.bundle_checks import Check, check_bundle, checks_page, without_texts
from experiments.harness.bundle_methods import methods_paragraph
from experiments.harness.csv_tables import csv_text, write_csv
from experiments.harness.latex import latex_table
from experiments.harness.pseudonyms import PEOPLE_SETTINGS, people_of
from experiments.harness.tables import split_constants
from inference.manifest import MANIFEST, replaced

if TYPE_CHECKING:
    import xarray as xr

    from experiments.harness.result import ExperimentResult
    from inference.settings import Settings

__all__ = ["bundle", "zip_folder"]

_LONGEST = 60
"""Rows of a table that a page can hold."""
_WIDEST = 8

_PACKAGES = (
    *("numpy", "scipy", "pandas", "xarray", "h5netcdf", "matplotlib", "pydantic", "hydra-core", "omegaconf"),
    *("pymc", "pytensor", "arviz", "nutpie", "numba", "torch", "transformers", "scikit-learn"),
)
_SHOWN = "shown"
# zip cannot say an earlier time
_EPOCH = (1980, 1, 1, 0, 0, 0)

_CITATION = """\
cff-version: 1.2.0
message: Fill in who made the study, then ask readers to cite it so.
type: dataset
title: "TITLE OF THE STUDY: data and results"
authors:
  - given-names: GIVEN NAMES
    family-names: FAMILY NAMES
references:
  - type: software
    title: Shannon game
    version: {version}
    license: Apache-2.0
    authors:
      - name: The Shannon game developers
  - type: article
    title: Language Models Are Better Than Humans at Next-token Prediction
    authors:
      - {{given-names: Buck, family-names: Shlegeris}}
      - {{given-names: Fabien, family-names: Roger}}
      - {{given-names: Lawrence, family-names: Chan}}
      - {{given-names: Euan, family-names: McLean}}
    year: 2022
    url: https://arxiv.org/abs/2212.11281
"""

_ABOUT = {
    "METHODS.md": "draft of a methods paragraph, and the main numbers",
    "CHECKS.md": "what a program found of ids, addresses and licences",
    "CITATION.cff": "how to cite; fill in the authors",
    "settings.yaml": "all settings of the experiment, and what the command was given",
    "versions.json": "Python, packages and the hash of the code",
    "data.csv": "SHA-256 of the data that were read",
    "figures/": "figures as PDF and SVG",
    "tables/": "tables as CSV and, where a page can hold them, LaTeX (booktabs)",
}


def bundle(
    study: xr.Dataset,
    result: ExperimentResult,
    folder: str | Path,
    *,
    settings: Settings | None = None,
    config: Mapping[str, object] | None = None,
    experiment: str = "",
    data: Mapping[str, str] | None = None,
) -> Path:
    """Write a folder for a repository, and ``FOLDER.zip`` beside it; the same run gives the same bytes.

    Parameters
    ----------
    study : xarray.Dataset
        What the experiment was run on; its people have pseudonyms, see :func:`pseudonymous`.
    result : ExperimentResult
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

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        If the study has people by their ids, or the folder or the zip holds something else, or has been changed
        since; nothing has been touched.

    Examples
    --------
    >>> from experiments import bundle, perplexity, pseudonymous, simulated
    >>> study, key = pseudonymous(simulated())
    >>> bundle(study, perplexity(study), "for_osf", experiment="perplexity")  # doctest: +SKIP
    """
    people = people_of(study)
    if people is None:
        problem = "names people; give pseudonymous(study)[0], and the result of the experiment on it"
        raise InputError(problem, source="bundle", field="study")
    folder = Path(folder)
    packed = folder.with_name(f"{folder.name}.zip")
    if packed.is_symlink() or (packed.exists() and not _is_zip_of(packed, folder)):
        raise InputError("is not the zip of the bundle beside it; move it, or name another folder", source=str(packed))
    with replaced(folder, "bundle") as staging:
        _write_bundle(
            staging, study, result, people, settings=settings, config=config, experiment=experiment, data=data
        )
    zip_folder(folder, packed)
    return folder


def _is_zip_of(path: Path, folder: Path) -> bool:
    stream = io.BytesIO()
    if folder.is_dir():
        zip_folder(folder, stream)
    return path.is_file() and path.read_bytes() == stream.getvalue()


def _write_bundle(
    folder: Path,
    study: xr.Dataset,
    result: ExperimentResult,
    people: Sequence[str],
    *,
    settings: Settings | None,
    config: Mapping[str, object] | None,
    experiment: str,
    data: Mapping[str, str] | None,
) -> None:
    (folder / "tables").mkdir()
    (folder / "figures").mkdir()
    name = str(study.attrs.get("name", ""))
    shown = without_texts(name, {_SHOWN: result.summary()})[0][_SHOWN]
    tables, left_out = without_texts(name, {"table": result.table, **result.tables})
    _write_tables(folder / "tables", tables, shown, experiment)
    _write_figures(folder / "figures", result)
    checks = check_bundle(name, tables, people=people, left_out=left_out)
    given = {} if settings is None else {"settings": settings.model_dump(mode="json")}
    given |= {"command": _without_ids(config)} if config else {}
    digests = {"study": str(study.attrs.get("data_sha256", "")), **(data or {})}
    texts = {
        "METHODS.md": methods_paragraph(study, result, settings, experiment=experiment),
        "CHECKS.md": checks_page(checks),
        "CITATION.cff": _CITATION.format(version=package_version()),
        "settings.yaml": OmegaConf.to_yaml(OmegaConf.create(_shareable(given))),
        "versions.json": json.dumps(_versions(), indent=2) + "\n",
        "data.csv": csv_text(pd.DataFrame(list(filter(all, digests.items())), columns=["data", "sha256"])),
    }
    for path, text in texts.items():
        (folder / path).write_text(text, encoding="utf-8", newline="\n")
    (folder / "README.md").write_text(_readme(folder, name, experiment, checks), encoding="utf-8", newline="\n")


def zip_folder(folder: Path, path: Path | IO[bytes]) -> None:
    """Pack a folder so that equal folders give equal files: sorted, without times and owners."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in _files(folder):
            entry = zipfile.ZipInfo(f"{folder.name}/{file.relative_to(folder).as_posix()}", _EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            packed.writestr(entry, file.read_bytes())


def _write_tables(folder: Path, tables: Mapping[str, pd.DataFrame], shown: pd.DataFrame, experiment: str) -> None:
    for name, table in tables.items():
        write_csv(table, folder / f"{name}.csv")
    # the main table as a reader sees it; the CSV has all columns
    pages = {"table": shown, **{name: table for name, table in tables.items() if name != "table"}}
    for name, table in pages.items():
        if len(table) <= _LONGEST and (name == "table" or len(table.columns) <= _WIDEST):
            varying, constants = split_constants(table)
            caption = f"{experiment or 'Results'}: {name}" if name != "table" else experiment or "Results"
            caption = f"{caption} ({constants})" if constants else caption
            text = latex_table(varying, caption=caption, label=f"tab:{name.replace('_', '-')}")
            (folder / f"{name}.tex").write_text(text, encoding="utf-8", newline="\n")


def _write_figures(folder: Path, result: ExperimentResult) -> None:
    import matplotlib as mpl  # noqa: PLC0415 - half a second that a skipped job does not need

    for name, figure in result.figures.items():
        # fonts that a journal can edit, and no date
        with mpl.rc_context({"svg.hashsalt": "shannon-game", "svg.fonttype": "none", "pdf.fonttype": 42}):
            figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
            figure.savefig(folder / f"{name}.pdf", bbox_inches="tight", metadata={"CreationDate": None})


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


def _versions() -> dict[str, object]:
    packages = {name: package_version(name) for name in _PACKAGES}
    return {
        "shannon-game": package_version(),
        "code_sha256": code_hash("estimators", "models", "inference", "experiments"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: version for name, version in packages.items() if version != "not installed"},
    }


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name != MANIFEST)


def _readme(folder: Path, study: str, experiment: str, checks: Sequence[Check]) -> str:
    """Write what is in the folder, with the SHA-256 of every file but this one."""
    warned = [f"- {check.name}: {check.found}" for check in checks if check.verdict == "warn"]
    manifest = [
        f"| {file.relative_to(folder).as_posix()} | {file.stat().st_size:,} | "
        f"`{hashlib.sha256(file.read_bytes()).hexdigest()}` |"
        for file in _files(folder)
    ]
    parts = [
        f"# {experiment or 'Results'}: {study}",
        "Results of one analysis of next-word judgements, made with Shannon game.",
        "## Before you share it" if warned else "",
        "\n".join(warned),
        "## What is here",
        "\n".join(f"- `{path}`: {about}" for path, about in _ABOUT.items()),
        "## Files",
        "\n".join(["| file | bytes | SHA-256 |", "| --- | ---: | --- |", *manifest]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
