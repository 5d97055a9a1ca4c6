"""Figures of ``+exp=ard_legacy`` and ``+exp=ard_conclusion``, from their tables alone."""

from __future__ import annotations

import textwrap

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shannon_game.experiments.cloze.ard.figures import FIT_COLOURS, predictor_label
from shannon_game.experiments.harness.figures import STYLE, new_figure
from shannon_game.experiments.harness.marks import arms, mark, named, titled

__all__ = ["ard_conclusion_figure", "ard_legacy_figure"]

_STEP_COLOURS = {
    "human_entropy": "#D55E00",
    "model_entropy": "#0072B2",
    "oracle_tvd": "#009E73",
    "context_length": "#939393",
}
_STEP_LABELS = {
    "standardised": "paper's data,\nstandardised",
    "shared": "clean words,\nhalf of people\nin both",
    "resplit": "all splits,\nsame people",
    "disjoint": "other people",
    "main": "measurement\nerror, beta,\ntexts (PyMC)",
}


def ard_conclusion_figure(table: pd.DataFrame, *, interval: float = 0.9, about: str = "") -> Figure:
    """Draw the size of every predictor's effect from the paper's regression to the clean one, step by step."""
    shown = [name for name in _STEP_LABELS if name in set(table["fit"])]
    rows = table[table["fit"].isin(shown) & table["effect_tvd"].notna()]
    names = list(dict.fromkeys(rows["predictor"]))
    free = iter(FIT_COLOURS[3:])
    colour = {name: _STEP_COLOURS.get(name) or next(free) for name in names}
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 3.9)
        axes = fig.subplots()
        axes.axhline(0, color="0.55", linewidth=0.8)
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
        fig.legend(loc="outside lower center", ncols=2)
        titled(fig, f"From the paper's regression to a clean one, {interval:.0%} intervals", about)
    return fig


def ard_legacy_figure(table: pd.DataFrame, *, interval: float = 0.9, about: str = "") -> Figure:
    """Draw coefficients with the paper's bars and with posterior standard deviations, in units and standardised."""
    names = list(dict.fromkeys(table["predictor"]))
    steps = list(dict.fromkeys(table["fit"]))
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 3.5)
        panels = fig.subplots(1, len(steps), squeeze=False)[0]
        titles = {"legacy": "a  Per unit of each predictor", "standardised": "b  Per standard deviation"}
        for axes, step in zip(panels, steps, strict=True):
            own = table[table["fit"] == step].set_index("predictor").loc[names]
            at = np.arange(len(names))
            axes.axhline(0, color="0.55", linewidth=0.8)
            middle, look = own["coefficient"], {"markersize": 4, "capsize": 3}
            axes.errorbar(at - 0.1, middle, yerr=own["published_bar"], fmt="s", color="#D55E00", **look)
            bars = arms(own["lower"], middle, own["upper"])
            axes.errorbar(at + 0.1, middle, yerr=bars, fmt="o", color=FIT_COLOURS[0], **look)
            if own["published"].notna().any():
                axes.plot(at + 0.26, own["published"], "x", color="black", markersize=5)
            axes.set_xticks(at, [textwrap.fill(predictor_label(name), 10) for name in names], fontsize=8)
            axes.set_title(titles.get(step, step))
        panels[0].set_ylabel("coefficient")
        paper = mark("the paper's bars: 2 / lambda, twice the prior's variance", "#D55E00", "s", line="-")
        ours = mark(f"{interval:.0%} posterior interval", FIT_COLOURS[0], "o", line="-")
        named(fig, [paper, ours, mark("published", "black", "x", markersize=6)], 2)
        titled(fig, "scikit-learn's ARD regression, the paper's settings", about)
    return fig
