"""``+exp=reproduce experiment.of=ranks``: what the thesis on rank-based perplexity prints beside our numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from scipy import stats

from shannon_game.estimators.arrays import BoolArray, FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.papers.published_study import decimals, parse_select
from shannon_game.experiments.rankings.ranks.experiment import ranks, token_scores
from shannon_game.experiments.rankings.ranks.settings import RanksSettings
from shannon_game.experiments.rankings.windows import scores_by_window

PUBLISHED = Path(__file__).with_name("rank_perplexity_published.csv")
"""What the author's own workbooks store, at the precision of print, and the few numbers that only the text has."""

MODELS = ("gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4o")
"""In the thesis's order."""

_COLUMNS = (
    *("place", "text", "context_length", "window", "model", "quantity"),
    *("published", "decimals", "ours", "difference", "agrees", "unrounded", "source"),
)
_KEY = ["text", "context_length", "window", "model"]
_QUANTITIES = ["linear", "reciprocal", "perplexity", "exponential_01", "exponential_03", "average"]
_FITTED = ("average", "perplexity")
_OUTLIERS = 3


class RanksPublishedSettings(RanksSettings):
    """Settings of :func:`ranks_published`: those of ``ranks``."""

    posterior: bool = False
    """Fit the regression, too (extra bayes)."""


@experiment(RanksPublishedSettings)
def ranks_published(study: xr.Dataset, settings: RanksPublishedSettings) -> ExperimentResult:
    """Do what ``ranks`` does, and put every number that the thesis prints beside ours."""
    if study.attrs.get("name") != "rank_perplexity" or set(study["part"].to_numpy()) != {"main", "repeats"}:
        raise InputError("is not the whole of the thesis's: study=rank_perplexity study.part=all", field="study")
    table = compare_with_published(scores_by_window(study, token_scores(study, settings)))
    result = ranks(study, settings)
    outliers = _outliers(table)

    said = f"{_said(table)}\n\n{_said_of_outliers(outliers)}\n\n{result.text}"
    return replace(result, text=said, tables={**result.tables, "published": table, "outliers": outliers})


def as_printed(value: ArrayLike, decimals: ArrayLike) -> FloatArray:
    """Round as the thesis does: halves up (0.705 is 0.71), also where a float falls short of the half by a hair."""
    scale = 10.0 ** np.asarray(decimals)
    scaled = np.asarray(value, dtype=float) * scale
    rounded: FloatArray = np.floor(scaled + 0.5 + 1e-9) / scale
    return rounded


def read_published() -> pd.DataFrame:
    """Read the printed values by place, text, length, window, model and quantity; what does not apply is empty."""
    rows = pd.read_csv(PUBLISHED, dtype=str, keep_default_na=False)
    table = pd.DataFrame([parse_select(text) for text in rows["select"]])
    return table.assign(
        context_length=pd.to_numeric(table["context_length"]).astype("Int64"),
        printed=rows["printed"].astype(float),
        decimals=rows["printed"].map(decimals),
        source=rows["source"],
    )


def compare_with_published(windows: pd.DataFrame) -> pd.DataFrame:
    """Put every printed number beside ours."""
    printed = read_published().rename(columns={"printed": "published"})
    ours = windows.melt(["part", *_KEY], _QUANTITIES, var_name="quantity", value_name="ours").drop(columns="part")
    ours["context_length"] = ours["context_length"].astype("Int64")
    cells = printed[printed["context_length"].notna()].merge(ours, on=[*_KEY, "quantity"], how="inner")
    main = cells[cells["place"] == "tables 1-2"]
    spread = printed[printed["context_length"].isna()].assign(ours=_statistics(windows, main))
    table = pd.concat([cells, _appendix_c(main), spread], ignore_index=True)
    table["difference"] = table["ours"] - table["published"]
    rounded = as_printed(table["ours"].to_numpy(dtype=float), table["decimals"].to_numpy(dtype=int))
    published = as_printed(table["published"].to_numpy(dtype=float), table["decimals"].to_numpy(dtype=int))
    table["agrees"] = np.isclose(rounded, published, rtol=0, atol=1e-9)
    return table[list(_COLUMNS)]


def outliers_by_rule(length: FloatArray, value: FloatArray, spread: float) -> dict[str, BoolArray]:
    """Say by every rule which of some values are outliers."""
    off_mean, off_median = np.abs(value - value.mean()), np.abs(value - np.median(value))
    off_line = np.abs(value - np.polyval(np.polyfit(length, value, 1), length))
    # a rounding error is no residual
    off_line[off_line < 1e-9 * np.abs(value).max()] = 0
    sd = value.std(ddof=1)
    # 1.4826 makes it a standard deviation where values are normal
    mad = 1.4826 * np.median(off_median)
    residual_sd = np.sqrt((off_line**2).sum() / max(len(value) - 2, 1))
    low, high = np.quantile(value, [0.25, 0.75])
    return {
        "more than 1 standard deviation from the mean": off_mean > sd,
        "more than 1.5 standard deviations from the mean": off_mean > 1.5 * sd,
        "more than 2 standard deviations from the mean": off_mean > 2 * sd,
        "more than 2 median absolute deviations from the median": off_median > 2 * mad,
        "more than 3 median absolute deviations from the median": off_median > 3 * mad,
        "outside the fences of a box plot": (value < 2.5 * low - 1.5 * high) | (value > 2.5 * high - 1.5 * low),
        "more than 1 residual standard deviation from the line": off_line > residual_sd,
        "more than 2 residual standard deviations from the line": off_line > 2 * residual_sd,
        "more than 1 standard deviation of the repeats from the mean": off_mean > spread,
        "more than 2 standard deviations of the repeats from the mean": off_mean > 2 * spread,
        "more than 1 standard deviation of the repeats from the line": off_line > spread,
    }


def outlier_counts(cells: pd.DataFrame, spread: Mapping[str, float]) -> pd.DataFrame:
    """Count lengths that are outliers, by rule, score and text; a length's value is the mean over the models."""
    means = cells.groupby(["quantity", "text", "context_length"], sort=False)["value"].mean()
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for quantity, its_spread in spread.items():
        for text, values in means[quantity].groupby(level="text", sort=False):
            length = values.index.get_level_values("context_length").to_numpy(dtype=float)
            for rule, found in outliers_by_rule(length, values.to_numpy(dtype=float), its_spread).items():
                of_rule = counts.setdefault((rule, quantity), {"n_lengths": len(values)})
                of_rule[str(text)] = int(found.sum())
    return pd.DataFrame([{"rule": rule, "quantity": quantity, **its} for (rule, quantity), its in counts.items()])


def _outliers(table: pd.DataFrame) -> pd.DataFrame:
    main = table[table["place"] == "tables 1-2"]
    sds = table[table["place"] == "repeats"].set_index("quantity")["ours"]
    return outlier_counts(main.assign(value=main["ours"]), {name: float(sds[f"sd_{name}"]) for name in _FITTED})


def _said_of_outliers(outliers: pd.DataFrame) -> str:
    texts = [name for name in outliers if str(name).startswith("text ")]
    like = outliers[(outliers[texts] == _OUTLIERS).all(axis=1)]
    rules = "; ".join(f"{row.rule} ({row.quantity})" for row in rows_of(like)) or "none"
    return (
        f"The thesis calls {_OUTLIERS} of the 8 lengths outliers in each text, by a rule that is not public. Of "
        f"{outliers['rule'].nunique()} common rules (`outliers.csv`) these give that count in both: {rules}."
    )


def _statistics(windows: pd.DataFrame, main: pd.DataFrame) -> list[float]:
    """Ours for the rows that only the thesis's text has, in their order."""
    printed = read_published()
    rows = printed[printed["context_length"].isna()]
    fits = fit_lines(main.assign(value=main["published"]))
    pooled = fits[(fits["text"] == "") & (fits["quantity"] == "perplexity")].set_index("model")
    of_main = windows[windows["part"] == "main"]
    repeats = windows[windows["part"] == "repeats"]
    both = windows[windows["context_length"].isin(repeats["context_length"])]
    found = []
    for place, quantity, model in zip(rows["place"], rows["quantity"], rows["model"], strict=True):
        if place == "mean":
            found.append(of_main.loc[of_main["model"] == model, "perplexity"].mean())
        elif place.startswith("mean of "):
            mine = of_main["text"] == place.removeprefix("mean of ")
            found.append(of_main.loc[mine, quantity.removeprefix("mean_")].mean())
        elif quantity.startswith("sd_"):
            group = repeats if place == "repeats" else both
            found.append(group.groupby("model")[quantity.removeprefix("sd_")].std(ddof=1).mean())
        else:
            found.append(pooled.loc[model, quantity.removesuffix("_perplexity")])
    return [float(value) for value in found]


def _appendix_c(main: pd.DataFrame) -> pd.DataFrame:
    """Slopes, their standard errors and p-values on the printed cells, on ours rounded alike, and on ours."""
    rounded = as_printed(main["ours"].to_numpy(dtype=float), main["decimals"].to_numpy(dtype=int))
    keys = ["text", "model", "quantity"]
    fits = [
        fit_lines(main.assign(value=value)).melt(
            keys, ["slope", "slope_se", "p_value"], var_name="what", value_name=column
        )
        for column, value in (("published", main["published"]), ("ours", rounded), ("unrounded", main["ours"]))
    ]
    table = fits[0].merge(fits[1], on=[*keys, "what"]).merge(fits[2], on=[*keys, "what"])
    return table.assign(
        place=np.where(table["text"] == "", "appendix C, both texts", "appendix C"),
        quantity=table["what"] + "_" + table["quantity"],
        context_length=pd.array([pd.NA] * len(table), dtype="Int64"),
        window="main",
        decimals=12,
        source="least squares on the printed cells, as the thesis says",
    ).drop(columns="what")


def fit_lines(cells: pd.DataFrame) -> pd.DataFrame:
    """Ordinary least squares of ``value`` on the raw length by model, quantity and text; both texts pooled are ""."""
    rows = []
    keys = ["text", "model", "quantity"]
    for key, mine in pd.concat([cells, cells.assign(text="")]).groupby(keys, sort=False):
        fit = stats.linregress(mine["context_length"].to_numpy(dtype=float), mine["value"].to_numpy(dtype=float))
        found = {"slope": float(fit.slope), "slope_se": float(fit.stderr), "p_value": float(fit.pvalue)}
        rows.append(dict(zip(keys, key, strict=True)) | found)
    return pd.DataFrame(rows)


def _said(table: pd.DataFrame) -> str:
    cells = table[table["context_length"].notna()]
    in_tables = cells[cells["place"].str.startswith("tables")]
    in_appendix = cells[cells["place"].isin(["appendix A", "appendix B"])]
    wrong = rows_of(in_appendix[~in_appendix["agrees"]])
    text = (
        f"**{int(in_tables['agrees'].sum())} of {len(in_tables)} cells of tables 1-4 and "
        f"{int(in_appendix['agrees'].sum())} of {len(in_appendix)} of appendices A and B agree** at printed precision "
        "(`published.csv`)."
    )
    places = sorted({f"{row.place}, length {row.context_length}, {row.quantity}" for row in wrong})
    return f"{text} The others: {'; '.join(places)}." if wrong else text
