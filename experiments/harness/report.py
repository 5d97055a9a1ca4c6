"""The report of a run in Markdown, from a template, and its figures as files."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf

from shannon_game.estimators.code_identity import package_version
from shannon_game.estimators.layout import notes
from shannon_game.experiments.harness.csv_tables import table_sizes
from shannon_game.experiments.harness.given_keys import public
from shannon_game.experiments.harness.result import ExperimentResult, loader_warnings, table_sections
from shannon_game.experiments.harness.tables import markdown_plain
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Settings

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

_PACKAGES = ("shannon-game", "numpy", "xarray", "pandas", "h5netcdf", "matplotlib", "hydra-core")


def report(
    cfg: DictConfig,
    study: xr.Dataset,
    result: ExperimentResult,
    config_hash: str,
    *,
    settings: Settings | None,
    overrides: Sequence[str],
    timings: Mapping[str, float],
) -> str:
    """Write the answer, what to doubt, the table and figures, and what was run."""
    name = str(study.attrs.get("name", "unnamed study"))
    given = {"Config": OmegaConf.to_container(cfg, resolve=True)}
    if settings is not None:
        given["All settings of the experiment"] = settings.model_dump(mode="json")
    return fill(
        "report.md",
        title=result.title or f"{cfg.experiment.name}: {name}",
        answer=result.text.strip(),
        doubts=warnings_of(study, result),
        body=result.body,
        table="" if result.body is not None else "\n\n".join(table_sections(result)),
        tables=[f"`{key}.csv` ({counted(size, 'row')})" for key, size in table_sizes(result.tables).items()],
        figures={key: caption_of(figure) for key, figure in result.figures.items()},
        study=name,
        digest=study.attrs.get("data_sha256"),
        overrides=overrides,
        config_hash=config_hash,
        versions=[f"Python {platform.python_version()}", *(f"{each} {package_version(each)}" for each in _PACKAGES)],
        timings=[f"{stage} {seconds:.2f} s" for stage, seconds in timings.items()],
        notes=notes(study),
        settings={name: OmegaConf.to_yaml(OmegaConf.create(public(its))).strip() for name, its in given.items()},
    )


def warnings_of(study: xr.Dataset, result: ExperimentResult) -> tuple[str, ...]:
    """Collect the warnings of the loader and of the experiment, in this order."""
    return (*loader_warnings(study), *result.warnings)


def fill(name: str, folder: Path = Path(__file__).parent, **values: Any) -> str:
    """Fill in the template ``NAME.jinja``, here or in another folder; its filter ``plain`` escapes for Markdown."""
    from jinja2 import Environment  # noqa: PLC0415 - a job that was done before needs none

    # no HTML: what is Markdown is escaped as such
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters["plain"] = markdown_plain
    text = (folder / f"{name}.jinja").read_text(encoding="utf-8")
    return environment.from_string(text).render(values)


_METADATA: Mapping[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def caption_of(figure: Figure) -> str:
    """Title of a figure in one line."""
    return " ".join(figure.get_suptitle().split())


def save_figures(
    folder: Path,
    figures: Mapping[str, Figure],
    *,
    dpi: float | str = "figure",
    title: bool = False,
    kinds: Sequence[str] = ("png", "svg"),
) -> None:
    """Save every figure in some formats; the same figure gives the same bytes, and texts can be edited."""
    # half a second that a skipped job does not need
    import matplotlib as mpl  # noqa: PLC0415

    from shannon_game.experiments.harness.marks import shown_title  # noqa: PLC0415

    # ids of SVG elements are random and the date is now, unless told otherwise
    with mpl.rc_context({"svg.hashsalt": "shannon-game", "svg.fonttype": "none", "pdf.fonttype": 42}):
        for name, figure in figures.items():
            about, layout = {"Title": caption_of(figure) or name}, figure.get_layout_engine()
            with shown_title(figure, shown=title):
                for kind in kinds:
                    path = folder / f"{name}.{kind}"
                    figure.savefig(
                        path, dpi=dpi, bbox_inches="tight", pad_inches=0.042, metadata=_METADATA[kind] | about
                    )
                    # what the first kind laid out stands for all of them
                    figure.set_layout_engine("none")
            figure.set_layout_engine(layout)
