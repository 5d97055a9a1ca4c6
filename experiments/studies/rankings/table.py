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

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from estimators.errors import InputError, require_packages
from estimators.layout import add_note
from estimators.rankings.study import validate_ranking_study
from experiments.harness.result import loader
from experiments.studies.plain_table import cell_text, table_of
from inference.settings import Settings, UserPath

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RankingTableSettings", "ranking_study", "ranking_table", "write_ranking_table"]

_KEY = ["model", "text", "context_length", "window", "position"]
_TEXT = ("model", "text", "window", "reference_token", "token", "generated_token")
_WHOLE = ("context_length", "position", "rank", "reference_id", "token_id")
_REAL = ("logprob_nats", "reference_logprob_nats", "reference_rank")
_REQUIRED = (*_KEY, "reference_token", "rank", "token", "logprob_nats")
_OPTIONAL = ("generated_token", "reference_id", "token_id", "reference_logprob_nats", "reference_rank")
# column of a reference token -> variable of the study
_OF_TOKEN = {
    **{name: name for name in (*_KEY, "reference_token", "generated_token", "reference_id", "reference_rank")},
    "reference_logprob_nats": "reference_logprob",
}


class RankingTableSettings(Settings):
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
    path = settings.path
    study = _study(_checked(_read(path), path), path)
    return study.assign_attrs(name=path.stem, data_sha256=_digest(path))


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
    table = table_of(ranks, "ranks", of="ranked token", needed=_REQUIRED)
    cells = table.cells.copy()
    for column in set(cells.columns) & set(_TEXT):
        # what is missing stays missing, and is refused
        texts = [cell_text(value) or (value if isinstance(value, str) else None) for value in cells[column]]
        cells[column] = pd.Series(texts, dtype=object)
    study = _study(_checked(cells, table.source), table.source)
    return study.assign_attrs(name=name, data_sha256=table.sha256)


def _study(table: pd.DataFrame, source: object) -> xr.Dataset:
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
    study = xr.Dataset(variables)
    extra = [str(name) for name in table.columns if name not in (*_REQUIRED, *_OPTIONAL)]
    if extra:
        add_note(study, f"columns that are not used: {', '.join(extra)}", count=len(extra))
    return validate_ranking_study(study)


def write_ranking_table(study: xr.Dataset, path: Path) -> None:
    """Write a ranking study as the table that :func:`ranking_table` reads.

    Parameters
    ----------
    study : xarray.Dataset
        Passes :func:`estimators.rankings.study.validate_ranking_study`.
    path : Path
        Ends in ``.parquet``, ``.csv`` or ``.csv.gz``; CSV cannot hold the null character, Parquet no half of a
        surrogate pair.
    """
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
        _check_parquet(path)
        table.to_parquet(path, index=False)
    elif path.name.endswith((".csv", ".csv.gz")):
        table.to_csv(path, index=False, lineterminator="\n")
    else:
        raise _unknown_suffix(path)


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise InputError("there is no such file", source=path)
    try:
        if path.suffix == ".parquet":
            _check_parquet(path)
            return pd.read_parquet(path)
        if path.name.endswith((".csv", ".csv.gz")):
            # a token may well be called NA or null: nothing is missing in a column of text
            return pd.read_csv(path, dtype=dict.fromkeys(_TEXT, object), keep_default_na=False, na_filter=False)
    except (OSError, ValueError, UnicodeError) as error:  # pandas' and pyarrow's parser errors are ValueErrors
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot be read as a table ({error})", source=path) from error
    raise _unknown_suffix(path)


def _check_parquet(path: Path) -> None:
    require_packages(("pyarrow",), "ranks", source=path, field="Parquet")


def _unknown_suffix(path: Path) -> InputError:
    return InputError("should end in .parquet, .csv or .csv.gz", source=path)


def _checked(table: pd.DataFrame, source: object) -> pd.DataFrame:
    for name in _REQUIRED:
        if name not in table:
            raise InputError(
                f"is missing; the table has {', '.join(map(str, table.columns))}, and needs {', '.join(_REQUIRED)}",
                source=source,
                field=name,
            )
    if ("reference_id" in table) != ("token_id" in table):
        raise InputError("reference_id and token_id go together", source=source, field="token_id")
    if table.empty:
        raise InputError("has no rows", source=source)
    for name in (*_REQUIRED, *_OPTIONAL):
        if name not in table:
            continue
        column = table[name]
        if name in _TEXT:
            wrong = ~column.map(lambda value: isinstance(value, str)).to_numpy(dtype=bool)
            should = "text"
        else:
            numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
            wrong = ~np.isfinite(numbers)
            should = "a number"
            if name in _WHOLE:
                wrong |= numbers != np.round(numbers)
                should = "a whole number"
            if not wrong.any():
                table[name] = numbers.astype(np.int64) if name in _WHOLE else numbers
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"is {column.iloc[[row]].tolist()[0]!r} in row {row + 1}, should be {should}", source=source, field=name
            )
    return table


def _place(table: pd.DataFrame, row: int) -> str:
    return ", ".join(f"{name} {table[name].iloc[row]}" for name in _KEY)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
