"""What fine-tuning did, in words and as a figure."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.cloze.finetune.settings import FineTuneSettings
from experiments.harness.figures import STYLE, new_figure, player_colours, player_label
from experiments.harness.marks import light_grid, titled
from inference.lm.training import TrainedModel

__all__ = ["finetune_figure", "summary"]


def finetune_figure(table: pd.DataFrame) -> Figure:
    """Draw the change of the TVD of every model and kind of label, with its interval."""
    colours = player_colours(list(dict.fromkeys(table["player"])))
    place = np.arange(len(table))[::-1]
    with mpl.rc_context(STYLE):
        fig = new_figure(5.6, 1.4 + 0.35 * len(table))
        axes = fig.subplots()
        axes.axvline(0, color="0.55", linewidth=0.8)
        for at, row in zip(place, table.to_dict("records"), strict=True):
            colour = colours[row["player"]]
            ends = [row["tvd_difference_lower"], row["tvd_difference_upper"]]
            axes.plot(ends, [at, at], color=colour, linewidth=1.4)
            axes.plot([row["tvd_difference"]], [at], "o", color=colour, markersize=5)
        names = [f"{player_label(row['player'])}, {row['labels']} labels" for row in table.to_dict("records")]
        axes.set_yticks(place, names)
        axes.set_ylim(-0.6, len(table) - 0.4)
        # changes have three decimals: more ticks run into each other
        axes.locator_params(axis="x", nbins=6)
        axes.set_xlabel("change of the TVD to people on held-out texts (below 0: nearer)")
        light_grid(axes, "x")
        titled(fig, "What fine-tuning on people's answers changes")
    return fig


def summary(table: pd.DataFrame, settings: FineTuneSettings, runs: Mapping[str, TrainedModel]) -> str:
    """Say what was trained, and by how much the distance to people changed."""
    lines = [
        f"- **{player_label(row['player'])}**, {row['labels']} labels: TVD to people {row['tvd_before']:.4f} before "
        f"and {row['tvd_after']:.4f} after, a change of {row['tvd_difference']:+.4f} "
        f"[{row['tvd_difference_lower']:+.4f}, {row['tvd_difference_upper']:+.4f}], on {row['n_held_out_contexts']:,} "
        f"contexts of {row['n_held_out_texts']} texts held out; {row['share_of_contexts_nearer']:.0%} of the contexts "
        "are nearer."
        for row in table.to_dict("records")
    ]
    first = next(iter(runs.values()))
    n_now = sum(run.n_steps_now for run in runs.values())
    return (
        f"Models were fine-tuned on people's answers ({settings.trainable} parameters, {first.n_steps:,} steps each, "
        f"{n_now:,} steps in this run, in {first.precision} on {first.device}) and compared with people in texts "
        f"that they had not been trained on. Intervals of {settings.level:.0%} are of a bootstrap over texts held out; "
        "they do not hold what another order of the examples or another cut of the texts would change.\n\n"
        + "\n".join(lines)
    )
