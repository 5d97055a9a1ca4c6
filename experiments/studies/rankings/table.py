"""Ranked tokens of anybody's run, from one plain long table (CSV or Parquet), as a ranking study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.rankings.study import validate_ranking_study
from shannon_game.experiments.harness.csv_tables import write_csv
from shannon_game.experiments.harness.result import loader, of_frames
from shannon_game.experiments.studies.parsing import add_notes
from shannon_game.experiments.studies.plain_table import Groups, Table, specification, table_of
from shannon_game.experiments.studies.table_file import OneTable

if TYPE_CHECKING:
    from numpy.typing import NDArray


_KEY = ("model", "text", "context_length", "window", "position")
_REQUIRED = (*_KEY, "reference_token", "rank", "token", "logprob_nats")
_OPTIONAL = ("generated_token", "reference_id", "token_id", "reference_logprob_nats", "reference_rank")
_SPEC = specification(
    id="model text window",
    whole="context_length position rank reference_id token_id",
    text_or_empty="reference_token token generated_token",
    logprob="logprob_nats reference_logprob_nats",
    number="reference_rank",
)
# APIs round log-probabilities
_SLACK = 0.01
# column of a reference token -> variable of the study
_OF_TOKEN = {
    **{name: name for name in (*_KEY, "reference_token", "generated_token", "reference_id", "reference_rank")},
    "reference_logprob_nats": "reference_logprob",
}


class RankingTableSettings(OneTable):
    """Settings of ranked tokens in one table, with one row per ranked token."""


@loader(RankingTableSettings)
def ranking_table(settings: RankingTableSettings) -> xr.Dataset:
    """Load a table of ranked tokens as a ranking study; see :func:`ranking_study` for its columns."""
    return _study(settings.read("ranked token", _REQUIRED), settings.path.stem)


@of_frames()
def ranking_study(ranks: pd.DataFrame, *, name: str = "ranking study") -> xr.Dataset:
    """Make a ranking study of a DataFrame.

    Parameters
    ----------
    ranks : pandas.DataFrame
        One row per ranked token: ``model``, ``text``, ``context_length`` (tokens that the model saw), ``window`` (name
        of the run of consecutive tokens), ``position`` (of the reference token in its window, from 0),
        ``reference_token``, ``rank`` (1 for the most probable token), ``token``, ``logprob_nats``; optional columns:
        ``generated_token`` (sampled there), ``reference_id`` with ``token_id``, ``reference_logprob_nats`` and
        ``reference_rank`` (from the whole vocabulary). All columns but ``rank``, ``token``, ``logprob_nats`` and
        ``token_id`` say the same in every row of one reference token.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        Passes :func:`shannon_game.estimators.rankings.study.validate_ranking_study`. Rows may stand in any order.

    Examples
    --------
    The reference token has rank 1 in the first place and rank 2 in the second.

    >>> import pandas as pd
    >>> from shannon_game import ranking_study
    >>> from shannon_game.estimators.rankings import score_study
    >>> rows = [[0, " whale", 1, " whale", -0.5], [0, " whale", 2, " ship", -1.5]]
    >>> rows += [[1, " sea", 1, " air", -0.7], [1, " sea", 2, " sea", -0.9]]
    >>> columns = ["position", "reference_token", "rank", "token", "logprob_nats"]
    >>> ranks = pd.DataFrame(rows, columns=columns).assign(model="gpt2", text="moby", context_length=8, window="1")
    >>> float(score_study(ranking_study(ranks)).reciprocal.mean())
    0.75
    """
    return _study(table_of(ranks, "ranks", of="ranked token", needed=_REQUIRED), name)


def _study(given: Table, name: str) -> xr.Dataset:
    table = given.named({what: what for what in (*_REQUIRED, *_OPTIONAL)}, _SPEC, optional=_OPTIONAL, hint=_NEEDS)
    if ("reference_id" in table) != ("token_id" in table):
        raise InputError("reference_id and token_id go together", source=given.source, field="token_id")
    for column in table.names:
        # an empty token may be one
        table.refuse(table.cells[column].isna().to_numpy(), column, "should be text or a number")
    table.read_one_mark("reference_token", "token")
    of = table.groups(*_KEY, what="reference token", sort=True)
    _check_lists(table, of)
    rank = _ranks(table, of)
    shape = (len(of), int(rank.max()))
    ranked: dict[str, tuple[str, NDArray[Any]]] = {
        "ranked_token": ("token", np.full(shape, None, dtype=object)),
        "ranked_logprob": ("logprob_nats", np.full(shape, np.nan)),
    }
    if "token_id" in table:
        ranked["ranked_id"] = ("token_id", np.full(shape, -1, dtype=np.int64))
    variables: dict[str, Any] = {}
    for column, variable in _OF_TOKEN.items():
        if column in table:
            value = of.one(column)
            variables[variable] = ("token", value.astype(np.int64) if _SPEC[column] == "whole" else value)
    for variable, (column, values) in ranked.items():
        values[of.of_row, rank - 1] = table[column]
        units = {"units": "nats"} if column == "logprob_nats" else {}
        variables[variable] = (("token", "rank"), values, units)
    study = xr.Dataset(variables)
    extra = [column for column in given.names if column not in _SPEC]
    table.note(f"columns that are not used: {', '.join(extra)}", len(extra))
    add_notes(study, table.notes)
    return validate_ranking_study(study).assign_attrs(name=name, data_sha256=given.sha256)


_NEEDS = f"it needs {', '.join(_REQUIRED)}"


def _ranks(table: Table, of: Groups) -> NDArray[np.int64]:
    rank = pd.Series(table["rank"].astype(np.int64))
    expected = rank.groupby(of.of_row).rank(method="first").to_numpy().astype(np.int64)

    def problem(row: int) -> str:
        return f"where {expected[row]} should follow ({_place(table, row)}); ranks are 1, 2, 3, ... everywhere"

    table.refuse((rank != expected).to_numpy(), "rank", problem)
    return expected


def _check_lists(table: Table, of: Groups) -> None:
    """Refuse a list with more than the whole probability, with one token twice, or whose tokens have another space."""
    table.refuse_other_lead("token", table["token"][:, None], table["reference_token"][:, None])
    total = np.bincount(of.of_row, weights=np.exp(table["logprob_nats"]))
    if total.max() > 1 + _SLACK:
        place = _place(table, int(of.first[np.argmax(total)]))
        problem = f"the probabilities add up to {total.max():.3g} for one reference token ({place})"
        raise table.error(f"{problem}; it should be ln p", "logprob_nats")
    token = "token_id" if "token_id" in table else "token"
    twice = pd.DataFrame({"of": of.of_row, "token": table[token]}).duplicated().to_numpy()
    if token == "token":
        # half of a character: many tokens are this string
        twice = twice & np.array(["\ufffd" not in text for text in table["token"].tolist()])
    hint = "" if token == "token_id" else "; where different tokens are one string, give token_id and reference_id"
    table.refuse(twice, token, lambda row: f"again for one reference token ({_place(table, row)}){hint}")


def _place(table: Table, row: int) -> str:
    return ", ".join(f"{name} {table.texts(name)[row]}" for name in _KEY)


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
        require_packages(("pyarrow",), "data", source=path, field="Parquet")
        table.to_parquet(path, index=False)
    elif path.name.endswith((".csv", ".csv.gz")):
        write_csv(table, path, marked=True)
    else:
        raise InputError("should end in .parquet, .csv or .csv.gz", source=path)
