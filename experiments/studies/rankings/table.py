"""Ranked tokens of anybody's run, from one plain long table (CSV or Parquet), as a ranking study.

One row a ranked token:

==========================  ====================================================================================
column                      meaning
==========================  ====================================================================================
``model``                   name of the language model
``text``                    name of the text
``context_length``          tokens that the model saw before the reference token
``window``                  name of the run of consecutive tokens, the same for every model that scored the place
``position``                place of the reference token in its window, from 0
``reference_token``         the token of the text, with its white space
``rank``                    1 for the most probable token, then 2, 3, ...
``token``                   the token at that rank
``logprob_nats``            its log-probability, natural logarithm
``generated_token``         optional: the token that was sampled there
``reference_id``            optional, with ``token_id``: id of the reference token
``token_id``                optional: id of the ranked token
``reference_logprob_nats``  optional: ln p of the reference token, from the whole vocabulary
``reference_rank``          optional: its rank in the whole vocabulary
==========================  ====================================================================================

All columns but ``rank``, ``token``, ``logprob_nats`` and ``token_id`` say the same in every row of one reference token.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from estimators.errors import InputError, require_packages
from estimators.layout import add_note
from estimators.rankings.study import validate_ranking_study
from experiments.harness.csv_tables import write_csv
from experiments.harness.result import loader
from experiments.studies.parsing import add_notes, shown
from experiments.studies.plain_table import Table, in_notebook, refuse_other_lead, table_of
from experiments.studies.table_file import read_table
from experiments.studies.table_settings import TableFile
from inference.settings import UserPath

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RankingTableSettings", "ranking_study", "ranking_table", "write_ranking_table"]

_KEY = ["model", "text", "context_length", "window", "position"]
_TEXT = ("model", "text", "window", "reference_token", "token", "generated_token")
_WHOLE = ("context_length", "position", "rank", "reference_id", "token_id")
_REAL = ("logprob_nats", "reference_logprob_nats", "reference_rank")
_REQUIRED = (*_KEY, "reference_token", "rank", "token", "logprob_nats")
# APIs round log-probabilities
_SLACK = 0.01
# numbers above are not all told apart
_LARGEST = 2**53
_OPTIONAL = ("generated_token", "reference_id", "token_id", "reference_logprob_nats", "reference_rank")
# column of a reference token -> variable of the study
_OF_TOKEN = {
    **{name: name for name in (*_KEY, "reference_token", "generated_token", "reference_id", "reference_rank")},
    "reference_logprob_nats": "reference_logprob",
}


class RankingTableSettings(TableFile):
    """Settings of ranked tokens in one table."""

    path: UserPath
    """CSV (.csv, .csv.gz) or Parquet (.parquet) file with one row a ranked token."""


@loader(RankingTableSettings)
def ranking_table(settings: RankingTableSettings) -> xr.Dataset:
    """Load a table of ranked tokens (see the module for its columns) as a ranking study.

    Parameters
    ----------
    settings : RankingTableSettings, optional
        Or its fields by name.

    Returns
    -------
    xarray.Dataset
        See :func:`ranking_study`.

    Raises
    ------
    InputError
        For a file that is missing or not such a table; names the column and the row.

    Examples
    --------
    >>> from experiments import ranking_table
    >>> study = ranking_table(path="ranks.csv")  # doctest: +SKIP
    """
    return _study(read_table(settings.path, of="ranked token", how=settings, wanted=_REQUIRED), settings.path.stem)


@in_notebook
def ranking_study(ranks: pd.DataFrame, *, name: str = "ranking study") -> xr.Dataset:
    """Make a ranking study of a DataFrame.

    Parameters
    ----------
    ranks : pandas.DataFrame
        One row a ranked token: ``model``, ``text``, ``context_length`` (tokens that the model saw), ``window`` (name of
        the run of consecutive tokens), ``position`` (of the reference token in its window, from 0),
        ``reference_token``, ``rank`` (1 for the most probable token), ``token``, ``logprob_nats``; optional columns:
        ``generated_token``, ``reference_id`` with ``token_id``, ``reference_logprob_nats``, ``reference_rank``.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.rankings.study.validate_ranking_study`. Rows may stand in any order.

    Raises
    ------
    InputError
        For a missing column or a bad cell; names column and row, and lists the columns that there are.

    Examples
    --------
    The reference token has rank 1 in the first place and rank 2 in the second.

    >>> import pandas as pd
    >>> from experiments import ranking_study
    >>> from estimators.rankings import score_study
    >>> ranks = pd.DataFrame(
    ...     {
    ...         "model": "gpt2",
    ...         "text": "moby",
    ...         "context_length": 8,
    ...         "window": "1",
    ...         "position": [0, 0, 1, 1],
    ...         "reference_token": [" whale", " whale", " sea", " sea"],
    ...         "rank": [1, 2, 1, 2],
    ...         "token": [" whale", " ship", " air", " sea"],
    ...         "logprob_nats": [-0.5, -1.5, -0.7, -0.9],
    ...     }
    ... )
    >>> float(score_study(ranking_study(ranks)).reciprocal.mean())
    0.75
    """
    return _study(table_of(ranks, "ranks", of="ranked token", needed=_REQUIRED), name)


def _study(given: Table, name: str) -> xr.Dataset:
    cells = _checked(given)
    _check_lists(given, cells)
    study = _of_rows(cells, given.source)
    add_notes(study, given.notes)
    extra = [column for column in given.names if column not in (*_REQUIRED, *_OPTIONAL)]
    if extra:
        add_note(study, f"columns that are not used: {', '.join(extra)}", count=len(extra))
    return validate_ranking_study(study).assign_attrs(name=name, data_sha256=given.sha256)


def _of_rows(table: pd.DataFrame, source: object) -> xr.Dataset:
    table = table.sort_values([*_KEY, "rank"], kind="stable", ignore_index=True)
    first = ~table.duplicated(_KEY).to_numpy()
    owner = np.cumsum(first) - 1
    heads = table[first].reset_index(drop=True)
    rank = table["rank"].to_numpy()
    starts = np.flatnonzero(first)
    expected = np.arange(len(table)) - starts[owner] + 1
    if (rank != expected).any():
        row = int(np.argmax(rank != expected))
        raise InputError(
            f"is {rank[row]} where {expected[row]} should follow ({_place(table, row)}); ranks are 1, 2, 3, ... for "
            "every reference token",
            source=source,
            field="rank",
        )
    for name in ("reference_token", *_OPTIONAL):
        if name in table and name != "token_id":
            same = table[name].to_numpy() == heads[name].to_numpy()[owner]
            same |= table[name].isna().to_numpy() & heads[name].isna().to_numpy()[owner]
            if not same.all():
                row = int(np.argmin(same))
                raise InputError(
                    f"is {table[name].iloc[row]!r} and {heads[name].iloc[owner[row]]!r} for one reference token "
                    f"({_place(table, row)})",
                    source=source,
                    field=name,
                )
    shape = (len(heads), int(rank.max()))
    token = np.full(shape, None, dtype=object)
    logprob = np.full(shape, np.nan)
    token[owner, rank - 1] = table["token"].to_numpy(dtype=object)
    logprob[owner, rank - 1] = table["logprob_nats"].to_numpy()
    variables: dict[str, Any] = {
        _OF_TOKEN[name]: ("token", heads[name].to_numpy(dtype=object if name in _TEXT else None))
        for name in _OF_TOKEN
        if name in heads
    }
    variables |= {
        "ranked_token": (("token", "rank"), token),
        "ranked_logprob": (("token", "rank"), logprob, {"units": "nats"}),
    }
    if "token_id" in table:
        ids = np.full(shape, -1, dtype=np.int64)
        ids[owner, rank - 1] = table["token_id"].to_numpy()
        variables["ranked_id"] = (("token", "rank"), ids)
    return xr.Dataset(variables)


def write_ranking_table(study: xr.Dataset, path: Path) -> None:
    """Write a ranking study as the table that :func:`ranking_table` reads."""
    logprob = study["ranked_logprob"].to_numpy()
    owner, at = np.nonzero(~np.isnan(logprob))
    columns: dict[str, NDArray[Any]] = {
        name: study[variable].to_numpy()[owner] for name, variable in _OF_TOKEN.items() if variable in study
    }
    columns |= {
        "rank": at + 1,
        "token": study["ranked_token"].to_numpy()[owner, at],
        "logprob_nats": logprob[owner, at],
    }
    if "ranked_id" in study:
        columns["token_id"] = study["ranked_id"].to_numpy()[owner, at]
    table = pd.DataFrame(columns)
    if path.suffix == ".parquet":
        require_packages(("pyarrow",), "ranks", source=path, field="Parquet")
        table.to_parquet(path, index=False)
    elif path.name.endswith((".csv", ".csv.gz")):
        write_csv(table, path, marked=True)
    else:
        raise InputError("should end in .parquet, .csv or .csv.gz", source=path)


def _checked(given: Table) -> pd.DataFrame:
    """Columns that are used, each of its type."""
    given.check_columns({name: name for name in _REQUIRED}, hint=f"it needs {', '.join(_REQUIRED)}")
    if ("reference_id" in given.cells) != ("token_id" in given.cells):
        raise InputError("reference_id and token_id go together", source=given.source, field="token_id")
    found: dict[str, Any] = {}
    for name in (*_REQUIRED, *_OPTIONAL):
        if name not in given.cells:
            continue
        missing = given.cells[name].isna().to_numpy()
        if missing.any():
            row = int(np.argmax(missing))
            should = "text" if name in _TEXT else "a whole number" if name in _WHOLE else "a number"
            raise given.error(f"is empty in {given.where(row)}, should be {should}", name)
        whole = name in _WHOLE
        found[name] = given.numbers(name, whole=whole) if name not in _TEXT else given.texts(name)
        if name in ("model", "text", "window"):
            found[name] = given.ids(name)
        if name.endswith("logprob_nats"):
            found[name] = given.logprobs(name)
        if name in _WHOLE:
            found[name] = _whole(given, name, found[name])
    return pd.DataFrame(found)


def _whole(given: Table, name: str, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    bad = (numbers != np.rint(numbers)) | (np.abs(numbers) > _LARGEST)
    if bad.any():
        row = int(np.argmax(bad))
        text = shown(given.texts(name)[row])
        raise given.error(f"is {text} in {given.where(row)}, should be a whole number", name)
    return numbers.astype(np.int64)


def _check_lists(given: Table, cells: pd.DataFrame) -> None:
    """Refuse a list with more than the whole probability, with one token twice, or whose tokens have another space."""
    reference, listed = (cells[name].to_numpy()[:, None] for name in ("reference_token", "token"))
    refuse_other_lead(given, "token", listed, reference)
    total = np.exp(cells["logprob_nats"]).groupby([cells[name] for name in _KEY]).transform("sum").to_numpy()
    row = int(np.argmax(total))
    if total[row] > 1 + _SLACK:
        problem = f"the probabilities add up to {total[row]:.3g} for one reference token ({_place(cells, row)})"
        raise given.error(f"{problem}; it should be ln p", "logprob_nats")
    token = "token_id" if "token_id" in cells else "token"
    twice = cells.duplicated([*_KEY, token]).to_numpy()
    if token == "token":
        # half of a character: many tokens are this string
        twice = twice & ~cells["token"].str.contains("\ufffd", regex=False).to_numpy(dtype=bool)
    if twice.any():
        row = int(np.argmax(twice))
        hint = "" if token == "token_id" else "; where different tokens are one string, give token_id and reference_id"
        problem = f"is {shown(cells[token].tolist()[row])} again in {given.where(row)} for one reference token"
        raise given.error(f"{problem} ({_place(cells, row)}){hint}", token)


def _place(table: pd.DataFrame, row: int) -> str:
    return ", ".join(f"{name} {table[name].iloc[row]}" for name in _KEY)
