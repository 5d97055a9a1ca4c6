"""Figures of ``+exp=tvd``, from its dataset alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.documents.clusters import wilson_interval
from shannon_game.experiments.cloze.figures import colours, kernel_density, label
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import mark, named, titled
from shannon_game.experiments.harness.plots import diagonal, styled, without_y
from shannon_game.inference.progress import counted

_GRID = np.linspace(0, 1, 201)
_GOLD_NAMES = {"corpus": "word of the text", "human": "people's majority", "oracle1": "majority of one half"}
FULL_BIN = 5
"""Contexts that a bin needs to be drawn."""


def tvd_figure(dataset: xr.Dataset, about: str = "") -> Figure:
    """Draw densities over contexts of the TVD, the column of that name, with means."""
    shown = _known(dataset, dataset["tvd"].transpose("player", ...).to_numpy())
    said = {name: f"{own.mean():.2f}, {counted(len(own), 'context')}" for name, own in shown.items()}

    def density(axes: Axes, own: FloatArray, colour: str) -> None:
        height = kernel_density(own, _GRID)
        axes.fill_between(_GRID, height, color=colour, alpha=0.3, linewidth=0)
        axes.plot(_GRID, height, color=colour)

    figure = _player_panels(
        dataset, shown, density, said, low=0.0, title="How far are models' words from people's?", about=about
    )
    figure.axes[-1].set_xlabel("TVD to people\n(dashed: mean of contexts)")
    return figure


def differences_figure(dataset: xr.Dataset, title: str = "") -> Figure | None:
    """Draw histograms over contexts of a model's TVD to half of the people minus that of the other half (figure 9)."""
    distance = dataset["tvd_to_oracle"].transpose("player", ...).to_numpy()
    shown = _known(dataset, np.concatenate([np.full_like(distance[:1], np.nan), distance[1:] - distance[0]]))
    if not shown:
        return None
    said = {name: f"mean {own.mean():+.2f}, farther in {(own > 0).mean():.0%}" for name, own in shown.items()}

    def histogram(axes: Axes, own: FloatArray, colour: str) -> None:
        axes.hist(own, bins=np.linspace(-1, 1, 81).tolist(), color=colour, alpha=0.6)
        axes.axvline(0, color="0.3", linewidth=0.8)

    low = min(-0.25, *(float(own.min()) for own in shown.values()))
    title = title or "How much farther are models than other people?"
    figure = _player_panels(dataset, shown, histogram, said, low=low, title=title)
    figure.axes[-1].set_xlabel("TVD to half of the people,\nmodel minus other half\n(dashed: mean of contexts)")
    return figure


def _known(dataset: xr.Dataset, rows: FloatArray) -> dict[str, FloatArray]:
    """Known values of each player that has two or more."""
    values = zip(map(str, dataset["player"].to_numpy()), rows, strict=True)
    known = {name: own[~np.isnan(own)] for name, own in values}
    return {name: own for name, own in known.items() if len(own) > 1}


@styled
def _player_panels(
    dataset: xr.Dataset,
    shown: Mapping[str, FloatArray],
    draw: Callable[[Axes, FloatArray, str], None],
    said: Mapping[str, str],
    *,
    low: float,
    title: str,
    about: str = "",
) -> Figure:
    """Draw a panel per player over one axis from `low` to 1, with its mean, its name and what is said of it."""
    palette = colours([str(name) for name in dataset["player"].to_numpy()])
    fig = new_figure(4.5, 0.9 + 0.62 * len(shown))
    axes = fig.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for ax, (player, own) in zip(axes, shown.items(), strict=True):
        draw(ax, own, palette[player])
        ax.axvline(own.mean(), color=palette[player], linestyle="--", linewidth=1)
        without_y(ax)
        ax.set_xlim(low, 1)
        ax.tick_params(axis="x", length=0 if ax is not axes[-1] else 3.5)
        ax.text(1.01, 0.35, f"{label(player)}\n{said[player]}", transform=ax.transAxes, fontsize=9.5, va="center")
    titled(fig, title, about)
    return fig


def full_panels(dataset: xr.Dataset) -> list[str]:
    """Gold labels for which a bin of some player holds enough contexts to be drawn."""
    enough = (dataset["n_in_bin"] >= FULL_BIN).any([dim for dim in dataset["n_in_bin"].dims if dim != "gold"])
    return [str(gold) for gold in dataset["gold"].to_numpy()[enough.to_numpy()]]


@styled
def reliability_figure(dataset: xr.Dataset, study_name: str = "") -> Figure:
    """Draw reliability diagrams of the most probable word, one panel a gold label of :func:`full_panels`."""
    players = [str(name) for name in dataset["player"].to_numpy()]
    palette, golds = colours(players), full_panels(dataset)
    fig = new_figure(0.9 + 2.5 * len(golds), 3.7)
    axes = fig.subplots(1, len(golds), sharey=True, squeeze=False)[0]
    for ax, gold in zip(axes, golds, strict=True):
        diagonal(ax, margin=0.02)
        for player in players:
            own = dataset.sel(gold=gold, player=player)
            own = own.isel(bin=own["n_in_bin"].to_numpy() >= FULL_BIN)
            x, share, n = (own[name].to_numpy() for name in ("confidence", "accuracy", "n_in_bin"))
            ends = wilson_interval(share * n, n, probability=0.9)
            ax.vlines(x, *ends, color=palette[player], alpha=0.35, linewidth=1)
            ax.plot(x, share, color=palette[player])
            ax.scatter(x, share, s=4 * n**0.4, color=palette[player], zorder=3)
        ax.set_title(f"right is {'' if gold == 'human' else 'the '}{_GOLD_NAMES[gold]}")
        ax.set_xlabel("confidence of the top word")
    axes[0].set_ylabel("share correct")
    named(fig, [mark(label(player), palette[player], "o", line="-") for player in players], 4)
    counts = f"bins of {FULL_BIN} contexts or more, larger with more; 90% intervals"
    titled(fig, f"How often a player's most probable word is right: {counts}", study_name)
    return fig
