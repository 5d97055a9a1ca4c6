"""A table of estimates from several studies: their names, estimates and standard errors."""

from __future__ import annotations

from typing import Annotated

import xarray as xr

from shannon_game.estimators.documents import validate_estimates_study
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.parsing import add_notes, objects
from shannon_game.experiments.studies.plain_table import Columns
from shannon_game.experiments.studies.table_file import OneTable
from shannon_game.inference.settings import Text

ALL = "all"


class EstimatesColumns(Columns):
    """Names of the columns."""

    source: Annotated[Text, "id"] = "source"
    """The study that an estimate is from."""
    estimate: Annotated[Text, "number"] = "estimate"
    """In one unit for all studies: bits per character where tokenizers differ."""
    se: Annotated[Text, "number"] = "se"
    """Its standard error."""
    group: Annotated[Text | None, "id"] = None
    """What is pooled apart, such as the model or the language."""


class EstimatesSettings(OneTable):
    columns: EstimatesColumns = EstimatesColumns()
    """Names of its columns."""
    units: str = ""
    """Unit of the estimates, for tables and figures, such as bits per character."""


@loader(EstimatesSettings)
def estimates(settings: EstimatesSettings) -> xr.Dataset:
    r"""Load a table of estimates.

    See :func:`shannon_game.estimators.documents.pooled.validate_estimates_study`; with groups, a source's name has its
    group.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from shannon_game import estimates
    >>> with TemporaryDirectory() as folder:
    ...     length = (Path(folder) / "e.csv").write_text("source,estimate,se\nann,1.3,0.05\nbo,1.2,0.04\n")
    ...     estimates(path=Path(folder) / "e.csv")["estimate"].values.tolist()
    [1.3, 1.2]
    """
    columns = settings.columns.given
    table = settings.read("estimate", columns.values()).named(columns, EstimatesColumns.types())
    group = table["group"] if "group" in table else objects([ALL] * len(table))
    labels = table["source"]
    if "group" in table:
        labels = objects([f"{name}, {part}" for name, part in zip(labels, group, strict=True)])
    study = xr.Dataset(
        {"estimate": ("source", table["estimate"]), "se": ("source", table["se"]), "group": ("source", group)},
        coords={"source": labels},
        attrs={"name": settings.path.stem, "data_sha256": table.sha256, "units": settings.units},
    )
    add_notes(study, table.notes)
    return validate_estimates_study(study)
