"""Figures of the calibration experiment, from its table and dataset alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from shannon_game.experiments.comparison.calibration.table import TYPICAL
from shannon_game.experiments.harness.figures import Series, forest, new_figure
from shannon_game.experiments.harness.marks import curve, mark, named, percent, titled
from shannon_game.experiments.harness.plots import styled

_CURVE, _OBSERVED, _THIN, _BETA = "#0072B2", "#000000", "0.72", "#C38700"
_DASHED = (0, (4, 2))
_LOWEST = ("llo_participant_curve", "game_participant_curve", "point_frequency", "point_weighted_frequency")
_READINGS = (
    ("llo", "", "Was it the text's?"),
    ("game", "weighted_", "Weighted answers"),
)


@styled
def reliability_figure(dataset: xr.Dataset, study_name: str = "", interval: float = 0.9) -> Figure:
    """How often the favoured option is true, by what was reported for it; and allowing for how the other was drawn."""
    fig = new_figure(4.5, 4.0)
    readings = [each for each in _READINGS if f"{each[0]}_curve" in dataset]
    left, *_ = panels = fig.subplots(1, len(readings), sharey=True, squeeze=False)[0]
    # a curve below one half is worth seeing, the empty space below the lowest is not
    lowest = min(np.floor(10 * dataset[name].to_numpy().min() - 0.2) / 10 for name in _LOWEST if name in dataset)
    bottom = max(min(lowest, 0.4), 0.0)
    count = dataset["point_count"].to_numpy()
    look = {"facecolor": "white", "edgecolor": _OBSERVED, "linewidth": 1.1, "zorder": 4, "clip_on": False}
    for axes, (name, points, title) in zip(panels, readings, strict=True):
        _curves(axes, dataset, name)
        at = dataset[f"point_{points}report"], dataset[f"point_{points}frequency"]
        axes.scatter(*at, s=12 + 130 * count / count.max(), **look)
        axes.set(
            title=title * (len(panels) > 1), xlabel="report, favoured option", xlim=(0.49, 1.0), ylim=(bottom, 1.0)
        )
        for axis in (axes.xaxis, axes.yaxis):
            percent(axis)
    # above the curve that it may lie on
    left.plot(dataset["report"], dataset["beta_curve"].isel(quantile=1), color=_BETA, linestyle=_DASHED, zorder=5)
    left.set_ylabel("favoured option is right")
    handles = [
        mark(f"typical participant, {interval:.0%} band", _CURVE, linewidth=2),
        mark("beta curve", _BETA, line=_DASHED),
        mark("a participant", _THIN, linewidth=0.8),
        mark("answers, area: number", _OBSERVED, "o", hollow=True),
        mark("calibrated", "0.35", line=":"),
    ]
    # three columns would be wider than the panels
    named(fig, handles, 3)
    titled(fig, "What is a reported probability worth?", study_name)
    return fig


def _curves(axes: Axes, dataset: xr.Dataset, name: str) -> None:
    report = dataset["report"].to_numpy()
    axes.plot([0.5, 1], [0.5, 1], color="0.35", linestyle=":", linewidth=1.2, zorder=2)
    lines = dataset[f"{name}_participant_curve"].to_numpy()
    axes.plot(report, lines.T, color=_THIN, linewidth=0.7, zorder=1)
    curve(axes, report, dataset[f"{name}_curve"], _CURVE, linewidth=2)


_PANELS = (
    # estimate, title, calibrated
    ("calibration_slope", "slope, as true", 1.0),
    ("calibration_bias_nats", "bias, as true (nats)", 0.0),
    ("game_slope", "slope, as better", 1.0),
    ("game_bias_nats", "bias, as better (nats)", 0.0),
)


@styled
def participants_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Every participant's slope and bias of the reliability curve, in both readings."""
    own = table[table["participant"] != TYPICAL].sort_values("calibration_slope_median", ascending=False)
    rows = own.assign(colour=_CURVE)
    fig = new_figure(8.6, 1.9 + 0.19 * (len(own) + 1))
    shown = [each for each in _PANELS if f"{each[0]}_median" in table]
    panels = fig.subplots(1, len(shown), sharey=True)
    for axes, (name, title, calibrated) in zip(panels, shown, strict=True):
        axes.axvline(calibrated, color="0.35", linestyle=":", linewidth=1)
        axes.axvspan(*table.iloc[0][[f"{name}_lower", f"{name}_upper"]], color="0.9", linewidth=0, zorder=0)
        forest(axes, rows, [_estimates(name)])
        axes.set_title(title)
    panels[0].tick_params(axis="y", labelsize=7.5)
    panels[0].set_ylabel("participant, by slope")
    handles = [
        _estimates("calibration_slope", f"median, {interval:.0%} interval").handle(colour=_CURVE),
        Patch(facecolor="0.9", label="typical participant"),
        mark("calibrated", "0.35", line=":"),
    ]
    named(fig, handles, 3)
    named_so = (own["label"] == own["participant"]).all()
    titled(fig, "How participants differ" + ("" if named_so else "; table.csv says who is who"), study_name)
    return fig


def _estimates(name: str, label: str = "") -> Series:
    return Series(f"{name}_median", f"{name}_lower", f"{name}_upper", label=label, size=3.2, capsize=0, linewidth=1.1)
