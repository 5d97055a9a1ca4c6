"""Ensembles of people: how often the most frequent word of n of them is right, beside models, by n."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.documents import MajorityAccuracy, clustered_mean
from shannon_game.estimators.documents.clusters import t_half_width
from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import new_figure, player_colours, player_label
from shannon_game.experiments.harness.marks import light_grid, mark, named, number_ticks, percent, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.settings import rows_of

TEXT, PEOPLE = "word of the text", "another person's answer"


class MajorityRow(column.Row):
    """An ensemble of people, or a model."""

    predicts: str = column.key("what is predicted; a person whose answer it is, is never in the ensemble")
    player: str = column.key("people, or a model", players=True)
    n_people: float = column.key("people of the ensemble; of everybody the mean over contexts")
    n_contexts: int = column.context("contexts, the same for all ensembles")
    accuracy: float = column.headline(
        "how often the most frequent word is right; equally frequent ones share", se="se", interval="{}"
    )
    everybody: float = column.beside("accuracy", "accuracy of everybody together in these contexts")


def majority_rows(
    predicts: str,
    found: MajorityAccuracy,
    models: Mapping[str, FloatArray],
    group: NDArray[Any],
    interval: float,
) -> list[dict[str, Any]]:
    """Rows of ensembles, the last one everybody, and of models by their accuracy, (context,), NaN where not asked."""
    people = {"predicts": predicts, "player": HUMAN, "n_contexts": len(found.context)}
    names = ("n_people", "accuracy", "se", "lower", "upper")
    rows = [
        {**people, **dict(zip(names, values, strict=True))}
        for values in zip(*(getattr(found, name) for name in names), strict=True)
    ]
    for name, values in models.items():
        own = np.flatnonzero(np.isfinite(values))
        if len(own):
            its = clustered_mean(values[own], group[own])
            half = t_half_width(its.se, len(set(group[own].tolist())) - 1, interval)
            ends = {"accuracy": its.mean, "se": its.se, "lower": its.mean - half, "upper": its.mean + half}
            its_people = {"n_contexts": len(own), "everybody": found.by_context[-1, own].mean()}
            rows.append({"predicts": predicts, "player": name, "n_people": np.nan, **ends, **its_people})
    return rows


def majority_text(table: pd.DataFrame) -> str:
    """Say how accuracy grows with the number of people, one sentence per thing predicted."""
    lines = []
    for predicts, own in table.groupby("predicts", sort=False):
        people = list(rows_of(own[own["player"] == HUMAN]))
        steps = listed(
            f"{row.accuracy:.1%} [{row.lower:.1%}, {row.upper:.1%}] with {row.n_people:.0f}" for row in people
        )
        what = "the " * (predicts == TEXT) + str(predicts)
        n = people[0].n_contexts
        lines.append(f"- **The most frequent word of n people is {what}** in {steps} ({n:,} contexts).")
    return "\n".join(lines)


@styled
def majority_figure(table: pd.DataFrame, study_name: str = "", *, interval: float = 0.9) -> Figure:
    """Accuracy by the number of people, a panel per thing predicted, with models as lines across."""
    panels, colours = list(table.groupby("predicts", sort=False)), player_colours(list(dict.fromkeys(table["player"])))
    handles = {HUMAN: mark(f"people, {interval:.0%} interval", colours[HUMAN], "o", line="-")}
    fig = new_figure(0.8 + 3.0 * len(panels), 3.4)
    for axes, (predicts, own) in zip(fig.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels, strict=True):
        people = own[own["player"] == HUMAN]
        axes.fill_between(people["n_people"], people["lower"], people["upper"], color="0.85", linewidth=0)
        axes.plot(people["n_people"], people["accuracy"], "-o", color=colours[HUMAN], markersize=4)
        for row in rows_of(own[own["player"] != HUMAN]):
            axes.axhline(row.accuracy, color=colours[row.player], linewidth=1.2)
            few = f" ({row.n_contexts:,} contexts)" * int(row.n_contexts < people["n_contexts"].max())
            handles[row.player] = mark(f"{player_label(row.player)}{few}", colours[row.player])
        sizes = [round(n) for n in people["n_people"]]
        axes.set_xscale("log")
        number_ticks(axes.xaxis, [n for n, before in zip(sizes, [0, *sizes], strict=False) if n > 1.3 * before])
        axes.set(xlabel="people of an ensemble", title=predicts)
        light_grid(axes, "y")
        percent(axes.yaxis)
    fig.axes[0].set(ylabel="most frequent word right", ylim=(0, None))
    named(fig, list(handles.values()))
    titled(fig, "How often is the majority right?", study_name)
    return fig
