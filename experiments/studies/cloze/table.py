"""Any cloze study from one table, in a file or a DataFrame: the loader, and the function that a notebook calls.

Every answer is text: "None", "NA", "nan" and "TRUE" are words that people say, and a table is read so that they stay
what they are. What cannot be an answer is counted in the notes; what cannot be understood is refused with its line.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Load, Set, word
from shannon_game.experiments.harness.result import loader, of_frames
from shannon_game.experiments.studies.cloze.table_columns import ClozeRowSettings, named_columns
from shannon_game.experiments.studies.cloze.table_rows import study_of_rows
from shannon_game.experiments.studies.cloze.table_wide import long_table
from shannon_game.experiments.studies.parsing import Note
from shannon_game.experiments.studies.plain_table import Table, table_of
from shannon_game.experiments.studies.survey_export import without_survey_headers
from shannon_game.experiments.studies.table_file import TableFile, read_table
from shannon_game.inference.settings import UserPath


class ClozeTableSettings(ClozeRowSettings, TableFile):
    path: UserPath | None = None
    """The table: delimited text (.gz too) or Parquet. Needed."""


@loader(ClozeTableSettings)
def cloze_table(settings: ClozeTableSettings) -> xr.Dataset:
    r"""Load a cloze study from a file with one table.

    One row is one participant's answer, or a context and answer with a count or a proportion. Answers keep their
    order. Contexts are told apart by ``context_id`` where that column is given (or by ``text_id`` and ``word_num``),
    else by their text: two contexts with the same text and different ids stay two.

    With proportions and ``n_answers`` the counts are the rounded products; with proportions only there are no
    counts, and analyses that need them say so.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from shannon_game import cloze_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "answers.csv"
    ...     n_characters = path.write_text("context,said,n\nThe cat,sat,3\nThe cat,ran,1\n")
    ...     study = cloze_table(path=path, columns={"context": "context", "response": "said", "count": "n"})
    >>> study["response_count"].to_numpy()
    array([3, 1], dtype=int32)
    """
    path = settings.path
    if path is None:
        raise InputError(
            f"is {word(None)}; give the table: {Set('study.path', 'FILE')}", source=Load("cloze_table"), field="path"
        )
    wanted = ["response"] if settings.columns is None else list(settings.columns.given.values())
    return _study(read_table(path, of="answer", how=settings, wanted=wanted, once=False), settings, path.stem)


@of_frames(ClozeRowSettings)
def cloze_study(answers: pd.DataFrame, *, name: str = "table", **settings: Any) -> xr.Dataset:
    """Make a cloze study of a DataFrame: the same as :func:`cloze_table` makes of a file.

    Parameters
    ----------
    answers : pandas.DataFrame
        One row per answer, or a context and answer with a count or a proportion. Answers are strings.
    name : str, optional
        Of the study, for titles and messages.

    Returns
    -------
    xarray.Dataset
        Passes :func:`shannon_game.estimators.cloze.study.validate_cloze_study`.

    Examples
    --------
    >>> import pandas as pd
    >>> from shannon_game import cloze_study
    >>> answers = pd.DataFrame({"sentence": ["The cat", "The cat", "A dog"], "said": ["sat", "ran", "barked"]})
    >>> study = cloze_study(answers, columns={"context": "sentence", "response": "said"})
    >>> study["context"].to_numpy()
    array(['The cat', 'A dog'], dtype=object)
    """
    chosen = ClozeRowSettings(**settings)
    return _study(table_of(answers, "answers", of="answer", once=False, first=without_survey_headers), chosen, name)


def _study(table: Table, settings: ClozeRowSettings, name: str) -> xr.Dataset:
    own, said = settings.columns, table.repeated()
    if settings.wide is not None:
        table, own = long_table(table, settings.wide, own)
    found, notes = named_columns(table, own)
    if said and {"participant", "count", "proportion"} & set(found.names):
        table.refuse_repeated()
    if said:
        notes.append(Note(f"{said}; kept, as people may answer alike", None, "warning"))
    return study_of_rows(found, settings, name=name, notes=notes)
