"""``+exp=perplexity vary=rounding``: what rounding the reports does to the estimate (figure 8 of the paper)."""

from __future__ import annotations

from typing import Annotated

import pandas as pd
import xarray as xr
from pydantic import Field, field_validator

from shannon_game.estimators.comparison import rounding_scheme
from shannon_game.experiments.comparison import estimates
from shannon_game.experiments.comparison.perplexity import estimates_dataset, sampling_warnings
from shannon_game.experiments.harness.figures import player_label
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.sweep_figure import draw_sweep


class RoundingEffectSettings(estimates.ComparisonSettings):
    schemes: Annotated[tuple[str, ...], Field(min_length=1)] = ("none", "interface", "coarse", "coarser")
    """Roundings to compare: names of schemes."""

    @field_validator("schemes")
    @classmethod
    def _exist(cls, schemes: tuple[str, ...]) -> tuple[str, ...]:
        for name in schemes:
            rounding_scheme(name)
        return schemes


@experiment(RoundingEffectSettings, row=estimates.EstimateRow)
def rounding(study: xr.Dataset, settings: RoundingEffectSettings) -> ExperimentResult:
    """Estimate every player's perplexity under several roundings of the reports, one row per player and rounding."""
    study, control = estimates.asked_for(study, settings)
    schemes = list(dict.fromkeys([*map(rounding_scheme, settings.schemes), settings.rounding.scheme]))
    players = estimates.chosen_players(study, settings.players)
    results = [estimates.estimate(settings, study, player, scheme) for player in players for scheme in schemes]
    table = estimates.EstimateRow.table(
        estimates.estimate_row(result, control, estimates.EstimateRow) for result in results
    )
    figure = draw_sweep(table, estimates.EstimateRow.columns, "What does rounding the answers do?", study.attrs["name"])
    return ExperimentResult(
        table=table,
        dataset=estimates_dataset(results, table, estimates.EstimateRow),
        figures={"rounding": figure} if figure is not None else {},
        text=summary(table),
        warnings=sampling_warnings(table),
    )


def summary(table: pd.DataFrame) -> str:
    """Say how far rounding moves each player."""
    first, others = table["rounding"].iloc[0], table[table["rounding"] != table["rounding"].iloc[0]]
    given = table[table["rounding"] == first].set_index("player")["gap_nats"]
    change = (others["gap_nats"] - others["player"].map(given)).groupby(others["player"], sort=False)
    ends = zip(change.min().items(), change.max(), strict=True)
    moved = [f"{low:+.3f} to {high:+.3f} nats for {player_label(str(player))}" for (player, low), high in ends]
    return (
        f"**Rounding changes the gap to the generator by {listed(moved)}**, compared with rounding {first}. The "
        "coarser the scale, the worse a player near the generator looks. The highest and the lowest value of the scale "
        "bound what a sure player can say."
    )
