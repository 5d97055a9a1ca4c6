"""``+exp=perplexity vary=token_classes``: the gap by class of token, its frequency, length of context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
from shannon_game.experiments.comparison import estimates
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import Series, forest, new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import half_width
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Count

FACTORS = ("class", "context", "frequency")
"""Class of the target; words of the context; how often the target is a target of the study."""

_RARE, _FREQUENT = 1, 10


class ClassRow(column.Row):
    """One level of one factor, and one player."""

    factor: str = column.key("what items are split by")
    level: str = column.key("its level")
    player: str = column.key("participant or model", players=True)
    n_items: int = column.context("items")
    gap_nats: float = column.headline("mean gap of the level's items", unit="nats", se="se_items_nats")
    contribution_nats: float = column.estimate("what the level adds to the player's gap", unit="nats")
    true_gap_nats: float = column.truth("gap_nats", unit="nats")
    human_minus_player_nats: float = column.estimate(
        "people's minus the player's", unit="nats", se="se_human_minus_player_nats"
    )


class TokenClassesSettings(estimates.ComparisonSettings):
    rounding: estimates.RoundingSettings = estimates.RoundingSettings(name="none")
    """The grid to which reports are rounded."""
    context_words: tuple[Count, ...] = (20, 50)
    """Ends of the classes of the context's length, in words, rising."""

    @model_validator(mode="after")
    def _rising(self) -> TokenClassesSettings:
        if list(self.context_words) != sorted(set(self.context_words)):
            raise InputError(f"is {list(self.context_words)}, should rise", field="context_words")
        return self


@experiment(TokenClassesSettings, row=ClassRow)
def token_classes(study: xr.Dataset, settings: TokenClassesSettings) -> ExperimentResult:
    """Split every player's gap by what is asked for, one row per factor, level and player.

    An item's gap by equation 5 is rough, and too low with few responses; means over a class of items inherit that. The
    contributions of the classes of one factor sum to the player's gap.
    """
    study, _ = estimates.asked_for(study, settings)
    players = estimates.chosen_players(study, settings.players)
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
        dataset=xr.Dataset(ClassRow.variables(table, "row")),
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
    """Mean gap and contribution of every level, a row per factor, level and player."""
    rows: list[dict[str, Any]] = []
    unknown = pd.Series(np.nan, items.index)
    people = items.get(f"gap_nats_{HUMAN}", unknown)
    for player in players:
        true = items.get(f"surprisal_nats_{player}", unknown) - items.get(f"surprisal_nats_{generator}", unknown)
        each = pd.DataFrame({"gap": items[f"gap_nats_{player}"], "true": true, "apart": people - true, **levels})
        each = each[np.isfinite(each["gap"])]
        for factor in levels:
            for level in _in_order(factor, each[factor]):
                own = each[each[factor] == level]
                row: dict[str, Any] = {"factor": factor, "level": level, "player": player, "n_items": len(own)}
                row |= {"gap_nats": own["gap"].mean(), "se_items_nats": own["gap"].sem()}
                row |= {"contribution_nats": own["gap"].sum() / len(each), "true_gap_nats": own["true"].mean()}
                row["human_minus_player_nats"] = own["apart"].mean()
                row["se_human_minus_player_nats"] = own["apart"].sem()
                rows.append(row)
    return pd.DataFrame(rows)


def _in_order(factor: str, levels: pd.Series[str]) -> list[str]:
    found = set(levels)
    if factor == "class":
        return [name for name in TOKEN_CLASSES if name in found]
    # "0 to 20 words" before "51 words or more", "once" first
    return sorted(found, key=lambda name: (name != "once", int(name.split()[0]) if name[0].isdigit() else 0))


def summary(table: pd.DataFrame) -> str:
    """Say which class of token carries most of each player's gap."""
    said = []
    for player, rows in table[table["factor"] == "class"].groupby("player", sort=False):
        most = rows.sort_values("contribution_nats", ascending=False).iloc[0]
        own = f"of which {most['contribution_nats']:+.2f} from the class {most['level']!r}"
        own += f" ({counted(int(most['n_items']), 'item')})"
        said.append(f"{rows['contribution_nats'].sum():.3f} nats for {player_label(str(player))}, {own}")
    return (
        f"**The gap to the generator is {'; '.join(said)}.** The contributions of all classes sum to the gap. A class "
        "of few items has a rough mean."
    )


@styled
def token_classes_figure(table: pd.DataFrame, study_name: str = "") -> Figure:
    """Draw mean gaps with 90% intervals, a panel a factor, a colour per player; crosses are exact gaps."""
    palette = player_colours(list(dict.fromkeys(table["player"])))
    factors = list(dict.fromkeys(table["factor"]))
    heights = [table.loc[table["factor"] == factor, "level"].nunique() for factor in factors]
    offsets = np.linspace(0.22, -0.22, len(palette)) if len(palette) > 1 else [0.22]
    fig = new_figure(4.5, 1.4 + 0.42 * sum(heights))
    panels = fig.subplots(len(factors), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, factor in zip(panels, factors, strict=True):
        own = table[table["factor"] == factor]
        n_items = own.groupby("level", sort=False)["n_items"].max()
        rows = pd.DataFrame({"label": [f"{level} ({n})" for level, n in n_items.items()]}, index=n_items.index)
        series = []
        for (player, colour), offset in zip(palette.items(), offsets, strict=True):
            mine = own[own["player"] == player].set_index("level")
            gap, wide = mine["gap_nats"], half_width(mine["se_items_nats"])
            ends = {f"{player} gap": gap, f"{player} low": gap - wide, f"{player} high": gap + wide}
            rows = rows.join(pd.DataFrame(ends | {f"{player} true": mine["true_gap_nats"]}))
            look = {"colour": colour, "offset": offset, "size": 4, "capsize": 2}
            series += [Series(*ends, **look), Series(f"{player} true", marker="x", **look)]
        forest(axes, rows, series)
        axes.axvline(0, color="0.55", linewidth=0.8)
        axes.set_ylabel(factor)
        light_grid(axes, "x")
    panels[-1].set_xlabel("loss minus the generator's, nats")
    titled(fig, "On which tokens do people and models lose?", f"{study_name}; in brackets: items")
    bar, exact = mark("mean, 90% interval over items", marker="o", line="-"), mark("exact", marker="x")
    named(fig, [mark(player_label(player), colour, "o") for player, colour in palette.items()] + [bar, exact], 2)
    return fig
