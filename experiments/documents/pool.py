"""``+exp=pool``: several studies of one quantity pooled, such as losses in bits per character (a meta-analysis)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

from shannon_game.estimators.documents import PooledMean, pooled_mean
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import Series
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.settings import Probability, Settings


class PoolRow(column.Row):
    """A study, or several pooled."""

    what: str = column.key(
        "study; pooled: mean of the true values; new study: where the true value of a further one lies; without: "
        "pooled without that study"
    )
    group: str = column.key("group of studies")
    source: str = column.key("study")
    estimate: float = column.headline("estimate", se="se", interval="{}")
    weight: float = column.beside("estimate", "the study's share in the mean")
    tau: float = column.estimate("standard deviation of the true values")
    share_between: float = column.beside("tau", "share of the variation that is between studies (I squared)")
    n_studies: int = column.context("studies")


_FEW = 5


class PoolSettings(Settings):
    interval: Probability = 0.9
    """Probability inside the intervals."""


@experiment(PoolSettings, row=PoolRow)
def pool(study: xr.Dataset, settings: PoolSettings) -> ExperimentResult:
    """Pool the estimates of several studies by random effects, each group by itself."""
    group_of, rows = study["group"].to_numpy().astype(str), []
    for group in dict.fromkeys(group_of.tolist()):
        rows += _rows(study.isel(source=group_of == group), group, settings.interval)
    table = PoolRow.table(rows)
    units = str(study.attrs.get("units", ""))
    few = [
        f"{row.group} has {row.n_studies:.0f} studies; how far studies differ is hardly known from so few, and the "
        "interval of a new one holds less than it states"
        for row in rows_of(table[table["what"] == "pooled"])
        if row.n_studies < _FEW
    ]
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(PoolRow.variables(table, "row")),
        figures={"pool": pool_figure(table, units, str(study.attrs.get("name", "")), settings.interval)},
        text=_summary(table, units, settings.interval),
        warnings=tuple(few),
    )


def _rows(study: xr.Dataset, group: str, interval: float) -> list[dict[str, Any]]:
    y, s = study["estimate"].to_numpy(), study["se"].to_numpy()
    names = study["source"].to_numpy().astype(str)
    if y.size < 2:
        problem = f"is the only study of {group!r}; there is nothing to pool"
        raise InputError(problem, source=f"study {study.attrs['name']!r}", field=names[0])
    found = pooled_mean(y, s, probability=interval)
    weight = 1 / (s**2 + found.tau**2)
    half = stats.norm.isf((1 - interval) / 2)
    known = {"source": names, "estimate": y, "se": s, "lower": y - half * s, "upper": y + half * s}
    studies = pd.DataFrame(known | {"weight": weight / weight.sum()}).assign(what="study", group=group)
    rows = [{str(name): value for name, value in row.items()} for row in studies.to_dict("records")]
    rows.append(_pooled("pooled", group, "", found))
    new = {"lower": found.new_lower, "upper": found.new_upper, "se": np.nan}
    rows.append(_pooled("new study", group, "", found) | new)
    if y.size > 2:
        rows += [
            _pooled("without", group, name, pooled_mean(np.delete(y, at), np.delete(s, at), probability=interval))
            for at, name in enumerate(names)
        ]
    return rows


def _pooled(what: str, group: str, source: str, found: PooledMean) -> dict[str, Any]:
    return {"what": what, "group": group, "source": source, "estimate": found.mean, **vars(found)}


def _summary(table: pd.DataFrame, units: str, interval: float) -> str:
    said = []
    for group, its in table.groupby("group", sort=False):
        mean, new = its[its["what"] == "pooled"].iloc[0], its[its["what"] == "new study"].iloc[0]
        line = f"{mean['estimate']:.3f} {units} [{mean['lower']:.3f}, {mean['upper']:.3f}]".replace("  ", " ")
        line += f" over {mean['n_studies']:.0f} studies" + f" ({group})" * (group != "all")
        if np.isfinite(new["lower"]):
            line += f"; a new study is expected in [{new['lower']:.3f}, {new['upper']:.3f}]"
        said.append(line)
    return (
        f"**The mean of the studies' true values is {'; '.join(said)}.** Intervals are {interval:.0%}. The table has "
        "the standard deviation of the true values (tau) and the mean without each study."
    )


def pool_figure(table: pd.DataFrame, units: str = "", study_name: str = "", interval: float = 0.9) -> Figure:
    """Every study with its interval, and below each group its pooled mean and where a new study would lie."""
    rows = table[table["what"] != "without"].copy()
    # with two studies nothing is known of a third
    rows = rows[np.isfinite(rows["lower"])]
    several = len(set(rows["group"])) > 1
    named = rows["what"] + (", " + rows["group"] if several else "")
    rows["label"] = rows["source"].where(rows["what"] == "study", named)
    rows["colour"] = rows["what"].map({"study": "#0072B2", "pooled": "black", "new study": "0.55"})
    rows["marker"] = rows["what"].map({"study": "o", "pooled": "D", "new study": "|"})
    series, title = [Series("estimate", "lower", "upper", marker=None)], "What do the studies say together?"
    look: dict[str, Any] = {"row_height": 0.3}
    return forest_figure(
        rows, series, f"{units or 'estimate'}, {interval:.0%} interval", title, study_name, zero=False, **look
    )
