"""Figures of ``+exp=ard``, from its table and dataset alone."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.harness.figures import STYLE, new_figure
from experiments.harness.marks import arms, curve, mark, named, number_ticks, titled
from experiments.harness.settings import rows_of

__all__ = [
    "FIT_COLOURS",
    "FIT_LABELS",
    "ard_checks_figure",
    "ard_coefficients_figure",
    "ard_predictors_figure",
    "predictor_label",
]

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


def ard_coefficients_figure(
    table: pd.DataFrame, *, interval: float = 0.9, about: str = "", main: str = "main"
) -> Figure:
    """Draw the change of the TVD for one sd of each predictor, and the scale of each coefficient, by fit."""
    fits = list(dict.fromkeys(table["fit"]))
    names = list(dict.fromkeys(table["predictor"]))
    with_scale = table["scale"].notna().any()
    with mpl.rc_context(STYLE):
        fig = new_figure(7.4, 1.5 + 0.2 * len(names) * (len(fits) + 1))
        panels = fig.subplots(
            1, 2 if with_scale else 1, sharey=True, squeeze=False, width_ratios=[1.5, 1][: 1 + with_scale]
        )
        left = panels[0, 0]
        left.axvline(0, color="0.55", linewidth=0.8)
        for number, fit in enumerate(fits):
            colour = FIT_COLOURS[number % len(FIT_COLOURS)]
            for row in rows_of(table[table["fit"] == fit]):
                at = _height(names, row.predictor, number, len(fits))
                wide = 2.2 if fit == "main" else 1.2
                left.plot([row.effect_tvd_lower, row.effect_tvd_upper], [at, at], color=colour, linewidth=wide)
                left.plot(row.effect_tvd, at, "o", color=colour, markersize=5 if fit == "main" else 3.5)
                if with_scale and np.isfinite(row.scale):
                    right = panels[0, 1]
                    # scales of a Gaussian are in units of the TVD
                    unit = 4 if row.unit == "TVD per sd" else 1
                    right.plot([row.scale_lower * unit, row.scale_upper * unit], [at, at], color=colour, linewidth=wide)
                    right.plot(row.scale * unit, at, "o", color=colour, markersize=5 if fit == "main" else 3.5)
        left.set_yticks([-number for number in range(len(names))], [predictor_label(name) for name in names])
        left.tick_params(axis="y", length=0)
        left.set_ylim(-len(names) + 0.45, 0.55)
        left.set_xlabel("change of the expected TVD for one sd")
        left.set_title("a  Effect of each predictor")
        for boundary in range(1, len(names)):
            for axes in panels[0]:
                axes.axhline(0.5 - boundary, color="0.9", linewidth=0.7)
        if with_scale:
            right = panels[0, 1]
            right.set_xscale("log")
            low, high = right.get_xlim()
            number_ticks(right.xaxis, _scale_ticks(low, high))
            right.tick_params(axis="y", length=0)
            right.set_xlabel("scale of the coefficient (log-odds)")
            right.set_title("b  Relevance scale")
        handles = [
            mark(main if fit == "main" else FIT_LABELS.get(fit, fit), FIT_COLOURS[n % len(FIT_COLOURS)], "o", line="-")
            for n, fit in enumerate(fits)
        ]
        named(fig, handles)
        titled(fig, f"What the TVD depends on: medians, {interval:.0%} intervals", about)
    return fig


def _scale_ticks(low: float, high: float) -> list[float]:
    """Two ticks or more of a log axis, where it is not too short for that."""
    few = [tick for tick in (0.001, 0.01, 0.03, 0.1, 0.3, 1, 3, 10) if low <= tick <= high]
    many = [digit * 10.0**power for power in (-3, -2, -1, 0, 1) for digit in (1, 1.5, 2, 3, 4, 5, 7)]
    return few if len(few) > 1 else [tick for tick in many if low <= tick <= high]


def _height(names: list[str], name: str, number: int, n_fits: int) -> float:
    return -names.index(name) + 0.34 - 0.68 * (number + 0.5) / n_fits


def ard_predictors_figure(
    dataset: xr.Dataset, *, interval: float = 0.9, about: str = "", line: str = "posterior median"
) -> Figure:
    """Draw each predictor against the TVD, with the regression's curve (figures 4 to 7 of the paper)."""
    names = [str(name) for name in dataset["predictor"].to_numpy()]
    n_columns = 2 if len(names) > 1 else 1
    n_rows = -(-len(names) // n_columns)
    with mpl.rc_context(STYLE):
        fig = new_figure(7.0, 0.9 + 2.5 * n_rows)
        grid = fig.subplots(n_rows, n_columns, sharey=True, squeeze=False)
        for k, (axes, name) in enumerate(zip(grid.flat, names, strict=False)):
            values = dataset["predictor_value"].to_numpy()[:, k]
            axes.scatter(values, dataset["target"], s=5, color="0.55", alpha=0.45, linewidths=0, rasterized=True)
            curve(axes, dataset["curve_at"][k], dataset["curve_tvd"][k], _CURVE, alpha=0.3, linewidth=2)
            axes.set_xlabel(predictor_label(name, unit=True))
            axes.set_ylim(-0.02, 1.02)
            if k % n_columns == 0:
                axes.set_ylabel("TVD to people")
            axes.set_title(f"{chr(97 + k)}  {predictor_label(name)}")
        for axes in list(grid.flat)[len(names) :]:
            axes.set_visible(False)
        line += f", {interval:.0%} band" if dataset.sizes["quantile"] == 3 else ""
        line += "; the other predictors at their means"
        named(fig, [mark("a context", "0.55", "o", markersize=3), mark(line, _CURVE, linewidth=2)])
        titled(fig, "TVD against each predictor", about)
    return fig


def ard_checks_figure(dataset: xr.Dataset, *, interval: float = 0.9, about: str = "") -> Figure:
    """Draw posterior predictive checks: distribution of the targets, and means of the texts."""
    with mpl.rc_context(STYLE):
        fig = new_figure(7.4, 3.6)
        left, right = fig.subplots(1, 2, width_ratios=(1.2, 1))
        at = dataset["bin"].to_numpy()
        left.bar(at, dataset["observed_share"], width=0.046, color="0.8")
        low, middle, high = dataset["predicted_share"].to_numpy()
        look = {"fmt": "o", "color": _CURVE, "markersize": 3, "linewidth": 1}
        left.errorbar(at, middle, yerr=arms(low, middle, high), **look)
        left.set_xlabel("TVD to people")
        left.set_ylabel("share of the contexts")
        left.set_title("a  All contexts")
        order = np.argsort(dataset["text_mean"].to_numpy(), kind="stable")
        low, middle, high = dataset["predicted_text_mean"].to_numpy()[:, order]
        places = np.arange(order.size)
        right.errorbar(places, middle, yerr=arms(low, middle, high), **look)
        right.plot(places, dataset["text_mean"].to_numpy()[order], "_", color="black", markersize=8)
        right.set_xticks(
            places if order.size <= 20 else [], dataset["text"].to_numpy()[order] if order.size <= 20 else []
        )
        right.set_xlabel("text, by its mean")
        right.set_ylabel("mean TVD to people")
        right.set_title("b  Texts")
        everything = Patch(color="0.8", label="observed, all contexts")
        a_text = mark("observed, mean of a text", "black", "_", markersize=8)
        named(fig, [everything, a_text, mark(f"predicted, {interval:.0%} interval", _CURVE, "o", line="-")])
        titled(fig, "TVD, observed and predicted", about)
    return fig
