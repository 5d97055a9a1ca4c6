"""``+exp=design look=back``: which questions were worth their time, and what would be better ones."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.comparison.terms import log_terms, response_pairs
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import light_grid, percent
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for, rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.experiments.planning.figures import COVERS_TOO_LITTLE, GAME_LABELS
from shannon_game.experiments.planning.replicates import simulated_studies, summarise
from shannon_game.experiments.planning.settings import (
    AssumedPeople,
    Costs,
    DesignPoint,
    DesignSettings,
    n_people,
    people_minutes,
)
from shannon_game.experiments.planning.worlds import draw_worlds, study_contexts
from shannon_game.experiments.studies.comparison.designed import designed_simulated
from shannon_game.inference.progress import stage
from shannon_game.inference.settings import Count, Probability

_ON_SCREEN = ("label", "minutes", "width", "p_width", "coverage", "bias", "rmse", "p_right_order")
_PLAYED = 29  # people whose answers were published


class QuestionWorthSettings(Seeded):
    """Settings of :func:`question_worth`."""

    interval: Probability = 0.9
    """Stated coverage of the intervals of the designs."""
    n_replicates: Count = 100
    """Simulated studies of every design."""
    n_contexts: Count = 400
    """Contexts of the embedded study, of which the designs are made."""
    vocab_size: Count = 1000
    """Tokens of its language."""
    assumed: AssumedPeople = AssumedPeople()
    """What people may be like."""
    costs: Costs = Costs()
    """People's time."""


@experiment(QuestionWorthSettings)
def question_worth(study: xr.Dataset, settings: QuestionWorthSettings) -> ExperimentResult:
    """Say how much of equation 5's estimate each question carries, and what other games give for the same time.

    A question is an item and a candidate. What it carries is its share of the item's sum of importance weights: a
    share near 0 says only that the candidate is nothing to people, a share near 1 that the item's number is one
    report. The other designs are simulated on the embedded study, with people as the settings assume them.
    """
    questions = _questions(study)
    n_items, n_responses = int(questions["item"].nunique()), int(questions["n_responses"].sum())
    table = _designs(n_items, n_responses, settings)
    about = str(study.attrs["name"])
    dataset = xr.Dataset({**table_variables(table, "row"), "share": ("question", questions["share"].to_numpy())})
    return ExperimentResult(
        table=table,
        dataset=dataset,
        tables={"questions": questions},
        figures={"question_worth": question_worth_figure(questions, table, about, settings.interval)},
        text=_summary(questions, table, settings.interval),
        on_screen=table[[*_ON_SCREEN]],
    )


@styled
def question_worth_figure(
    questions: pd.DataFrame, table: pd.DataFrame, study_name: str = "", interval: float = 0.9
) -> Figure:
    """What each answer carries, and what the same time buys in other games."""
    fig = new_figure(10.6, 3.7)
    left, right = fig.subplots(1, 2, width_ratios=[1, 1.1])
    _carried(left, _by_answer(questions))
    _bought(right, table, interval)
    left.set_title(f"What each answer carried ({study_name})")
    right.set_title(f"What {table['minutes'].iloc[0]:,.0f} minutes of people's time buy (simulated)")
    return fig


def _questions(study: xr.Dataset) -> pd.DataFrame:
    pairs = response_pairs(study)
    log_term = pd.Series(log_terms(pairs))
    weight = np.exp(log_term - log_term.groupby(pairs.item).transform("max"))
    frame = pd.DataFrame({"item": pairs.item, "candidate": pairs.candidate, "weight": weight})
    frame = frame.groupby(["item", "candidate"], sort=False)["weight"].agg(["sum", "size"]).reset_index()
    total = frame.groupby("item")["sum"].transform("sum")
    place = {label: at for at, label in enumerate(study["item"].to_numpy().tolist())}
    position = np.array([place[label] for label in frame["item"].tolist()])
    return pd.DataFrame(
        {
            "item": item_labels(study)[position],
            "target": study["target_token"].to_numpy()[position],
            "candidate": frame["candidate"],
            "n_responses": frame["size"],
            "share": frame["sum"] / total,
        }
    ).sort_values("share", ascending=False, ignore_index=True)


def _by_answer(questions: pd.DataFrame) -> NDArray[np.float64]:
    """Share of each answer, largest first: answers to one question have equal parts of its."""
    each = questions["share"] / questions["n_responses"]
    return np.sort(np.repeat(each.to_numpy(), questions["n_responses"].to_numpy()))[::-1]


def _carry(share: NDArray[np.float64], part: float) -> int:
    """How many answers carry a part of the estimate."""
    return int(np.searchsorted(np.cumsum(share) / share.sum(), part)) + 1


def _designs(n_items: int, n_responses: int, settings: QuestionWorthSettings) -> pd.DataFrame:
    embedded = designed_simulated(
        n_items=settings.n_contexts,
        vocab_size=settings.vocab_size,
        seed=settings.seed,
        design={"n_draws": 1, "n_answers": 1, "n_comparisons": 1},
    )
    planned = DesignSettings(seed=settings.seed, assumed=settings.assumed, costs=settings.costs)
    worlds = draw_worlds(study_contexts(embedded), planned, "question worth")
    rows = []
    points = _points(n_items, n_responses, settings.costs)
    with stage("designs", len(points)) as show:
        for number, (label, point) in enumerate(points):
            show(number)
            minutes = people_minutes(point, settings.costs, 1.0)
            people = n_people(point, minutes, settings.costs.changed(least_people=_PLAYED))
            rng = rng_for(settings.seed, f"question worth {point}")
            found = simulated_studies(point, people, worlds, planned, settings.n_replicates, rng)
            own = summarise(found, planned.width_nats, settings.interval)
            rows.append({"label": label, **asdict(point), "n_people": people, "minutes": minutes, **own})
    return pd.DataFrame(rows)


def _points(n_items: int, n_responses: int, costs: Costs) -> list[tuple[str, DesignPoint]]:
    each = max(round(n_responses / n_items), 1)
    seconds = n_responses * costs.comparison_seconds
    asked = DesignPoint("comparison", n_items, "interface", n_draws=each, n_comparisons=each)
    half = max(round(seconds / n_items / (costs.answer_seconds + costs.comparison_seconds)), 2)
    bridge = DesignPoint("bridge", n_items, "slider", n_draws=half, n_answers=half, n_comparisons=half)
    bets = DesignPoint("bets", max(round(seconds / costs.bet_seconds), 2), n_bets=1)
    return [
        ("as it was asked: 11 boxes", asked),
        ("the same, a slider", replace(asked, scale="slider")),
        ("half free answers, a slider", bridge),
        ("one bet a context", bets),
    ]


def _carried(axes: Axes, share: NDArray[np.float64]) -> None:
    n = share.size
    carried = np.concatenate([[0.0], np.cumsum(share) / share.sum()])
    axes.plot(np.arange(n + 1), carried, color="#0072B2")
    for part in (0.5, 0.9):
        count = _carry(share, part)
        axes.plot([count, count], [0, part], color="0.55", linewidth=0.8, linestyle=":")
        axes.plot(count, part, "o", color="#0072B2", markersize=5)
        axes.annotate(
            f"{count:,} answers carry {part:.0%}", (count, part), (8, -12), textcoords="offset points", fontsize=8.5
        )
    axes.set_xlim(0, n)
    axes.set_ylim(0, 1.02)
    percent(axes.yaxis)
    light_grid(axes, "y")
    axes.set_xlabel(f"answers, the weightiest first (of {n:,})")
    axes.set_ylabel("share of the estimate that they carry")


def _bought(axes: Axes, table: pd.DataFrame, interval: float) -> None:
    rows = rows_of(table)
    for at, row in enumerate(rows):
        good = row.coverage >= interval - COVERS_TOO_LITTLE
        axes.barh(-at, row.width, 0.55, color="#0072B2" if good else "white", edgecolor="#0072B2", zorder=2)
        said = f"covers {row.coverage:.0%}, off by {round(row.bias, 2) + 0.0:+.2f}"
        axes.annotate(said, (row.width, -at), (5, 0), textcoords="offset points", va="center", fontsize=8.5)
    labels = [f"{row.label}\n{GAME_LABELS[row.game]}; {row.n_contexts} contexts" for row in rows]
    axes.set_yticks([-at for at in range(len(rows))], labels, fontsize=8.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, float(table["width"].max()) * 1.75)
    light_grid(axes, "x")
    axes.set_xlabel(f"mean width of the {interval:.0%} interval, nats; hollow: covers too little")


def _summary(questions: pd.DataFrame, table: pd.DataFrame, interval: float) -> str:
    share = _by_answer(questions)
    bought = ", ".join(f"{row.label} {row.width:.2f} (covers {row.coverage:.0%})" for row in rows_of(table))
    return (
        f"**{_carry(share, 0.5):,} of {share.size:,} answers carry half of equation 5's estimate**, and "
        f"{_carry(share, 0.9):,} carry 90% of it, each item counting the same. The other answers say only that people "
        f"give a candidate next to nothing. For the same time, the {interval:.0%} intervals of other designs have "
        f"these mean widths in nats (simulated): {bought}."
    )
