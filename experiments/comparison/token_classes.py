"""``+exp=token_classes``: where a player loses, by class of token, length of the context and frequency of the token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import model_validator

from shannon_game.estimators.comparison import comparison_items
from shannon_game.estimators.documents.tokens import TOKEN_CLASSES, token_class
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.comparison.estimates import (
    ComparisonSettings,
    RoundingSettings,
    asked_for,
    chosen_players,
)
from shannon_game.experiments.harness.figures import STYLE, new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import light_grid, titled
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Count

__all__ = ["FACTORS", "TokenClassesSettings", "class_table", "item_levels", "token_classes", "token_classes_figure"]

FACTORS = ("class", "context", "frequency")
"""Class of the target; words of the context; how often the target is a target of the study."""

_RARE, _FREQUENT = 1, 10


class TokenClassesSettings(ComparisonSettings):
    """Settings of :func:`token_classes`."""

    rounding: RoundingSettings = RoundingSettings(name="none")
    """The grid to which reports are rounded."""
    context_words: tuple[Count, ...] = (20, 50)
    """Ends of the classes of the context's length, in words, rising."""

    @model_validator(mode="after")
    def _rising(self) -> TokenClassesSettings:
        if list(self.context_words) != sorted(set(self.context_words)):
            raise InputError(f"is {list(self.context_words)}, should rise", field="context_words")
        return self


@experiment(TokenClassesSettings)
def token_classes(study: xr.Dataset, settings: TokenClassesSettings) -> ExperimentResult:
    """Split every player's gap by what is asked for.

    An item's gap by equation 5 is rough, and too low with few responses; means over a class of items inherit that. The
    contributions of the classes of one factor sum to the player's gap.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    settings : TokenClassesSettings, optional
        Or its fields by name.

    Returns
    -------
    ExperimentResult
        One row a factor, level and player.

    Raises
    ------
    InputError
        If a player is not in the study, or nobody answered an item.

    Examples
    --------
    >>> from shannon_game import simulated, token_classes
    >>> study = simulated(n_items=12, n_reference_items=30, vocab_size=300, n_candidates=40, n_participants=8)
    >>> found = token_classes(study, players="lm-weak").table
    >>> found.loc[found["factor"] == "class", ["level", "n_items"]].reset_index(drop=True)
              level  n_items
    0          word        9
    1       capital        1
    2  continuation        1
    3        number        1
    """
    study, _ = asked_for(study, settings)
    players = chosen_players(study, settings.players)
    items = comparison_items(
        study,
        players,
        rounding=settings.rounding.scheme,
        estimator=settings.estimator.function,
        generator=settings.generator.name,
        control_only=settings.generator.control_only,
    )
    levels = item_levels(items, settings.context_words)
    generator = str(settings.generator.name or study.attrs["generator"])
    table = class_table(items, levels, players, generator)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(table_variables(table, "row")),
        tables={"items": items.assign(**levels)},
        figures={"token_classes": token_classes_figure(table, str(study.attrs["name"]))},
        text=summary(table),
    )


def item_levels(items: pd.DataFrame, context_words: tuple[int, ...]) -> dict[str, NDArray[np.object_]]:
    """Give every item its level of each of :data:`FACTORS`."""
    words = np.array([len(str(context).split()) for context in items["context"]])
    starts = (0, *(end + 1 for end in context_words))
    names = [f"{low} to {high} words" for low, high in zip(starts, context_words, strict=False)]
    names.append(f"{starts[-1]} words or more")
    times = items["target"].map(items["target"].value_counts()).to_numpy()
    often = np.where(times <= _RARE, "once", np.where(times < _FREQUENT, f"2 to {_FREQUENT - 1} times", ""))
    found = {
        "class": np.array([token_class(target) for target in items["target"]], dtype=object),
        "context": np.array(names, dtype=object)[np.searchsorted(context_words, words)],
        "frequency": np.where(often == "", f"{_FREQUENT} times or more", often).astype(object),
    }
    return {name: found[name] for name in FACTORS}


def class_table(
    items: pd.DataFrame, levels: Mapping[str, NDArray[np.object_]], players: list[str], generator: str
) -> pd.DataFrame:
    """Mean gap and contribution of every level, a row a factor, level and player."""
    rows: list[dict[str, Any]] = []
    for player in players:
        gap = items[f"gap_nats_{player}"].to_numpy()
        asked = np.isfinite(gap)
        true = np.full(len(items), np.nan)
        if f"surprisal_nats_{player}" in items and f"surprisal_nats_{generator}" in items:
            true = (items[f"surprisal_nats_{player}"] - items[f"surprisal_nats_{generator}"]).to_numpy()
        people = items[f"gap_nats_{HUMAN}"].to_numpy() if f"gap_nats_{HUMAN}" in items else np.full(len(items), np.nan)
        for factor, of in levels.items():
            for level in _in_order(factor, of[asked]):
                own = asked & (of == level)
                mean, se = _mean_and_se(gap[own])
                apart, apart_se = _mean_and_se(people[own] - true[own])
                rows.append(
                    {
                        "factor": factor,
                        "level": level,
                        "player": player,
                        "n_items": int(own.sum()),
                        "gap_nats": mean,
                        "se_items_nats": se,
                        "contribution_nats": float(gap[own].sum() / asked.sum()),
                        "true_gap_nats": float(true[own].mean()),
                        "human_minus_player_nats": apart,
                        "se_human_minus_player_nats": apart_se,
                    }
                )
    return pd.DataFrame(rows)


def _in_order(factor: str, levels: NDArray[np.object_]) -> list[str]:
    found = set(levels.tolist())
    if factor == "class":
        return [name for name in TOKEN_CLASSES if name in found]
    # "0 to 20 words" before "51 words or more", "once" first
    return sorted(found, key=lambda name: (name != "once", int(name.split()[0]) if name[0].isdigit() else 0))


def _mean_and_se(values: NDArray[np.float64]) -> tuple[float, float]:
    n = len(values)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def summary(table: pd.DataFrame) -> str:
    """Say which class of token carries most of each player's gap."""
    lines = []
    for player, rows in table[table["factor"] == "class"].groupby("player", sort=False):
        shown = rows.sort_values("contribution_nats", ascending=False)
        said = ", ".join(
            f"{row.level} {row.contribution_nats:+.2f} ({counted(row.n_items, 'item')})" for row in rows_of(shown)
        )
        lines.append(f"- **{player_label(str(player))}**, {rows['contribution_nats'].sum():.3f} nats in all: {said}.")
    return (
        "What each class of target token contributes to the gap, in nats; the contributions sum to the gap. A class of "
        "few items has a rough mean, and an item's gap by equation 5 is too low where it has few responses.\n\n"
        + "\n".join(lines)
    )


def token_classes_figure(table: pd.DataFrame, study_name: str = "") -> Figure:
    """Draw mean gaps with two standard errors, a panel a factor, a colour a player; crosses are exact gaps."""
    players = list(dict.fromkeys(table["player"]))
    palette = player_colours(players)
    factors = list(dict.fromkeys(table["factor"]))
    heights = [table.loc[table["factor"] == factor, "level"].nunique() for factor in factors]
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 1.0 + 0.42 * sum(heights))
        axes = fig.subplots(len(factors), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for ax, factor in zip(axes, factors, strict=True):
            own = table[table["factor"] == factor]
            order = list(dict.fromkeys(own["level"]))
            n_items = own.groupby("level")["n_items"].max()
            for number, player in enumerate(players):
                rows = own[own["player"] == player]
                y = (
                    np.array([-order.index(level) for level in rows["level"]])
                    + 0.22
                    - 0.44 * number / max(len(players) - 1, 1)
                )
                wide = 2 * rows["se_items_nats"].fillna(0)
                label = player_label(player) if ax is axes[0] else None
                ax.errorbar(
                    rows["gap_nats"], y, xerr=wide, fmt="o", markersize=4, capsize=2, color=palette[player], label=label
                )
                ax.plot(rows["true_gap_nats"], y, linestyle="", marker="x", markersize=5, color=palette[player])
            ax.axvline(0, color="0.55", linewidth=0.8)
            ax.set_yticks([-at for at in range(len(order))], [f"{level} ({n_items[level]})" for level in order])
            ax.set_ylabel(factor)
            light_grid(ax, "x")
        axes[-1].set_xlabel(
            "gap to the generator, nats\n(bars: two standard errors over items; crosses: exact; in brackets: items)"
        )
        titled(fig, "Where players lose, by what was asked for", study_name)
        fig.legend(loc="outside lower center", ncols=4)
    return fig
