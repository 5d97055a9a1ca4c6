"""Figures of the accuracy experiment, each from the table or the dataset alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, MultipleLocator

from shannon_game.experiments.guesses.accuracy.players import model_label
from shannon_game.experiments.harness.figures import Series, forest, new_figure
from shannon_game.experiments.harness.marks import curve, mark, named, number_ticks, percent, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import one_panel
from shannon_game.experiments.harness.settings import rows_of

_HUMAN, _MODEL, _POSTERIOR, _PLAYED = "#000000", "#D55E00", "#0072B2", "#CC79A7"
_TITLES = {"visible": "Visible tokens", "word": "Word tokens"}
_BIN = 0.02


@styled
def accuracy_figure(
    table: pd.DataFrame, study_name: str = "", *, min_answers: int = 50, interval: float = 0.95
) -> Figure:
    """Figures 1 and 2 of the paper: participants as a histogram, language models above it on the same axis."""
    kinds = [kind for kind in _TITLES if ((table["kind"] == "participant") & (table["tokens"] == kind)).any()]
    n_models = max(int(((table["kind"] == "model") & (table["tokens"] == kind)).sum()) for kind in kinds)
    height = 0.35 + 0.21 * n_models
    fig = new_figure(4.0 * len(kinds) + 0.4, 3.1 + height)
    grid = fig.subplots(2, len(kinds), sharex=True, sharey="row", squeeze=False, height_ratios=(height, 2.3))
    highest = 0.0
    for column, kind in enumerate(kinds):
        top, bottom = grid[:, column]
        shown = table[table["tokens"] == kind]
        _models(top, shown[shown["kind"] == "model"], n_models)
        highest = max(highest, _histogram(bottom, shown, min_answers))
        top.set_title(f"{'ab'[column]}  {_TITLES[kind]}" if len(kinds) > 1 else _TITLES[kind])
        bottom.set_xlabel("top-1 accuracy")
    # as many models a column as there are; the limit is shared
    grid[0, 0].set_ylim(n_models - 0.4, -0.6)
    grid[1, 0].set(xlim=(0, max(0.72, highest + 0.1)), ylabel="participants")
    percent(grid[1, 0].xaxis)
    # every tenth would run into the next panel's
    grid[1, 0].xaxis.set_major_locator(MultipleLocator(0.2))
    grid[1, 0].xaxis.set_minor_locator(MultipleLocator(0.1))
    people = Patch(facecolor="0.55", label=f"participants with {min_answers} guesses or more")
    pooled = mark(f"their guesses pooled, {interval:.0%} bootstrap", _HUMAN, line=(0, (4, 2)))
    named(fig, [people, pooled, *_model_handles(table[table["kind"] == "model"], interval)], 2)
    titled(fig, "Who guesses the next token", study_name)
    return fig


def _models(axes: Axes, models: pd.DataFrame, n_models: int) -> None:
    """Draw language models with their names beside them, the best on top."""
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.tick_params(which="both", left=False, bottom=False, labelleft=False)
    for at, row in enumerate(rows_of(models.sort_values("accuracy", ascending=False))):
        colour, known = _model_colour(row), np.isfinite(row.lower)
        if known:
            axes.plot([row.lower, row.upper], [at, at], color=colour, linewidth=1.2, solid_capstyle="butt")
        axes.plot(row.accuracy, at, "o", markersize=4, color=colour, markerfacecolor=colour if known else "white")
        right = row.upper + 0.008 if known else row.accuracy + 0.012
        axes.text(right, at, model_label(row.name), va="center", fontsize=7.5)
    if models.empty:
        axes.text(0.5, n_models / 2, "no language model", ha="center", va="center", color="0.4", fontsize=8)


def _model_colour(row: Any) -> str:
    return _PLAYED if row.source == "played" else _MODEL


def _model_lines(axes: Axes, models: pd.DataFrame) -> None:
    for row in rows_of(models):
        axes.axvline(row.accuracy, color=_model_colour(row), linewidth=0.6, alpha=0.55)


def _histogram(axes: Axes, shown: pd.DataFrame, min_answers: int) -> float:
    """Draw participants' accuracies over lines for models and everybody together; return the highest."""
    people = shown[(shown["kind"] == "participant") & (shown["n_guesses"] >= min_answers)]
    accuracy = people["accuracy"].to_numpy(dtype=float)
    highest = float(accuracy.max()) if accuracy.size else 0.0
    edges = np.arange(0, max(highest, 0.6) + 2 * _BIN, _BIN).tolist()
    # a share such as 0.3 can lie a hair below the edge that it should be on
    axes.hist(accuracy + 1e-9, bins=edges, color="0.55", edgecolor="white", linewidth=0.5)
    _model_lines(axes, shown[shown["kind"] == "model"])
    for row in rows_of(shown[(shown["kind"] == "pooled") & (shown["name"] == "enough answers")]):
        axes.axvspan(row.lower, row.upper, color=_HUMAN, alpha=0.10, linewidth=0)
        axes.axvline(row.accuracy, color=_HUMAN, linewidth=1.3, linestyle=(0, (4, 2)))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if not accuracy.size:
        axes.set_ylim(0, 1)
        axes.text(0.02, 0.5, "nobody has so many guesses", transform=axes.transAxes, color="0.3", fontsize=8.5)
    return highest


def _model_handles(models: pd.DataFrame, probability: float) -> list[Any]:
    interval = f"{probability:.0%}"
    handles: list[Any] = []
    published = models["source"] != "played"
    for shown, colour, hollow, label in (
        (published & models["lower"].notna(), _MODEL, False, f"published model, {interval} (Wilson)"),
        (models["lower"].isna(), _MODEL, True, "published model, number of guesses unknown"),
        (~published, _PLAYED, False, f"model played here, {interval} bootstrap"),
    ):
        if shown.any():
            handles.append(mark(label, colour, "o", hollow=hollow, line="" if hollow else "-"))
    if len(models):
        handles.append(mark("a model's accuracy, beside the participants", _MODEL, linewidth=0.6, alpha=0.55))
    return handles


@styled
def participants_figure(table: pd.DataFrame, study_name: str = "", *, interval: float = 0.95) -> Figure:
    """Posterior of every participant with enough answers, beside the raw share; language models as lines."""
    own = table[(table["kind"] == "participant") & table["p_best"].notna()].sort_values("posterior_median")
    tokens = str(own["tokens"].iloc[0])
    models = table[(table["kind"] == "model") & (table["tokens"] == tokens)].sort_values("accuracy", ascending=False)
    best = table[(table["kind"] == "posterior") & (table["name"] == "best participant")]
    people = [f"{label}  ({n:,.0f})" for label, n in zip(own["label"], own["n_guesses"], strict=True)]
    rows = pd.concat(
        [
            best.assign(label="whoever is best", colour=_HUMAN, marker="D", accuracy=np.nan),
            own.assign(label=people)[::-1].assign(colour=_POSTERIOR, marker="o"),
        ]
    ).assign(group=["best", *own["kind"]])
    raw = Series("accuracy", label="raw share", colour="0.55", size=3.5, hollow=True)
    ends = ("posterior_median", "posterior_lower", "posterior_upper")
    posterior = Series(*ends, label=f"on fresh texts, {interval:.0%}", marker=None, size=3.5, capsize=0)
    height = 0.35 + 0.175 * max(len(models), 1)
    fig = new_figure(7.2, 1.7 + height + 0.19 * (len(own) + 3))
    top, axes = fig.subplots(2, 1, sharex=True, height_ratios=(height, 0.145 * (len(own) + 3) + 0.2))
    _models(top, models, len(models))
    top.set_ylim(max(len(models), 1) - 0.4, -0.6)
    forest(axes, rows, [raw, posterior])
    _model_lines(axes, models)
    axes.tick_params(axis="y", labelsize=6.5)
    axes.set(xlim=(0, max(0.72, float(own["posterior_upper"].max()) + 0.05)), ylabel="participant (guesses)")
    percent(axes.xaxis)
    axes.set_xlabel(f"top-1 accuracy, {_TITLES[tokens].lower()}")
    best_of = mark(f"best of them, {interval:.0%}", _HUMAN, "D", line="-")
    people_of = [posterior.handle(colour=_POSTERIOR), raw.handle(), best_of]
    named(fig, [*people_of, *_model_handles(models, interval)], 2)
    who = "" if (own["label"] == own["name"]).all() else "; table.csv says who is who"
    titled(fig, f"Participants beside language models{who}", study_name)
    return fig


def practice_figure(dataset: xr.Dataset, study_name: str = "", *, interval: float = 0.95) -> Figure:
    """Accuracy by practice: raw, and at equal contexts where there is a posterior."""
    start, end = dataset["practice_n_from"].to_numpy(), dataset["practice_n_to"].to_numpy()
    x, n = np.sqrt((start + 10) * (end + 11.0)) - 10, dataset["practice_n_guesses"]
    with one_panel(4.8, 3.9, "What changes as people go on", study_name, grid=None) as (fig, axes):
        axes.plot(x, dataset["practice_accuracy"], color="0.5", linewidth=0.8, zorder=2)
        sizes = 12 + 60 * n / float(n.max())
        axes.scatter(x, dataset["practice_accuracy"], s=sizes, facecolor="white", edgecolor="0.3", zorder=4)
        handles = [mark("raw share (area: guesses)", "0.3", "o", hollow=True, line="-", markersize=6)]
        if "population_curve" in dataset:
            curve(axes, dataset["guesses"].to_numpy(), dataset["population_curve"], _POSTERIOR)
            handles.append(mark(f"posterior at equal contexts ({interval:.0%})", _POSTERIOR))
        # linear at first, logarithmic later
        axes.set_xscale("asinh", linear_width=10)
        number_ticks(axes.xaxis, [n for n in (0, 10, 30, 100, 300, 1000, 3000, 10_000) if n <= end.max() * 1.3])
        axes.set(xlabel="guesses given before", ylabel="top-1 accuracy")
        percent(axes.yaxis)
        named(fig, handles, 2)
    return fig
