"""``+exp=perplexity vary=rounding``: what rounding the reports does to the estimate (figure 8 of the paper)."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic import Field, field_validator

from shannon_game.estimators.comparison import SCHEMES, rounding_scheme
from shannon_game.experiments.comparison import estimates
from shannon_game.experiments.comparison.perplexity import estimates_dataset, sampling_warnings
from shannon_game.experiments.harness import figures
from shannon_game.experiments.harness.figures import player_colours, player_label
from shannon_game.experiments.harness.marks import mark, name_ends, named, titled
from shannon_game.experiments.harness.plots import bars, styled
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult, experiment

_ENDS = ("perplexity_lower", "perplexity", "perplexity_upper")


class RoundingEffectSettings(estimates.ComparisonSettings):
    """Settings of :func:`rounding`; the scheme of ``rounding`` is compared too, a custom one for example."""

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
    return ExperimentResult(
        table=table,
        dataset=estimates_dataset(results, table, estimates.EstimateRow),
        figures={"rounding": rounding_figure(table, study.attrs["name"], settings.estimator)},
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


def _grid_label(name: str) -> str:
    """Two lines below a tick: the name of the grid, and how many values it has."""
    if name in SCHEMES and name not in {"none", "interface"}:
        return f"{name}\n({len(SCHEMES[name].values)} values)"
    return estimates.rounding_label(name).replace("rounded to ", "the game's\n")


@styled
def rounding_figure(
    table: pd.DataFrame, study_name: str = "", estimator: estimates.EstimatorSettings | None = None
) -> Figure:
    """Perplexity against the rounding scheme, a colour a player."""
    colours = player_colours(list(dict.fromkeys(table["player"])))
    schemes = list(dict.fromkeys(table["rounding"]))
    fig = figures.new_figure(4.5, 4.3)
    axes = fig.add_subplot()
    shifts = np.linspace(-0.24, 0.24, len(colours)) if len(colours) > 1 else np.zeros(1)
    short: dict[str, Any] = {"marker": "_", "markersize": 13, "markeredgewidth": 2, "alpha": 0.55, "linestyle": ""}
    for shift, (player, colour) in zip(shifts, colours.items(), strict=True):
        rows = table[table["player"] == player]
        x = np.arange(len(rows)) + shift
        axes.plot(x, rows["perplexity"], color=colour, linewidth=0.8, alpha=0.4)
        bars(axes, x, *(rows[name] for name in _ENDS), color=colour, markersize=5, capsize=3)
        axes.plot(x, rows["true_perplexity_asked"], color=colour, **short)
    figures.log_perplexity_axis(
        axes, "y", *figures.finite_range(*(table[name] for name in (*_ENDS, "true_perplexity_asked")))
    )
    axes.set_xticks(range(len(schemes)), [_grid_label(name) for name in schemes])
    axes.set(xlim=(-0.5, len(schemes) - 0.5), xlabel="rounding of the reports", ylabel="perplexity per token")
    titled(fig, "What does rounding the answers do?", study_name)
    last = table.drop_duplicates("player", keep="last")[["player", "perplexity"]].to_numpy()
    name_ends(axes, [(value, player_label(name), colours[name]) for name, value in last])
    truth = mark(figures.TRUTH_ASKED, "0.4", "_", markersize=12, markeredgewidth=2)
    named(fig, [mark(estimates.bars_label(estimator), "0.4", "o", line="-"), truth])
    return fig
