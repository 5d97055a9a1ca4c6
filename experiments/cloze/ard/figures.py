"""Figures of ``+exp=ard``, from its table and dataset alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from shannon_game.experiments.harness.figures import Series, finite_range, forest, log_perplexity_axis, new_figure
from shannon_game.experiments.harness.marks import curve, mark, named, titled
from shannon_game.experiments.harness.plots import styled

_PREDICTOR_LABELS = {
    "human_entropy": "human entropy",
    "model_entropy": "model entropy",
    "oracle_tvd": "TVD between halves of people",
    "context_length": "context length",
    "word_num": "number of the word",
}
_UNITS = {"human_entropy": "nats", "model_entropy": "nats", "context_length": "words"}
FIT_LABELS = {
    "main": "main",
    "ard": "ARD prior",
    "horseshoe": "horseshoe",
    "normal": "wide normal prior",
    "beta": "beta",
    "logit_normal": "logit-normal",
    "gaussian": "Gaussian",
    "no_error": "no measurement error",
    "no_groups": "no group effects",
}
FIT_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#C38700", "#4A9BC8", "#939393", "#000000")
_CURVE = "#0072B2"


def predictor_label(name: str, *, unit: bool = False) -> str:
    """Name of a predictor for a reader."""
    text = _PREDICTOR_LABELS.get(name, name.replace("_", " "))
    return f"{text} ({_UNITS[name]})" if unit and name in _UNITS else text


@styled
def ard_coefficients_figure(
    table: pd.DataFrame, *, interval: float = 0.9, about: str = "", main: str = "main"
) -> Figure:
    """Draw the change of the TVD for one sd of each predictor, and the scale of each coefficient, by fit."""
    fits, names = list(dict.fromkeys(table["fit"])), list(dict.fromkeys(table["predictor"]))
    panels = [("effect_tvd", "change of the TVD per s.d.", "a  Effect")]
    if table["scale"].notna().any():
        panels.append(("scale", "expected size, log-odds", "b  Relevance"))
    columns = [f"{name}{end}" for name, _, _ in panels for end in ("", "_lower", "_upper")]
    # scales of a Gaussian are in units of the TVD
    unit = np.where(table["unit"] == "TVD per sd", 4, 1)
    table = table.assign(**{name: table[name] * unit for name in columns if name.startswith("scale")})
    wide = table.pivot_table(index="predictor", columns="fit", values=columns, dropna=False).loc[names]
    wide.columns = wide.columns.map(", ".join)
    wide = wide.assign(label=[predictor_label(name) for name in names])
    fig = new_figure(4.5, 1.4 + len(panels) * (0.7 + 0.17 * len(names) * (len(fits) + 1)))
    grid = fig.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axes, (column, xlabel, title) in zip(grid, panels, strict=True):
        series = [
            Series(
                *(f"{column}{end}, {fit}" for end in ("", "_lower", "_upper")),
                label=main if fit == "main" else FIT_LABELS.get(fit, fit),
                colour=FIT_COLOURS[number % len(FIT_COLOURS)],
                offset=0.34 - 0.68 * (number + 0.5) / len(fits),
                size=5 if fit == "main" else 3.5,
                linewidth=2.2 if fit == "main" else 1.2,
                capsize=0,
            )
            for number, fit in enumerate(fits)
        ]
        forest(axes, wide, series)
        if column == "scale":
            drawn = [wide[name] for each in series for name in (each.value, each.lower, each.upper) if name]
            log_perplexity_axis(axes, "x", *finite_range(*drawn), least=3)
        axes.set_xlabel(xlabel)
        axes.set_title(title)
        for boundary in range(1, len(names)):
            axes.axhline(0.5 - boundary, color="0.9", linewidth=0.7)
    grid[0].axvline(0, color="0.55", linewidth=0.8)
    if len(fits) > 1:
        named(fig, [each.handle() for each in series])
    titled(fig, "What does the distance depend on?", f"medians, {interval:.0%} intervals; {about}")
    return fig


@styled
def ard_predictors_figure(
    dataset: xr.Dataset, *, interval: float = 0.9, about: str = "", line: str = "posterior median"
) -> Figure:
    """Draw each predictor against the TVD, with the regression's curve (figures 4 to 7 of the paper)."""
    names = [str(name) for name in dataset["predictor"].to_numpy()]
    n_columns = 2 if len(names) > 1 else 1
    n_rows = -(-len(names) // n_columns)
    fig = new_figure(7.0, 0.9 + 2.5 * n_rows)
    grid = fig.subplots(n_rows, n_columns, sharey=True, squeeze=False)
    for k, (axes, name) in enumerate(zip(grid.flat, names, strict=False)):
        values = dataset["predictor_value"].to_numpy()[:, k]
        axes.scatter(values, dataset["target"], s=5, color="0.55", alpha=0.45, linewidths=0, rasterized=True)
        curve(axes, dataset["curve_at"][k], dataset["curve_tvd"][k], _CURVE, alpha=0.3, linewidth=2)
        axes.set(xlabel=predictor_label(name, unit=True), ylim=(-0.02, 1.02))
        axes.set_title(f"{chr(97 + k)}  {predictor_label(name)}")
    for axes in grid[:, 0]:
        axes.set_ylabel("TVD to people")
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    line += f", {interval:.0%} band" if dataset.sizes["quantile"] == 3 else ""
    line += "; the other predictors at their means"
    named(fig, [mark("a context", "0.55", "o", markersize=3), mark(line, _CURVE, linewidth=2)])
    titled(fig, "TVD against each predictor", about)
    return fig
