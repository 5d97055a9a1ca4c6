"""Probabilities that people stated and what came true, from one plain table: forecasts without a language model."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.comparison import validate_forecast_study
from shannon_game.experiments.harness.result import loader, of_frames
from shannon_game.experiments.studies.cells import composed, one_mark
from shannon_game.experiments.studies.comparison.table_answers import reports_of
from shannon_game.experiments.studies.comparison.table_columns import ReportLayout
from shannon_game.experiments.studies.parsing import add_notes, shown
from shannon_game.experiments.studies.plain_table import Columns, Table, table_of
from shannon_game.experiments.studies.table_file import OneTable

_OPTIONS = ("option", "other")


class ForecastColumns(Columns):
    """Names of the table's columns."""

    participant: Annotated[str, "id"] = "participant"
    """Who stated the probability."""
    item: Annotated[str, "id"] = "item"
    """What was forecast: an event, a question, a prompt; any text."""
    report: Annotated[str, "number"] = "report"
    """The probability that was stated."""
    outcome: Annotated[str | None, "text"] = "outcome"
    """Whether it came true: 1/0, true/false, yes/no, or which of the two options did. null: every report is of what
    came true, as in the answers of a comparison study."""
    option: Annotated[str, "text"] = "option"
    """Optional: of two tokens, the one whose probability was stated."""
    other: Annotated[str, "text"] = "other"
    """Optional: the other token."""


class ForecastLayout(ReportLayout):
    """What the table means."""

    columns: ForecastColumns = ForecastColumns()
    """Names of the table's columns."""


class ForecastTableSettings(ForecastLayout, OneTable):
    """Settings of forecasts in one table, with one row per stated probability."""


@loader(ForecastTableSettings)
def forecast_table(settings: ForecastTableSettings) -> xr.Dataset:
    """Load a table of stated probabilities and outcomes as a forecast study.

    See :func:`forecast_study`.
    """
    return _study_of(settings.read("forecast", settings.columns.given.values()), settings, name=settings.path.stem)


@of_frames(ForecastLayout)
def forecast_study(forecasts: pd.DataFrame, *, name: str = "forecast study", **settings: Any) -> xr.Dataset:
    """Make a forecast study of a DataFrame; the columns may have other names, see `columns`.

    Parameters
    ----------
    forecasts : pandas.DataFrame
        One row per stated probability: ``participant``, ``item``, ``report``, ``outcome``, and maybe the two tokens
        that were compared, ``option`` and ``other``.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        Passes :func:`shannon_game.estimators.comparison.validate_forecast_study`. Forecasts on two equal tokens are
        ``automatic``: they say nothing of a belief.

    Examples
    --------
    >>> import pandas as pd
    >>> from shannon_game import forecast_study
    >>> rows = [["ann", "rain", 0.8, 1], ["ann", "snow", 0.3, 0], ["bo", "rain", 0.6, 1]]
    >>> study = forecast_study(pd.DataFrame(rows, columns=["participant", "item", "report", "outcome"]))
    >>> study["report"].values.tolist()
    [0.8, 0.7, 0.6]
    """
    table = table_of(forecasts, "forecasts", of="forecast", needed=ForecastColumns().given)
    return _study_of(table, ForecastLayout(**settings), name=name)


def _study_of(table: Table, settings: ForecastLayout, *, name: str) -> xr.Dataset:
    table = table.named(settings.columns.given, ForecastColumns.types(), optional=_OPTIONS)
    needed = [what for what in settings.columns.given if what in table and what not in _OPTIONS]
    table = table.without({what: table.blank(what) for what in needed}, settings.missing, of="forecast")
    there = {what: table[what] for what in _OPTIONS if what in table}
    equal = np.array(there["option"] == there["other"] if len(there) == 2 else np.zeros(len(table)), dtype=bool)
    report, outcome, of = reports_of(table, settings), _outcomes(table), table.groups("item", what="item")
    variables: dict[str, Any] = {
        "item_id": ("item", table["item"][of.first]),
        "participant": ("response", table["participant"]),
        "response_item": ("response", of.of_row.astype(np.int64)),
        "report": ("response", np.where(outcome, report, 1 - report)),
        "outcome": ("response", outcome),
        "automatic": ("response", equal),
        **{what: ("response", cells) for what, cells in there.items()},
    }
    attrs = {"name": name, "data_sha256": table.sha256}
    study = xr.Dataset(variables, coords={"item": np.arange(len(of))}, attrs=attrs)
    pairs = pd.DataFrame({what: table[what] for what in ("participant", "item", *there)})
    table.note("forecasts of a participant for what they had forecast before; kept", pairs.duplicated(), "warning")
    table.note("forecasts on two equal options, which say nothing of a belief (automatic)", equal)
    add_notes(study, table.notes)
    return validate_forecast_study(study)


def _outcomes(table: Table) -> NDArray[np.bool_]:
    """Whether what a report is of came true: as the table says, or as the option that did."""
    if "outcome" not in table:
        return np.ones(len(table), dtype=bool)
    if not all(what in table for what in _OPTIONS):
        return table.flags("outcome")
    came, option, other = one_mark(*(composed(table[what]) for what in ("outcome", *_OPTIONS)))
    first, second = came == option, came == other
    if not (first | second).any():
        return table.flags("outcome", ", or the option that came true")
    right = "should be the option that came true"
    table.refuse(~(first | second), "outcome", lambda row: f"{right}, {shown(option[row])} or {shown(other[row])}")
    both = np.isin(came, ("0", "1")) & (first != (came == "1"))
    table.refuse(both, "outcome", "which names an option and says yes or no: write true or false")
    return np.asarray(first, dtype=bool)
