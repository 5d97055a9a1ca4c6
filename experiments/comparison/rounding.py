"""What rounding the reports does to the estimate (figure 8 of the paper)."""

from __future__ import annotations

from typing import Annotated

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from pydantic import Field, field_validator

from shannon_game.estimators.comparison import SCHEMES, rounding_scheme
from shannon_game.experiments.comparison.estimates import (
    TABLE_COLUMNS,
    ComparisonSettings,
    EstimatorSettings,
    asked_for,
    bars_label,
    chosen_players,
    estimate,
    rounding_label,
    table_row,
)
from shannon_game.experiments.comparison.perplexity import estimates_dataset, sampling_warnings
from shannon_game.experiments.harness.figures import (
    STYLE,
    TRUTH_ASKED,
    finite_range,
    log_perplexity_axis,
    new_figure,
    player_colours,
    player_label,
)
from shannon_game.experiments.harness.marks import arms, mark, named
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of

__all__ = ["RoundingEffectSettings", "rounding", "rounding_figure"]


class RoundingEffectSettings(ComparisonSettings):
    """Settings of :func:`rounding`; the scheme of ``rounding`` is compared too, a custom one for example."""

    schemes: Annotated[tuple[str, ...], Field(min_length=1)] = ("none", "interface", "coarse", "coarser")
    """Roundings to compare: names of schemes."""

    @field_validator("schemes")
    @classmethod
    def _exist(cls, schemes: tuple[str, ...]) -> tuple[str, ...]:
        for name in schemes:
            rounding_scheme(name)
        return schemes


@experiment(RoundingEffectSettings)
def rounding(study: xr.Dataset, settings: RoundingEffectSettings) -> ExperimentResult:
    """Estimate every player's perplexity under several roundings of the reports (figure 8 of the paper).

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    settings : RoundingEffectSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        One row a player and rounding.

    Examples
    --------
    >>> from shannon_game import rounding, simulated
    >>> study = simulated(n_items=12, n_reference_items=30, vocab_size=300, n_candidates=40, n_participants=8)
    >>> result = rounding(study, players="lm-weak", schemes=["none", "coarser"], rounding="none")
    >>> result.table[["rounding", "perplexity"]].round(1)
      rounding  perplexity
    0     none        23.8
    1  coarser        20.6
    """
    study, control = asked_for(study, settings)
    schemes = list(dict.fromkeys([*map(rounding_scheme, settings.schemes), settings.rounding.scheme]))
    players = chosen_players(study, settings.players)
    results = [estimate(settings, study, player, scheme) for player in players for scheme in schemes]
    table = pd.DataFrame([table_row(result, control) for result in results], columns=list(TABLE_COLUMNS))
    return ExperimentResult(
        table=table,
        dataset=estimates_dataset(results, control),
        figures={"rounding": rounding_figure(table, study.attrs["name"], settings.estimator)},
        text=summary(table),
        warnings=sampling_warnings(table),
    )


def summary(table: pd.DataFrame) -> str:
    """Say how far each rounding moves each player."""
    lines = []
    for player, rows in table.groupby("player", sort=False):
        base = rows.iloc[0]
        moves = ", ".join(f"{row.rounding} {row.gap_nats - base['gap_nats']:+.3f}" for row in rows_of(rows.iloc[1:]))
        lines.append(
            f"- **{player_label(str(player))}**: gap {base['gap_nats']:.3f} nats with rounding {base['rounding']}; "
            f"change in nats: {moves or 'none asked for'}."
        )
    return (
        "Rounding moves an estimate both ways. The highest box puts a floor under the ratios where the player is sure "
        "of the target, which raises the mean; the lowest box caps the ratios where the player is sure of the "
        "candidate, which lowers it. A player near the generator, with few large ratios, looks worse by rounding "
        "alone; it says nothing of what the player knows.\n\n" + "\n".join(lines)
    )


def _grid_label(name: str) -> str:
    """Two lines below a tick: the name of the grid, and how many values it has."""
    if name in SCHEMES and name not in {"none", "interface"}:
        return f"{name}\n({len(SCHEMES[name].values)} values)"
    return rounding_label(name).replace("rounded to the game's ", "the game's\n")


def rounding_figure(table: pd.DataFrame, study_name: str = "", estimator: EstimatorSettings | None = None) -> Figure:
    """Perplexity against the rounding scheme, a colour a player."""
    players = list(dict.fromkeys(table["player"]))
    schemes = list(dict.fromkeys(table["rounding"]))
    colours = player_colours(players)
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 3.9)
        axes = fig.add_subplot()
        shifts = np.linspace(-0.24, 0.24, len(players)) if len(players) > 1 else np.zeros(1)
        for shift, player in zip(shifts, players, strict=True):
            rows = table[table["player"] == player]
            x = np.arange(len(rows)) + shift
            bar = arms(rows["perplexity_lower"], rows["perplexity"], rows["perplexity_upper"])
            axes.plot(x, rows["perplexity"], color=colours[player], linewidth=0.8, alpha=0.4)
            axes.errorbar(x, rows["perplexity"], yerr=bar, fmt="o", color=colours[player], markersize=5, capsize=3)
            truth = rows["true_perplexity_asked"]
            axes.plot(
                x, truth, linestyle="", marker="_", markersize=13, markeredgewidth=2, color=colours[player], alpha=0.55
            )
        log_perplexity_axis(
            axes,
            "y",
            *finite_range(table["perplexity_lower"], table["perplexity_upper"], table["true_perplexity_asked"]),
        )
        axes.set_xticks(range(len(schemes)), [_grid_label(name) for name in schemes])
        axes.set_xlim(-0.5, len(schemes) - 0.5)
        axes.set_xlabel("rounding of the reports")
        axes.set_ylabel("perplexity per token (log scale)")
        axes.set_title(f"Perplexity when reports are rounded ({study_name}; estimator {table['estimator'].iloc[0]})")
        handles = [
            *(mark(player_label(name), colours[name], "o") for name in players),
            mark(bars_label(estimator), "0.4", "o", line="-"),
            mark(TRUTH_ASKED, "0.4", "_", markersize=12, markeredgewidth=2),
        ]
        named(fig, handles)
    return fig
