"""Figures 2, 3, 8, 10, 14 and 15 of "Predict the Next Word", from distances of its authors' code or their files."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from shannon_game.experiments.cloze.figures import colours, kernel_density, label
from shannon_game.experiments.cloze.settings import ORACLE
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.papers.provo.appendices import FOLDS
from shannon_game.experiments.papers.provo.stored import Floats, StoredLists, single_numbers

_ORACLES = "cal_metrics_oracle/oracle{}_no_repl_dict/TVD_per_instance"
_TOKENS = "cal_metrics_bpe/TVD_per_instance/tvd_{}_human"
_NAMES = ("GPT-2", "half of the people", "the other half")
_HISTOGRAMS = {
    "oracles": (
        "Words: TVD to people (appendix A, figure 3); GPT-2 renormalised, to one half",
        ("cal_metrics_improved_model/0/tvd_biased", _ORACLES.format(1), _ORACLES.format(2)),
    ),
    "tokens": (
        "First tokens: TVD to people (appendix D, figure 10)",
        tuple(_TOKENS.format(name) for name in ("model", "oracle_dis_1", "oracle_dis_2")),
    ),
}
_IMPROVED = "cal_metrics_improved_model{}_{}/{}/tvd_unbiased"
_IN_FOLD = {"gpt2-ft": ("_fine_tuned", 0), "gpt2": ("", 0), ORACLE: ("_fine_tuned", 1)}
"""Player -> the part of its list's name before the fold, and the share of contexts that were replaced."""
_LOSS = re.compile(r"training_stats_test_(?P<fold>[^/]+)/(?P<epoch>\d+)/(?P<what>Training|Valid\.) Loss")
_GRID = np.linspace(0, 1, 201)
_COLOURS = ("#D55E00", "#0072B2", "#4A9BC8", "#009E73")


def appendix_figures(study: xr.Dataset) -> dict[str, Figure]:
    """Draw those of figures 3, 10, 14 and 15 that the stored files allow, by name."""
    stored, found = StoredLists(study), {}
    for name, (title, lists) in _HISTOGRAMS.items():
        if {*lists} <= {*stored.names}:
            found[name] = histogram_figure(dict(zip(_NAMES, map(stored.values, lists), strict=True)), title)
    folds = {
        f"passages {fold.replace('_', '-')}": {
            player: stored.values(_IMPROVED.format(before, fold, share)) for player, (before, share) in _IN_FOLD.items()
        }
        for fold in FOLDS
        if {_IMPROVED.format(before, fold, share) for before, share in _IN_FOLD.values()} <= {*stored.names}
    }
    if folds:
        said = {player: label(player).replace("half", "the other half") for player in _IN_FOLD}
        title = "Fine-tuning of GPT-2, passages left out (figure 14)"
        found["folds"] = densities_figure(folds, said, title, to="half\nof the people")
    losses = training_losses(study)
    return found | ({"training": training_figure(losses)} if losses else {})


@styled
def histogram_figure(
    values: Mapping[str, Floats], title: str, *, top: float = 1.0, xlabel: str = "distance (TVD) to people"
) -> Figure:
    """Draw histograms over contexts from 0 to `top`, over each other."""
    fig = new_figure(6.4, 3.2)
    axes = fig.add_subplot()
    for (name, own), colour in zip(values.items(), _COLOURS, strict=False):
        bins = np.linspace(0, top, 41).tolist()
        axes.hist(own, bins=bins, histtype="step", color=colour, label=f"{name}, mean {own.mean():#.3g}")
    axes.set(xlim=(0, top), xlabel=xlabel, ylabel="contexts")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    titled(fig, title)
    return fig


@styled
def densities_figure(
    panels: Mapping[str, Mapping[str, Floats]], said: Mapping[str, str], title: str, *, to: str = "people"
) -> Figure:
    """Draw densities over contexts of each player's TVD to people, over each other (figures 2 and 14)."""
    palette = colours(list(said))
    fig = new_figure(max(1.2 + 1.9 * len(panels), 5.5), 3.6)
    grid = fig.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (name, own) in zip(grid, panels.items(), strict=True):
        for player, values in own.items():
            axes.plot(_GRID, kernel_density(values, _GRID), color=palette[player])
        axes.set(title=name, xlim=(0, 1), xticks=(0, 0.5, 1), ylim=(0, None), xlabel=f"distance (TVD) to {to}")
    grid[0].set_ylabel("density over contexts")
    named(fig, [mark(text, palette[player]) for player, text in said.items()])
    titled(fig, title)
    return fig


def training_losses(study: xr.Dataset) -> dict[str, dict[str, Floats]]:
    """Read the losses of fine-tuning: by fold of passages, ``training`` and ``validation``, shape (epoch,)."""
    stored: dict[str, dict[str, dict[int, float]]] = {}
    for name, value in single_numbers(study).items():
        if match := _LOSS.fullmatch(name):
            what = "training" if match["what"] == "Training" else "validation"
            stored.setdefault(match["fold"], {}).setdefault(what, {})[int(match["epoch"])] = float(value)
    in_order = sorted(stored, key=lambda fold: int(re.match(r"\d*", fold)[0] or 0))  # type: ignore[index]
    return {
        fold: {what: np.array([losses[epoch] for epoch in sorted(losses)]) for what, losses in stored[fold].items()}
        for fold in in_order
    }


def last_losses(study: xr.Dataset) -> dict[str, float]:
    """Read the losses of fine-tuning after the last epoch (the ends of figure 15's curves), in nats per token."""
    return {
        f"loss/appendix F/{fold}/{what}, as stored": float(values[-1])
        for fold, losses in training_losses(study).items()
        for what, values in losses.items()
    }


@styled
def training_figure(losses: dict[str, dict[str, Floats]]) -> Figure:
    """Draw the losses by epoch, a panel per fold (figure 15)."""
    fig = new_figure(1.2 + 1.9 * len(losses), 3.1)
    grid = fig.subplots(1, len(losses), sharey=True, squeeze=False)[0]
    for axes, (fold, both) in zip(grid, losses.items(), strict=True):
        for (what, values), colour in zip(both.items(), _COLOURS, strict=False):
            axes.plot(np.arange(1, len(values) + 1), values, marker="o", markersize=3, color=colour, label=what)
        axes.set(title=f"passages {fold} left out", xlabel="epoch")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        light_grid(axes, "y")
    fig.axes[0].set_ylabel("loss, nats per token")
    fig.axes[-1].legend(loc="upper right")
    titled(fig, "Fine-tuning of GPT-2 (figure 15)")
    return fig
