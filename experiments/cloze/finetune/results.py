"""What fine-tuning did, in words and as a figure."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from shannon_game.experiments.cloze.finetune.settings import FineTuneSettings
from shannon_game.experiments.harness.figures import Series, player_colours, player_label
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.inference.lm.training import TrainedModel


def finetune_figure(table: pd.DataFrame) -> Figure:
    """Draw the change of the TVD of every model and kind of label, with its interval."""
    rows = table.assign(
        label=[f"{player_label(row.player)}, {row.labels} labels" for row in rows_of(table)],
        colour=table["player"].map(player_colours(table["player"].tolist())),
    )
    xlabel = "change of the TVD to people on held-out texts (below 0: nearer)"
    series = [Series("tvd_difference", "tvd_difference_lower", "tvd_difference_upper")]
    return forest_figure(rows, series, xlabel, "What fine-tuning on people's answers changes")


def summary(table: pd.DataFrame, settings: FineTuneSettings, runs: Mapping[str, TrainedModel]) -> str:
    """Say by how much the distance to people changed, and what was trained."""
    lines = [
        f"- **{player_label(row.player)}**, {row.labels} labels: TVD to people {row.tvd_before:.4f} before and "
        f"{row.tvd_after:.4f} after, a change of {row.tvd_difference:+.4f} [{row.tvd_difference_lower:+.4f}, "
        f"{row.tvd_difference_upper:+.4f}], on {row.n_held_out_contexts:,} contexts of {row.n_held_out_texts} texts "
        f"held out; {row.share_of_contexts_nearer:.0%} of the contexts are nearer."
        for row in rows_of(table)
    ]
    first = next(iter(runs.values()))
    n_now = sum(run.n_steps_now for run in runs.values())
    return (
        "\n".join(lines) + f"\n\nTrained on people's answers in the other texts: {settings.trainable} parameters, "
        f"{first.n_steps:,} steps each, {n_now:,} steps in this run, in {first.precision} on {first.device}. "
        f"{settings.level:.0%} intervals are of a bootstrap over texts held out; another order of examples or another "
        "cut of the texts would add to them."
    )
