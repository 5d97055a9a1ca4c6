"""Figures of ``+exp=tvd``, from its dataset alone."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from experiments.cloze.figures import colours, kernel_density, label
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.marks import named, titled
from inference.progress import counted

__all__ = ["FULL_BIN", "differences_figure", "full_panels", "reliability_figure", "tvd_figure"]

_GRID = np.linspace(0, 1, 201)
_GOLD_NAMES = {"corpus": "word of the text", "human": "people's majority", "oracle1": "majority of one half"}
FULL_BIN = 5
"""Contexts that a bin needs to be drawn."""


def tvd_figure(dataset: xr.Dataset, title: str = "Distance to people") -> Figure:
    """Draw densities over contexts of the TVD to half of the people, with means."""
    rows = dataset["tvd_to_oracle"].transpose("player", ...).to_numpy()
    values = dict(zip(map(str, dataset["player"].to_numpy()), rows, strict=True))
    shown = {name: own[~np.isnan(own)] for name, own in values.items()}
    shown = {name: own for name, own in shown.items() if len(own) > 1}
    palette = colours(list(shown))
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 0.75 + 0.62 * len(shown))
        axes = fig.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for ax, (player, own) in zip(axes, shown.items(), strict=True):
            density = kernel_density(own, _GRID)
            ax.fill_between(_GRID, density, color=palette[player], alpha=0.3, linewidth=0)
            ax.plot(_GRID, density, color=palette[player])
            ax.axvline(own.mean(), color=palette[player], linestyle="--", linewidth=1)
            ax.set_yticks([])
            ax.spines["left"].set_visible(False)
            ax.set_ylim(0, None)
            ax.set_xlim(0, 1)
            ax.tick_params(axis="x", length=0 if ax is not axes[-1] else 3.5)
            text = f"{label(player)}\nmean {own.mean():.2f}, {counted(len(own), 'context')}"
            ax.text(1.01, 0.35, text, transform=ax.transAxes, fontsize=8, va="center")
        axes[-1].set_xlabel("distance (TVD) to one half of the people, density over contexts; dashed: mean")
        axes[0].set_title(title)
    return fig


def differences_figure(dataset: xr.Dataset, title: str = "") -> Figure | None:
    """Draw histograms over contexts of a model's TVD to half of the people minus that of the other half.

    Right of zero the model is farther from people than people are. Figure 9 of "Predict the Next Word".
    """
    rows = dataset["tvd_to_oracle"].transpose("player", ...).to_numpy()
    names = list(map(str, dataset["player"].to_numpy()))
    values = {name: own[~np.isnan(own)] for name, own in zip(names[1:], rows[1:] - rows[0], strict=True)}
    shown = {name: own for name, own in values.items() if len(own) > 1}
    if not shown:
        return None
    palette = colours(names)
    low = min(-0.25, *(float(own.min()) for own in shown.values()))
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 0.9 + 0.62 * len(shown))
        axes = fig.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for ax, (player, own) in zip(axes, shown.items(), strict=True):
            ax.hist(own, bins=np.linspace(-1, 1, 81).tolist(), color=palette[player], alpha=0.6)
            ax.axvline(0, color="0.3", linewidth=0.8)
            ax.axvline(own.mean(), color=palette[player], linestyle="--", linewidth=1)
            ax.set_yticks([])
            ax.spines["left"].set_visible(False)
            ax.set_xlim(low, 1)
            ax.tick_params(axis="x", length=0 if ax is not axes[-1] else 3.5)
            text = f"{label(player)}\nmean {own.mean():+.2f}, farther in {(own > 0).mean():.0%}"
            ax.text(1.01, 0.35, text, transform=ax.transAxes, fontsize=8, va="center")
        axes[-1].set_xlabel("TVD of the model minus TVD of the other half of the people\n(contexts; dashed: mean)")
        axes[0].set_title(title or "How much farther from one half of the people a model is than the other half")
    return fig


def full_panels(dataset: xr.Dataset) -> list[str]:
    """Gold labels for which a bin of some player holds enough contexts to be drawn."""
    enough = (dataset["n_in_bin"] >= FULL_BIN).any([dim for dim in dataset["n_in_bin"].dims if dim != "gold"])
    return [str(gold) for gold in dataset["gold"].to_numpy()[enough.to_numpy()]]


def reliability_figure(dataset: xr.Dataset, study_name: str = "") -> Figure:
    """Draw reliability diagrams of the most probable word, one panel a gold label of :func:`full_panels`."""
    players = [str(name) for name in dataset["player"].to_numpy()]
    palette = colours(players)
    with mpl.rc_context(STYLE):
        golds = full_panels(dataset)
        fig = new_figure(0.9 + 2.5 * len(golds), 3.7)
        axes = fig.subplots(1, len(golds), sharey=True, squeeze=False)[0]
        for ax, gold in zip(axes, golds, strict=True):
            panel = dataset.sel(gold=gold)
            ax.plot([0, 1], [0, 1], color="0.55", linewidth=0.8, linestyle="--")
            for player in players:
                own = panel.sel(player=player)
                full = own["n_in_bin"].to_numpy() >= FULL_BIN
                if own["n_in_bin"].any():
                    confidence, accuracy = own["confidence"].to_numpy()[full], own["accuracy"].to_numpy()[full]
                    ax.plot(
                        confidence, accuracy, marker="o", markersize=3.5, color=palette[player], label=label(player)
                    )
            # room for half a point at the ends
            ax.set_xlim(-0.02, 1.02)
            ax.set_ylim(-0.02, 1.02)
            ax.set_aspect("equal")
            ax.set_title(f"right is the {_GOLD_NAMES[gold]}" if gold != "human" else f"right is {_GOLD_NAMES[gold]}")
            ax.set_xlabel("confidence of the top word")
        axes[0].set_ylabel("share correct")
        named(fig, axes[0].get_legend_handles_labels()[0], 4)
        title = f"How often a player's most probable word is right, bins of {FULL_BIN} contexts or more"
        titled(fig, title, study_name)
    return fig
