"""Loss curves of trained models: one table, one figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from shannon_game.experiments.harness.figures import player_colours, player_label
from shannon_game.experiments.harness.marks import named
from shannon_game.experiments.harness.questions import one_panel
from shannon_game.inference.lm.training import TrainedModel

CURVE_COLUMNS = ("run", "step", "loss_nats", "held_out_loss_nats", "learning_rate", "gradient_norm")


def curve_table(runs: Mapping[str, TrainedModel]) -> pd.DataFrame:
    """Put the loss curves of several runs below one another."""
    rows = [{"run": name, **point} for name, run in runs.items() for point in run.curves]
    return pd.DataFrame(rows).reindex(columns=list(CURVE_COLUMNS))


def loss_curves_figure(table: pd.DataFrame, unit: str) -> Figure:
    """Draw the loss on training and held-out examples against the step."""
    colours = player_colours(table["run"].unique().tolist())
    with one_panel(4.5, 3.5, "How far does the loss fall?") as (fig, axes):
        for name, its in table.groupby("run", sort=False):
            look: dict[str, Any] = {"color": colours[str(name)], "linewidth": 1}
            label = player_label(str(name))
            axes.plot(its["step"], its["loss_nats"], label=f"{label}, training", **look)
            held = its.dropna(subset=["held_out_loss_nats"])
            if len(held):
                x, y = held["step"], held["held_out_loss_nats"]
                axes.plot(x, y, "o--", markersize=3.5, label=f"{label}, held out", **look)
        axes.set_xlabel("step")
        axes.set_ylabel(f"loss, nats per {unit}")
        named(fig, axes.get_legend_handles_labels()[0], 2)
    return fig
