"""Figures of the calibration experiment, from its table and dataset alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from shannon_game.experiments.comparison.calibration.table import TYPICAL, unusual
from shannon_game.experiments.harness.figures import Series, forest, new_figure
from shannon_game.experiments.harness.marks import curve, mark, named, number_ticks, percent, titled
from shannon_game.experiments.harness.plots import bars, styled
from shannon_game.experiments.harness.settings import rows_of

_CURVE, _UNUSUAL, _OBSERVED, _THIN, _BETA = "#0072B2", "#D55E00", "#000000", "0.72", "#C38700"
_DASHED = (0, (4, 2))
_LOWEST = ("llo_participant_curve", "game_participant_curve", "point_frequency", "point_weighted_frequency")
_READINGS = (
    ("llo", "", "a  Which token was in the text?", "true"),
    ("game", "weighted_", "b  Which is better? (answers weighted)", "better"),
)


@styled
def reliability_figure(dataset: xr.Dataset, study_name: str = "", interval: float = 0.9) -> Figure:
    """How often the favoured token is true, by what was reported for it; and allowing for how the other was drawn."""
    fig = new_figure(7.4, 4.3)
    left, right = fig.subplots(1, 2, sharey=True)
    odd = _odd(dataset)
    # a curve below one half is worth seeing, the empty space below the lowest is not
    lowest = min(np.floor(10 * float(dataset[name].min().item()) - 0.2) / 10 for name in _LOWEST)
    count = dataset["point_count"].to_numpy()
    look = {"facecolor": "white", "edgecolor": _OBSERVED, "linewidth": 1.1, "zorder": 4, "clip_on": False}
    for axes, (name, points, title, asked) in zip((left, right), _READINGS, strict=True):
        _curves(axes, dataset, name, odd)
        at = dataset[f"point_{points}report"], dataset[f"point_{points}frequency"]
        axes.scatter(*at, s=12 + 130 * count / count.max(), **look)
        axes.set(title=title, xlabel="report for the favoured token", ylabel=f"favoured token is the {asked} one")
        axes.set(xlim=(0.49, 1.0), ylim=(max(min(lowest, 0.4), 0.0), 1.0))
        for axis in (axes.xaxis, axes.yaxis):
            percent(axis)
    # above the curve that it may lie on
    left.plot(dataset["report"], dataset["beta_curve"].isel(quantile=1), color=_BETA, linestyle=_DASHED, zorder=5)
    right.yaxis.set_tick_params(labelleft=True)
    handles = [
        mark(f"typical participant, {interval:.0%} band", _CURVE, linewidth=2),
        mark("another family of curves (beta), in a", _BETA, line=_DASHED),
        mark("each participant (partially pooled)", _THIN, linewidth=0.8),
        *([mark("unusual (see report)", _UNUSUAL, linewidth=1)] if odd else []),
        mark(f"answers, by area ({count.min():.0f} to {count.max():.0f})", _OBSERVED, "o", hollow=True),
        mark("calibrated", "0.35", line=":"),
    ]
    # three columns would be wider than the panels
    named(fig, handles, 2)
    titled(fig, "Reliability of the participants' reports", study_name)
    return fig


def _curves(axes: Axes, dataset: xr.Dataset, name: str, odd: set[str]) -> None:
    report = dataset["report"].to_numpy()
    axes.plot([0.5, 1], [0.5, 1], color="0.35", linestyle=":", linewidth=1.2, zorder=2)
    people, lines = dataset["curve_participant"].to_numpy(), dataset[f"{name}_participant_curve"].to_numpy()
    for who, line in zip(people, lines, strict=True):
        is_odd = who in odd
        axes.plot(report, line, color=_UNUSUAL if is_odd else _THIN, linewidth=1 if is_odd else 0.7, zorder=1 + is_odd)
    curve(axes, report, dataset[f"{name}_curve"], _CURVE, linewidth=2)


def _odd(dataset: xr.Dataset) -> set[str]:
    names = ("bias_nats_median", "bias_nats_lower", "bias_nats_upper", "share_ends")
    values = {name: dataset[name].to_numpy() for name in names}
    return set(unusual(pd.DataFrame({"participant": dataset["row"].to_numpy(), **values}))["participant"])


_PANELS = (
    # estimate, title, truth, reference line
    ("calibration_slope", "reliability slope", None, 1.0),
    ("slope", "slope of reports", None, None),
    ("bias_nats", "bias (nats)", "true_bias_nats", 0.0),
    ("noise_nats", "noise (nats)", "true_noise_nats", None),
    ("lapse", "lapse rate", "true_lapse", None),
)


@styled
def participants_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Every participant's slope of the reliability curve, and bias, slope, noise and lapse rate of the reports."""
    own = table[table["participant"] != TYPICAL].sort_values("slope_median", ascending=False)
    odd = set(unusual(table)["participant"])
    rows = own.assign(colour=np.where(own["participant"].isin(odd), _UNUSUAL, _CURVE))
    fig = new_figure(8.6, 1.9 + 0.19 * (len(own) + 1))
    panels = fig.subplots(1, len(_PANELS), sharey=True)
    for axes, (name, title, truth, reference) in zip(panels, _PANELS, strict=True):
        if reference is not None:
            axes.axvline(reference, color="0.35", linestyle=":", linewidth=1)
        low, high = table.iloc[0][[f"{name}_lower", f"{name}_upper"]]
        if np.isfinite(low):
            axes.axvspan(low, high, color="0.9", linewidth=0, zorder=0)
        truths = [Series(truth, marker="x", colour=_OBSERVED, size=4.5)] if truth else []
        height = forest(axes, rows, [_estimates(name), *truths])
        axes.set_title(title)
        if name in {"slope", "noise_nats"}:
            axes.set_xscale("log")
            low, high = axes.get_xlim()
            number_ticks(axes.xaxis, [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low <= t <= high])
        if name == "bias_nats":
            _off_scale(axes, own, height, odd)
    panels[-1].set_xlim(left=0)
    percent(panels[-1].xaxis)
    panels[0].tick_params(axis="y", labelsize=7.5)
    panels[0].set_ylabel("participant, by slope of reports")
    handles: list[Any] = [_estimates("slope", f"median, {interval:.0%} interval").handle(colour=_CURVE)]
    handles.append(Patch(facecolor="0.9", label="typical participant"))
    if odd:
        handles.append(_estimates("slope", "unusual (see report)").handle(colour=_UNUSUAL))
    if own["true_noise_nats"].notna().any():
        handles.append(mark("truth of the simulation", _OBSERVED, "x"))
    named(fig, handles, 4)
    named_so = (own["label"] == own["participant"]).all()
    titled(fig, "How participants differ" + ("" if named_so else "; table.csv says who is who"), study_name)
    return fig


def _estimates(name: str, label: str = "") -> Series:
    return Series(f"{name}_median", f"{name}_lower", f"{name}_upper", label=label, size=3.2, capsize=0, linewidth=1.1)


def _off_scale(axes: Axes, own: pd.DataFrame, height: NDArray[np.float64], odd: set[str]) -> None:
    """Let the usual participants fill the axis; an unusual bias beyond it is written at the edge."""
    usual = own[~own["participant"].isin(odd)]
    shown = usual if len(usual) else own
    reach = 1.25 * float(np.abs(shown[["bias_nats_lower", "bias_nats_upper"]].to_numpy()).max())
    axes.set_xlim(-reach, reach)
    look: dict[str, Any] = {"va": "center", "fontsize": 7, "color": _UNUSUAL, "backgroundcolor": "white"}
    for row, at in zip(rows_of(own), height, strict=True):
        value = f"{row.bias_nats_median:.1f} [{row.bias_nats_lower:.1f}, {row.bias_nats_upper:.1f}]"
        if row.bias_nats_median > reach:
            axes.text(reach, at, f"{value} \N{RIGHTWARDS ARROW}", ha="right", **look)
        elif row.bias_nats_median < -reach:
            axes.text(-reach, at, f"\N{LEFTWARDS ARROW} {value}", ha="left", **look)


@styled
def reports_figure(dataset: xr.Dataset, study_name: str = "", interval: float = 0.9) -> Figure:
    """Posterior predictive check: the share of every report, and of the ends of the scale by participant."""
    fig = new_figure(7.4, 3.7)
    left, right = fig.subplots(1, 2, width_ratios=(1.5, 1))
    observed, box = dataset["observed_share"].to_numpy(), dataset["box"].to_numpy()
    at = np.arange(observed.size)
    left.bar(at, observed, width=0.75, color="0.8", zorder=1)
    bars(left, at, *dataset["predicted_share"].to_numpy(), color=_CURVE, capsize=3, zorder=3)
    left.set_xticks(at, [f"{100 * each:.0f}" for each in box], rotation=45 if observed.size > 14 else 0)
    left.set(xlabel="report for the true token (%)", ylabel="share of the answers", title="a  All participants")
    top = dataset["participant_share"].isel(box=-1).to_numpy()
    order = np.argsort(top, kind="stable")
    people = np.arange(top.size)
    predicted = dataset["participant_predicted_share"].isel(box=-1).to_numpy()[:, order]
    bars(right, people, *predicted, color=_CURVE, markersize=3, linewidth=0.9, capsize=0, zorder=2)
    right.plot(people, top[order], marker="_", color=_OBSERVED, linestyle="", markersize=7, zorder=3)
    right.set_xticks([])
    right.set_xlabel(f"participants, by their share of {box[-1]:.0%}")
    right.set(ylabel="share of the participant's answers", title=f"b  Share of {box[-1]:.0%} by participant")
    for axes in (left, right):
        percent(axes.yaxis)
    handles = [
        Patch(facecolor="0.8", label="observed, all"),
        mark("observed, each participant", _OBSERVED, "_", markersize=8),
        mark(f"predicted by the model, {interval:.0%} interval", _CURVE, "o", line="-"),
    ]
    named(fig, handles)
    titled(fig, "Reports, observed and predicted", study_name)
    return fig
