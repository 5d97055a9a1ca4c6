"""Tables in files: delimited text or Parquet, by the ending of the name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from shannon_game.estimators.content import file_sha256
from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.experiments.harness.csv_tables import without_guard
from shannon_game.experiments.studies.files import regular_file
from shannon_game.experiments.studies.parsing import objects
from shannon_game.experiments.studies.plain_table import Table, check_header, finished
from shannon_game.experiments.studies.survey_export import without_survey_headers
from shannon_game.experiments.studies.text_table import TableFile, read_text

__all__ = ["read_table"]

_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")


def read_table(
    path: Path, *, of: str, how: TableFile | None = None, wanted: Sequence[str] = (), once: bool = True
) -> Table:
    """Read a table: Parquet by its ending (``.parquet``, ``.pq``), else delimited text, also packed (``.gz``).

    `of` says what a row is, `wanted` columns tell which separator is right; see :func:`plain_table.finished`.
    """
    how = how or TableFile()
    regular_file(path)
    if path.suffix.lower() in _WORKBOOKS:
        raise InputError("is a workbook; save its sheet as CSV", source=path)
    if path.suffix.lower() in (".parquet", ".pq"):
        cells = _parquet(path)
        table = Table(cells, path, file_sha256(path), np.arange(1, len(cells) + 1), decimal=how.decimal)
    else:
        text = read_text(path, how, wanted)
        columns = {name: objects(column) for name, column in without_guard(text.columns).items()}
        cells = pd.DataFrame(columns, dtype=object)
        table = Table(cells, path, file_sha256(path), text.lines, "line", how.decimal, notes=text.notes)
    return finished(without_survey_headers(table), of=of, once=once)


def _parquet(path: Path) -> pd.DataFrame:
    require_packages(("pyarrow",), "data", source=path, field="parquet")
    import pyarrow as pa  # noqa: PLC0415 - an optional extra that only parquet needs
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(path) as file:
            check_header(file.schema_arrow.names, path)
            # whole numbers beside empty cells stay whole
            frame: pd.DataFrame = file.read().to_pandas(integer_object_nulls=True, ignore_metadata=True)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"is no parquet file that can be read ({said})", source=path) from error
    return frame
