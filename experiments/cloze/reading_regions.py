"""Reading times and surprisal by region and condition of an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shannon_game.estimators.documents import crossed_mean
from shannon_game.estimators.documents.clusters import t_half_width
from shannon_game.experiments.cloze.figures import label
from shannon_game.experiments.cloze.reading_words import TextWords, Times
from shannon_game.experiments.cloze.settings import cluster_se
from shannon_game.experiments.harness.figures import new_figure, player_colours
from shannon_game.experiments.harness.marks import mark, named, titled
from shannon_game.experiments.harness.plots import bars, styled

_MARKERS = "osD^vP*X"
_TICK = 12


def region_means(words: TextWords, times: Times, interval: float) -> pd.DataFrame:
    """Mean time of every region and condition with its interval, and the mean surprisal of the words that were read.

    A reader's mean over all regions is taken out first, and the mean of all readers put back (Cousineau 2005), so that
    intervals show what differs within readers. Errors are clustered over readers and sentences
    (:func:`~shannon_game.estimators.documents.crossed_mean`); without several of both they are over sentences.
    """
    rows = times.rows.assign(value=times.rows["time"].astype(float))
    if "reader" in rows:
        rows["value"] += rows["time"].mean() - rows.groupby("reader")["time"].transform("mean")
    text, number = (words.word.index.get_level_values(level).to_numpy() for level in (0, 1))
    rows["number"] = number[rows["at"].to_numpy()]
    if "region" not in rows:
        rows["region"] = rows["number"]
    place = rows.groupby("region")["number"].mean()
    found = []
    for (region, condition), own in rows.groupby(["region", "condition"], sort=False):
        values, sentences = own["value"].to_numpy(), text[own["at"].to_numpy()]
        row: dict[str, Any] = {"region": region, "condition": condition, "n_times": len(own)}
        row |= {"n_readers": own["reader"].nunique() if "reader" in own else 0, "n_sentences": len(set(sentences))}
        if "reader" in own and row["n_readers"] > 1 and row["n_sentences"] > 1:
            mean = crossed_mean(values, own["reader"].to_numpy(), sentences, probability=interval)
            row |= {"mean_ms": mean.mean, "lower_ms": mean.lower, "upper_ms": mean.upper}
        else:
            freedom = (row["n_sentences"] if row["n_sentences"] > 1 else len(own)) - 1
            half = t_half_width(cluster_se(values, sentences), freedom, interval) if len(own) > 1 else np.nan
            row |= {"mean_ms": values.mean(), "lower_ms": values.mean() - half, "upper_ms": values.mean() + half}
        surprisal = words.surprisal.iloc[np.unique(own["at"])].mean()
        found.append({**row, **{f"surprisal_nats_{name}": value for name, value in surprisal.items()}})
    order = place.rank().to_dict()
    return pd.DataFrame(found).sort_values("region", key=lambda its: its.map(order), kind="stable", ignore_index=True)


@styled
def regions_figure(table: pd.DataFrame, players: Sequence[str], study_name: str, interval: float) -> Figure:
    """Draw mean times above mean surprisal, a panel per player, regions from left to right, a line per condition."""
    regions, conditions = (list(dict.fromkeys(table[name])) for name in ("region", "condition"))
    colours = player_colours(conditions)
    fig = new_figure(max(4.5, 1.5 + 0.55 * len(regions)), 2.3 + 1.3 * len(players))
    ratios = [1.6, *[1.0] * len(players)]
    panels = fig.subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
    for at, condition in enumerate(conditions):
        own = table[table["condition"] == condition]
        x = np.array([regions.index(region) for region in own["region"]]) + (at - (len(conditions) - 1) / 2) * 0.08
        look: dict[str, Any] = {"color": colours[condition], "marker": _MARKERS[at % len(_MARKERS)]}
        bars(panels[0], x, own["lower_ms"], own["mean_ms"], own["upper_ms"], linestyle="-", **look)
        for axes, player in zip(panels[1:], players, strict=True):
            axes.plot(x, own[f"surprisal_nats_{player}"], markersize=4, **look)
    within = "\nwithin readers" * bool((table["n_readers"] > 0).any())
    panels[0].set_ylabel(f"ms, {interval:.0%} interval{within}")
    for axes, player in zip(panels[1:], players, strict=True):
        axes.set_ylabel(f"{label(player)},\nnats")
    slanted = max(map(len, map(str, regions))) > _TICK * 4 / len(regions)
    panels[-1].set_xticks(range(len(regions)), [str(one) for one in regions], rotation=30 if slanted else 0)
    if slanted:
        for tick in panels[-1].get_xticklabels():
            tick.set_horizontalalignment("right")
    named(fig, [mark(one, colours[one], _MARKERS[at % len(_MARKERS)], line="-") for at, one in enumerate(conditions)])
    titled(fig, "Which regions are read longer, and which are surprising?", study_name)
    return fig
