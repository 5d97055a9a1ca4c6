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
from shannon_game.experiments.harness.plots import forest_figure, styled
from shannon_game.experiments.harness.questions import one_panel
from shannon_game.experiments.harness.settings import rows_of

_HUMAN, _MODEL, _POSTERIOR, _PLAYED = "#000000", "#D55E00", "#0072B2", "#CC79A7"
_TITLES = {"visible": "Visible tokens", "word": "Word tokens"}
_BIN = 0.02


@styled
def accuracy_figure(
    table: pd.DataFrame, study_name: str = "", *, min_answers: int = 50, interval: float = 0.9
) -> Figure:
    """Figures 1 and 2 of the paper: participants as a histogram, language models above it on the same axis."""
    kinds = [kind for kind in _TITLES if ((table["kind"] == "participant") & (table["tokens"] == kind)).any()]
    models = _model_rows(table)
    height = 0.35 + 0.21 * max(int((models["tokens"] == kind).sum()) for kind in kinds)
    fig = new_figure(3.8 * len(kinds) + 0.4, 3.1 + height)
    grid = fig.subplots(2, len(kinds), sharex=True, squeeze=False, height_ratios=(height, 2.3))
    highest = most = 0.0
    for (top, bottom), kind in zip(grid.T, kinds, strict=True):
        its = models[models["tokens"] == kind]
        top.spines[["left", "bottom"]].set_visible(False)
        top.tick_params(bottom=False, labelleft=bool(len(its)))
        if len(its):
            forest(top, its, [Series("accuracy", "lower", "upper", size=4, capsize=0, linewidth=1.2)])
        highest = max(highest, _histogram(bottom, table[table["tokens"] == kind], min_answers))
        top.set_title(_TITLES[kind])
        bottom.set_xlabel("top-1 accuracy")
        most = max(most, bottom.get_ylim()[1])
        bottom.sharey(grid[1, 0])
    grid[1, 0].set(xlim=(0, max(0.72, highest + 0.1)), ylim=(0, most), ylabel="participants")
    percent(grid[1, 0].xaxis)
    # every tenth would run into the next panel's
    grid[1, 0].xaxis.set_major_locator(MultipleLocator(0.2))
    people = Patch(facecolor="0.55", label=f"participants with {min_answers} guesses or more")
    pooled = mark(f"their guesses pooled, {interval:.0%} bootstrap", _HUMAN, line=(0, (4, 2)))
    named(fig, [people, pooled, *_model_handles(models, interval)], 2)
    titled(fig, "How often do people guess the next token?", study_name)
    return fig


def _model_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Language models, the best first, with their names and looks."""
    models = table[table["kind"] == "model"].sort_values("accuracy", ascending=False)
    colour = models["source"].eq("played").map({True: _PLAYED, False: _MODEL})
    return models.assign(label=models["name"].map(model_label), colour=colour, hollow=models["lower"].isna())


def _histogram(axes: Axes, shown: pd.DataFrame, min_answers: int) -> float:
    """Draw participants' accuracies beside that of everybody together; return the highest."""
    people = shown[(shown["kind"] == "participant") & (shown["n_guesses"] >= min_answers)]
    accuracy = people["accuracy"].to_numpy(dtype=float)
    highest = float(accuracy.max(initial=0.0))
    edges = np.arange(0, max(highest, 0.6) + 2 * _BIN, _BIN).tolist()
    # a share such as 0.3 can lie a hair below the edge that it should be on
    axes.hist(accuracy + 1e-9, bins=edges, color="0.55", edgecolor="white", linewidth=0.5)
    for row in rows_of(shown[(shown["kind"] == "pooled") & (shown["name"] == "enough answers")]):
        axes.axvspan(row.lower, row.upper, color=_HUMAN, alpha=0.10, linewidth=0)
        axes.axvline(row.accuracy, color=_HUMAN, linewidth=1.3, linestyle=(0, (4, 2)))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    if not accuracy.size:
        axes.set_ylim(0, 1)
        axes.text(0.02, 0.5, "nobody has so many guesses", transform=axes.transAxes, color="0.3", fontsize=8.5)
    return highest


def _model_handles(models: pd.DataFrame, interval: float) -> list[Any]:
    published, known = models["source"] != "played", models["lower"].notna()
    looks = [
        (published & known, _MODEL, False, f"published model, {interval:.0%} (Wilson)"),
        (~known, _MODEL, True, "published model, number of guesses unknown"),
        (~published, _PLAYED, False, f"model played here, {interval:.0%} bootstrap"),
    ]
    return [
        mark(label, colour, "o", hollow=hollow, line="" if hollow else "-")
        for shown, colour, hollow, label in looks
        if shown.any()
    ]


def participants_figure(table: pd.DataFrame, study_name: str = "", *, interval: float = 0.9) -> Figure:
    """Posterior of every participant with enough answers, beside the raw share; language models above them."""
    own = table[(table["kind"] == "participant") & table["p_best"].notna()]
    own = own.sort_values("posterior_median", ascending=False)
    tokens = str(own["tokens"].iloc[0])
    models = _model_rows(table[table["tokens"] == tokens])
    best = table[(table["kind"] == "posterior") & (table["name"] == "best participant")]
    people = [f"{label}  ({n:,.0f})" for label, n in zip(own["label"], own["n_guesses"], strict=True)]
    ends = ("posterior_median", "posterior_lower", "posterior_upper")
    of_models = dict(zip(ends, (models[name] for name in ("accuracy", "lower", "upper")), strict=True))
    rows = pd.concat(
        [
            models.assign(accuracy=np.nan, **of_models),
            best.assign(label="whoever is best", colour=_HUMAN, marker="D", accuracy=np.nan),
            own.assign(label=people, colour=_POSTERIOR),
        ]
    )
    rows = rows.assign(group=rows["kind"], marker=rows["marker"].fillna("o"), hollow=False)
    raw = Series("accuracy", label="raw share", colour="0.55", size=3.5, hollow=True)
    posterior = Series(*ends, label=f"on fresh texts, {interval:.0%}", marker=None, size=3.5, capsize=0)
    best_of = mark(f"best of them, {interval:.0%}", _HUMAN, "D", line="-")
    handles = [posterior.handle(colour=_POSTERIOR), raw.handle(), best_of, *_model_handles(models, interval)]
    who = "" if (own["label"] == own["name"]).all() else "; table.csv says who is who"
    fig = forest_figure(
        rows,
        [raw, posterior],
        f"top-1 accuracy, {_TITLES[tokens].lower()}",
        f"Participants (guesses) beside language models{who}",
        study_name,
        width=7.2,
        row_height=0.19,
        start=0,
        handles=handles,
        columns=2,
    )
    percent(fig.axes[0].xaxis)
    return fig


def practice_figure(dataset: xr.Dataset, study_name: str = "", *, interval: float = 0.9) -> Figure:
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
