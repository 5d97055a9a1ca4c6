"""Figures of the experiment on free answers: gaps one below the other, and answers beside those expected."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from estimators.layout import HUMAN
from experiments.comparison.caveats import NOT_RELIED_ON
from experiments.comparison.free_answers.rows import MODEL_METHOD, OUTCOMES
from experiments.harness.figures import STYLE, TRUTH_ASKED, Series, forest, new_figure, player_colours, player_label
from experiments.harness.marks import arms, light_grid, mark, named

__all__ = ["METHOD_LABELS", "answer_figure", "gap_figure"]

METHOD_LABELS = {
    MODEL_METHOD: "answers and reports",
    OUTCOMES: "scale from outcomes",
    "bridge": "bridge",
    "importance": "equation 5",
}
"""What figures and words call the rows of people; other estimators have their own names."""


def gap_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9, n_se: float = 2.0) -> Figure:
    """People's gap by every method, the language models' exact gaps, and the truth where it is known."""
    people = table["player"] == HUMAN
    unsure = np.where(table["converged"].astype(bool), "", " (not converged)")
    labels = [
        f"{player_label(HUMAN)}, {METHOD_LABELS.get(method, method)}" if human else player_label(player)
        for human, player, method in zip(people, table["player"], table["method"], strict=True)
    ]
    rows = table.assign(
        label=np.char.add(np.array(labels, dtype=str), unsure.astype(str)),
        colour=table["player"].map(player_colours(list(dict.fromkeys(table["player"])))),
        group=people.astype(str),
        hollow=table["caveat"] != "",
        alpha=np.where(people & (table["method"] != MODEL_METHOD), 0.5, 1.0),
        marker=np.where(people, np.where(table["method"].isin([MODEL_METHOD, OUTCOMES]), "o", "s"), "D"),
    )
    value = Series("gap_nats", "gap_lower_nats", "gap_upper_nats", marker=None)
    truth = Series("true_gap_nats", label=TRUTH_ASKED, marker="|", size=20, colour="0.35")
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 1.5 + 0.36 * len(rows))
        axes = fig.add_subplot()
        forest(axes, rows, [value, truth])
        axes.axvline(0, color="0.55", linewidth=0.8, zorder=0)
        light_grid(axes, "x")
        axes.set_xlabel(f"loss gap to {player_label(table['generator'].iloc[0])}, nats per token")
        axes.set_title(f"Where people also answered freely ({study_name})")
        handles = [
            mark(f"posterior median, {interval:.0%}", "#000000", "o", line="-", markersize=5.5),
            mark(f"estimate \N{PLUS-MINUS SIGN} {n_se:g} se", "#000000", "s", line="-", markersize=5.5, alpha=0.5),
            mark("language model, exact", "0.3", "D", markersize=5.5),
        ]
        if (table["caveat"] != "").any():
            handles.append(mark(NOT_RELIED_ON, "#000000", "o", hollow=True, markersize=5.5))
        known = bool(np.isfinite(table["true_gap_nats"].astype(float)).any())
        named(fig, [*handles, *([truth.handle()] if known else [])], 2)
    return fig


def answer_figure(bins: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Answers that were given beside those that the posterior expects, by how many it expects of one token."""
    at = np.arange(len(bins))
    with mpl.rc_context(STYLE):
        fig = new_figure(6.4, 3.4)
        axes = fig.add_subplot()
        axes.errorbar(
            at,
            bins["expected"],
            yerr=arms(bins["predicted_lower"], bins["expected"], bins["predicted_upper"]),
            fmt="_",
            markersize=14,
            color="#0072B2",
            capsize=3,
            zorder=2,
        )
        axes.plot(at, bins["observed"], "o", color="#000000", markersize=5.5, zorder=3)
        axes.set_xticks(
            at, [_bin_label(*ends) for ends in zip(bins["expected_from"], bins["expected_to"], strict=True)]
        )
        axes.set_ylim(bottom=0)
        axes.margins(x=0.08)
        light_grid(axes, "y")
        axes.set_xlabel("answers expected of one token")
        axes.set_ylabel("free answers, all tokens together")
        axes.set_title(f"Do answers and reports have room in one belief? ({study_name})")
        handles = [
            mark(f"expected, {interval:.0%} of predictions", "#0072B2", "_", line="-", markersize=10),
            mark("given", "#000000", "o", markersize=5.5),
        ]
        named(fig, handles, 2)
    return fig


def _bin_label(low: float, high: float) -> str:
    if low == 0:
        return f"under {high:g}"
    return f"{low:g} to {high:g}" if np.isfinite(high) else f"{low:g} or more"
