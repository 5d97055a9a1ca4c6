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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from estimators.errors import InputError, require_packages
from estimators.notes import add_note
from estimators.rankings.study import validate_ranking_study
from experiments.studies.loader_settings import loader_settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["load", "read_ranking_table", "write_ranking_table"]

_SOURCE = "study=ranking_table"
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


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Load a ranking table; ``path`` is its file (see the module for its columns).

    Returns
    -------
    xarray.Dataset
        Passes :func:`estimators.rankings.study.validate_ranking_study`.

    Raises
    ------
    InputError
        For an unknown setting, a file that is missing or not such a table; names the column and the row.
    """
    path = loader_settings(config, {"name": "ranking_table", "path": None}, source=_SOURCE)["path"]
    if not isinstance(path, str | Path) or not str(path):
        raise InputError(f"is {path!r}, should be the path of a table", source=_SOURCE, field="path")
    return read_ranking_table(Path(path).expanduser())


def read_ranking_table(path: Path) -> xr.Dataset:
    """Read a ranking table, see :func:`load`."""
    table = _checked(_read(path), path)
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
            source=path,
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
                    source=path,
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
    study = xr.Dataset(variables, attrs={"name": path.stem, "data_sha256": _digest(path)})
    extra = [str(name) for name in table.columns if name not in (*_REQUIRED, *_OPTIONAL)]
    if extra:
        add_note(study, f"columns that are not used: {', '.join(extra)}", count=len(extra))
    return validate_ranking_study(study)


def write_ranking_table(study: xr.Dataset, path: Path) -> None:
    """Write a ranking study as the table that :func:`read_ranking_table` reads.

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


def _checked(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    for name in _REQUIRED:
        if name not in table:
            raise InputError(
                f"the column is missing; a ranking table has {', '.join(_REQUIRED)}", source=path, field=name
            )
    if ("reference_id" in table) != ("token_id" in table):
        raise InputError("reference_id and token_id go together", source=path, field="token_id")
    if table.empty:
        raise InputError("has no rows", source=path)
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
                f"is {column.iloc[[row]].tolist()[0]!r} in row {row + 1}, should be {should}", source=path, field=name
            )
    return table


def _place(table: pd.DataFrame, row: int) -> str:
    return ", ".join(f"{name} {table[name].iloc[row]}" for name in _KEY)


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
