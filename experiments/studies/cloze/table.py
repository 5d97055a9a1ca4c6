"""Any cloze study from one table, in a file or a DataFrame: the loader, and the function that a notebook calls.

Every answer is text: "None", "NA", "nan" and "TRUE" are words that people say, and a table is read so that they stay
what they are. What cannot be an answer is counted in the notes; what cannot be understood is refused with its line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pandas as pd
import xarray as xr
from pydantic import AfterValidator

from estimators.errors import InputError, unknown_choice
from experiments.harness.result import loader
from experiments.studies.cloze.table_file import SEPARATORS, Row, chosen_columns, read_rows, row_of
from experiments.studies.cloze.table_rows import ClozeRowSettings, RowsToStudy
from inference.settings import UserPath

__all__ = ["ClozeTableSettings", "cloze_study", "cloze_table"]


def _separator(name: str) -> str:
    if name not in ("auto", *SEPARATORS) and len(name) != 1:
        raise unknown_choice("separator", name, ("auto", *SEPARATORS, "a single character"))
    return SEPARATORS.get(name, name)


class ClozeTableSettings(ClozeRowSettings):
    """Settings of :func:`cloze_table`."""

    path: UserPath | None = None
    """The table: CSV, TSV or parquet. Needed."""
    separator: Annotated[str, AfterValidator(_separator)] = "auto"
    """auto takes the one that gives the columns; or comma, tab, semicolon, pipe, or a character."""
    encoding: Literal["auto", "utf-8", "cp1252", "latin-1", "mac-roman", "utf-16"] = "auto"
    """auto is UTF-8 (or UTF-16 with its mark), else Windows-1252 with a warning."""


@loader(ClozeTableSettings)
def cloze_table(settings: ClozeTableSettings) -> xr.Dataset:
    r"""Load a cloze study from a file with one table.

    One row is one participant's answer, or a context and answer with a count or a proportion. Answers keep their
    order. Contexts are told apart by ``context_id`` where that column is given (or by ``text_id`` and ``word_num``),
    else by their text: two contexts with the same text and different ids stay two.

    Parameters
    ----------
    settings : ClozeTableSettings
        Or its fields by name.

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.cloze.study.validate_cloze_study`. With proportions and ``n_answers`` the counts are
        the rounded products; with proportions only there are no counts, and analyses that need them say so.

    Raises
    ------
    InputError
        For an unreadable table, columns that are not there, and values that cannot be; names the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from experiments import cloze_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "answers.csv"
    ...     n_characters = path.write_text("context,said,n\nThe cat,sat,3\nThe cat,ran,1\n")
    ...     study = cloze_table(path=path, columns={"context": "context", "response": "said", "count": "n"})
    >>> study["response_count"].to_numpy()
    array([3, 1], dtype=int32)
    """
    path = settings.path
    if path is None:
        raise InputError("is null; give the table: study.path=FILE", source="study=cloze_table", field="path")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=path) from error
    table = read_rows(path, content, settings.columns, separator=settings.separator, encoding=settings.encoding)
    rows = RowsToStudy(settings, table.columns, path)
    return rows.study(table.rows, name=path.stem, sha256=hashlib.sha256(content).hexdigest(), notes=table.notes)


def cloze_study(answers: pd.DataFrame, *, name: str = "table", **settings: Any) -> xr.Dataset:
    """Make a cloze study of a DataFrame: the same as :func:`cloze_table` makes of a file.

    Parameters
    ----------
    answers : pandas.DataFrame
        One row an answer, or a context and answer with a count or a proportion. Answers are strings.
    name : str, optional
        Of the study, for titles and messages.
    **settings
        Fields of :class:`ClozeRowSettings`: ``columns``, ``missing``, ``drop_incomplete``, ``n_answers``,
        ``proportions``, ``percent``, ``word_rules``. Without ``columns`` those are read that bear the names of
        :class:`ClozeColumns`.

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.cloze.study.validate_cloze_study`.

    Raises
    ------
    InputError
        For columns that are not there, and values that cannot be; names the row.

    Examples
    --------
    >>> import pandas as pd
    >>> from experiments import cloze_study
    >>> answers = pd.DataFrame({"sentence": ["The cat", "The cat", "A dog"], "said": ["sat", "ran", "barked"]})
    >>> study = cloze_study(answers, columns={"context": "sentence", "response": "said"})
    >>> study["context"].to_numpy()
    array(['The cat', 'A dog'], dtype=object)
    """
    if not isinstance(answers, pd.DataFrame):
        raise InputError(f"is a {type(answers).__name__}, should be a pandas.DataFrame", field="answers")
    chosen = ClozeRowSettings(**settings)
    columns, notes = chosen_columns([str(one) for one in answers.columns], chosen.columns, source=name)
    own = answers.set_axis([str(one) for one in answers.columns], axis="columns")[list(columns.values())]
    sha256 = hashlib.sha256(own.to_csv(index=False).encode("utf-8", "surrogatepass")).hexdigest()
    return RowsToStudy(chosen, columns, name).study(_rows(own, columns, name), name=name, sha256=sha256, notes=notes)


def _rows(frame: pd.DataFrame, columns: dict[str, str], source: str) -> Iterator[Row]:
    lists = [[None if pd.isna(value) else value for value in frame[column].tolist()] for column in frame.columns]
    for number, values in enumerate(zip(*lists, strict=True)):
        yield row_of(dict(zip(frame.columns, values, strict=True)), columns, number, source)
