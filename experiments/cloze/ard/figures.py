"""Figures of ``+exp=ard``, from its table and dataset alone."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter
from omegaconf import DictConfig

from experiments.cloze.ard.settings import LadderStep
from experiments.cloze.settings import label
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.settings import rows_of

__all__ = ["FIT_LABELS", "PREDICTOR_LABELS", "checks", "coefficients", "conclusion", "legacy_bars", "predictors"]

PREDICTOR_LABELS = {
    "human_entropy": "human entropy",
    "model_entropy": "model entropy",
    "oracle_tvd": "TVD between oracles",
    "context_length": "context length",
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
_FIT_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#000000")
_STEP_COLOURS = {
    "human_entropy": "#D55E00",
    "model_entropy": "#0072B2",
    "oracle_tvd": "#009E73",
    "context_length": "#999999",
}
_STEP_LABELS = {
    "standardised": "paper's data,\nstandardised",
    "shared": "clean words,\nshared oracle",
    "resplit": "all splits,\nsame people",
    "disjoint": "other people",
    "main": "measurement error,\nbeta, texts (PyMC)",
}
_CURVE = "#0072B2"


def predictor_label(name: str, *, unit: bool = False) -> str:
    """Name of a predictor for a reader."""
    text = PREDICTOR_LABELS.get(name, name.replace("_", " "))
    return f"{text} ({_UNITS[name]})" if unit and name in _UNITS else text


def _title(cfg: DictConfig, what: str) -> str:
    players = cfg.players if cfg.players is not None else []
    names = [players] if isinstance(players, str) else [str(name) for name in players]
    who = ", ".join(label(name) for name in names) or "all models"
    return f"{what} ({who}, {cfg.study.name})"


def coefficients(table: pd.DataFrame, cfg: DictConfig) -> Figure:
    """Change of the TVD for one standard deviation of each predictor, and the scale of each coefficient, by fit."""
    bayes = table[table["engine"] == "PyMC"]
    fits = list(dict.fromkeys(bayes["fit"]))
    names = list(dict.fromkeys(bayes["predictor"]))
    with_scale = bayes["scale"].notna().any()
    with mpl.rc_context(STYLE):
        fig = new_figure(7.4, 1.5 + 0.17 * len(names) * (len(fits) + 1))
        panels = fig.subplots(
            1, 2 if with_scale else 1, sharey=True, squeeze=False, width_ratios=[1.5, 1][: 1 + with_scale]
        )
        left = panels[0, 0]
        left.axvline(0, color="0.6", linewidth=0.8)
        for number, fit in enumerate(fits):
            colour = _FIT_COLOURS[number % len(_FIT_COLOURS)]
            for row in rows_of(bayes[bayes["fit"] == fit]):
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
            right.xaxis.set_major_locator(
                FixedLocator([t for t in (0.001, 0.01, 0.03, 0.1, 0.3, 1, 3, 10) if low <= t <= high])
            )
            right.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            right.xaxis.set_minor_formatter(NullFormatter())
            right.tick_params(axis="y", length=0)
            right.set_xlabel("scale of the coefficient (log-odds)")
            right.set_title("b  Relevance scale")
        handles = [
            Line2D(
                [], [], color=_FIT_COLOURS[n % len(_FIT_COLOURS)], marker="o", markersize=4, label=_fit_label(fit, cfg)
            )
            for n, fit in enumerate(fits)
        ]
        fig.legend(handles=handles, loc="outside lower center", ncols=min(3, len(handles)))
        interval = f"{cfg.experiment.interval:.0%}"
        fig.suptitle(
            _title(cfg, f"What the TVD depends on: medians, {interval} intervals"), x=0.01, ha="left", fontsize=10.5
        )
    return fig


def _fit_label(fit: str, cfg: DictConfig) -> str:
    if fit != "main":
        return FIT_LABELS.get(fit, fit)
    return f"main: {FIT_LABELS[cfg.experiment.prior]}, {FIT_LABELS[cfg.experiment.likelihood]}"


def _height(names: list[str], name: str, number: int, n_fits: int) -> float:
    return -names.index(name) + 0.34 - 0.68 * (number + 0.5) / n_fits


def predictors(dataset: xr.Dataset, cfg: DictConfig) -> Figure:
    """Each predictor against the TVD, with the regression's curve (figures 4 to 7 of the paper)."""
    names = [str(name) for name in dataset["predictor"].to_numpy()]
    n_columns = 2 if len(names) > 1 else 1
    n_rows = -(-len(names) // n_columns)
    with mpl.rc_context(STYLE):
        fig = new_figure(7.0, 0.9 + 2.5 * n_rows)
        grid = fig.subplots(n_rows, n_columns, sharey=True, squeeze=False)
        for k, (axes, name) in enumerate(zip(grid.flat, names, strict=False)):
            values = dataset["predictor_value"].to_numpy()[:, k]
            axes.scatter(values, dataset["target"], s=5, color="0.55", alpha=0.45, linewidths=0, rasterized=True)
            _curve(axes, dataset, k)
            axes.set_xlabel(predictor_label(name, unit=True))
            axes.set_ylim(-0.02, 1.02)
            if k % n_columns == 0:
                axes.set_ylabel("TVD to people")
            axes.set_title(f"{chr(97 + k)}  {predictor_label(name)}")
        for axes in list(grid.flat)[len(names) :]:
            axes.set_visible(False)
        legacy = cfg.experiment.mode == "legacy"
        line = "scikit-learn's line" if legacy else f"posterior median, {cfg.experiment.interval:.0%} band"
        fig.legend(
            handles=[
                Line2D([], [], color="0.55", marker="o", markersize=3, linestyle="", label="a context"),
                Line2D([], [], color=_CURVE, linewidth=2, label=f"{line}; the other predictors at their means"),
            ],
            loc="outside lower center",
            ncols=2,
        )
        fig.suptitle(_title(cfg, "TVD against each predictor"), x=0.01, ha="left", fontsize=10.5)
    return fig


def _curve(axes: Axes, dataset: xr.Dataset, k: int) -> None:
    if "curve_at" in dataset:
        at = dataset["curve_at"].to_numpy()[k]
        low, middle, high = dataset["curve_tvd"].to_numpy()[k]
        axes.fill_between(at, low, high, color=_CURVE, alpha=0.3, linewidth=0, zorder=3)
        axes.plot(at, middle, color=_CURVE, linewidth=2, zorder=4)
        return
    values = dataset["predictor_value"].to_numpy()
    slope = dataset["coefficient"].to_numpy()[0]
    at = np.array([values[:, k].min(), values[:, k].max()])
    others = float(values.mean(axis=0) @ slope) - values[:, k].mean() * slope[k]
    axes.plot(at, float(dataset["intercept"][0]) + others + slope[k] * at, color=_CURVE, linewidth=2, zorder=4)


def conclusion(table: pd.DataFrame, steps: list[LadderStep], cfg: DictConfig) -> Figure:
    """Size of every predictor's effect from the paper's regression to the clean one, step by step."""
    shown = [step.name for step in steps if step.standardised] + ["main"]
    rows = table[table["fit"].isin(shown) & table["effect_tvd"].notna()]
    names = list(dict.fromkeys(rows["predictor"]))
    free = iter(_FIT_COLOURS[3:])
    colour = {name: _STEP_COLOURS.get(name) or next(free) for name in names}
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 3.9)
        axes = fig.subplots()
        axes.axhline(0, color="0.6", linewidth=0.8)
        for number, name in enumerate(names):
            own = rows[rows["predictor"] == name].set_index("fit").loc[shown]
            at = np.arange(len(shown)) + 0.16 * (number - (len(names) - 1) / 2)
            axes.vlines(at, own["effect_tvd_lower"], own["effect_tvd_upper"], color=colour[name], linewidth=1.6)
            axes.plot(at, own["effect_tvd"], "o", color=colour[name], markersize=5, label=predictor_label(name))
        axes.set_xticks(range(len(shown)), [_STEP_LABELS.get(name, name) for name in shown])
        axes.tick_params(axis="x", length=0)
        for boundary in range(1, len(shown)):
            axes.axvline(boundary - 0.5, color="0.92", linewidth=0.8)
        axes.set_ylabel("change of the TVD for one sd")
        fig.legend(loc="outside lower center", ncols=len(names))
        fig.suptitle(
            _title(cfg, f"From the paper's regression to a clean one, {cfg.experiment.interval:.0%} intervals"),
            x=0.01,
            ha="left",
            fontsize=10.5,
        )
    return fig


def checks(dataset: xr.Dataset, cfg: DictConfig) -> Figure:
    """Posterior predictive checks: distribution of the targets, and means of the texts."""
    with mpl.rc_context(STYLE):
        fig = new_figure(7.4, 3.6)
        left, right = fig.subplots(1, 2, width_ratios=(1.2, 1))
        at = dataset["bin"].to_numpy()
        left.bar(at, dataset["observed_share"], width=0.046, color="0.8")
        low, middle, high = dataset["predicted_share"].to_numpy()
        arms = np.stack([middle - low, high - middle])
        left.errorbar(at, middle, yerr=arms, fmt="o", color=_CURVE, markersize=3, linewidth=1)
        left.set_xlabel("TVD to people")
        left.set_ylabel("share of the contexts")
        left.set_title("a  All contexts")
        order = np.argsort(dataset["text_mean"].to_numpy(), kind="stable")
        low, middle, high = dataset["predicted_text_mean"].to_numpy()[:, order]
        places = np.arange(order.size)
        right.errorbar(
            places,
            middle,
            yerr=np.stack([middle - low, high - middle]),
            fmt="o",
            color=_CURVE,
            markersize=3,
            linewidth=1,
        )
        right.plot(places, dataset["text_mean"].to_numpy()[order], "_", color="black", markersize=8)
        right.set_xticks(
            places if order.size <= 20 else [], dataset["text"].to_numpy()[order] if order.size <= 20 else []
        )
        right.set_xlabel("text, by its mean")
        right.set_ylabel("mean TVD to people")
        right.set_title("b  Texts")
        fig.legend(
            handles=[
                Patch(color="0.8", label="observed, all contexts"),
                Line2D([], [], color="black", marker="_", linestyle="", markersize=8, label="observed, mean of a text"),
                Line2D(
                    [],
                    [],
                    color=_CURVE,
                    marker="o",
                    markersize=3,
                    label=f"predicted, {cfg.experiment.interval:.0%} interval",
                ),
            ],
            loc="outside lower center",
            ncols=3,
        )
        fig.suptitle(_title(cfg, "TVD, observed and predicted"), x=0.01, ha="left", fontsize=10.5)
    return fig


def legacy_bars(table: pd.DataFrame, cfg: DictConfig) -> Figure:
    """Coefficients with the paper's bars and with posterior standard deviations, in units and standardised."""
    names = list(dict.fromkeys(table["predictor"]))
    steps = list(dict.fromkeys(table["fit"]))
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 3.5)
        panels = fig.subplots(1, len(steps), squeeze=False)[0]
        titles = {"legacy": "a  Per unit of each predictor", "standardised": "b  Per standard deviation"}
        for axes, step in zip(panels, steps, strict=True):
            own = table[table["fit"] == step].set_index("predictor").loc[names]
            at = np.arange(len(names))
            axes.axhline(0, color="0.6", linewidth=0.8)
            axes.errorbar(
                at - 0.1,
                own["coefficient"],
                yerr=own["published_bar"],
                fmt="s",
                color="#D55E00",
                markersize=4,
                capsize=3,
            )
            arms = np.stack([own["coefficient"] - own["lower"], own["upper"] - own["coefficient"]])
            axes.errorbar(at + 0.1, own["coefficient"], yerr=arms, fmt="o", color=_CURVE, markersize=4, capsize=3)
            if own["published"].notna().any():
                axes.plot(at + 0.26, own["published"], "x", color="black", markersize=5)
            axes.set_xticks(at, [predictor_label(name).replace(" ", "\n", 1) for name in names], fontsize=8)
            axes.set_title(titles.get(step, step))
        panels[0].set_ylabel("coefficient")
        fig.legend(
            handles=[
                Line2D([], [], color="#D55E00", marker="s", markersize=4, label="2 / lambda, the paper's bars"),
                Line2D(
                    [],
                    [],
                    color=_CURVE,
                    marker="o",
                    markersize=4,
                    label=f"{cfg.experiment.interval:.0%} posterior interval",
                ),
                Line2D([], [], color="black", marker="x", linestyle="", label="published"),
            ],
            loc="outside lower center",
            ncols=3,
        )
        fig.suptitle(
            _title(cfg, "scikit-learn's ARD regression, the paper's settings"), x=0.01, ha="left", fontsize=10.5
        )
    return fig
