"""``+exp=design look=back``: which questions were worth their time, and what would be better ones."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.comparison.terms import log_terms, response_pairs
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.harness.figures import Series, forest, new_figure
from shannon_game.experiments.harness.marks import light_grid, percent, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for, rows_of
from shannon_game.experiments.planning.figures import COVERS_TOO_LITTLE
from shannon_game.experiments.planning.replicates import DesignRow, simulated_studies, summarise
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

_PLAYED = 29  # people whose answers were published


class QuestionWorthSettings(Seeded):
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


@experiment(QuestionWorthSettings, row=DesignRow)
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
    variables: dict[str, Any] = DesignRow.variables(table, "row")
    dataset = xr.Dataset({**variables, "share": ("question", questions["share"].to_numpy())})
    return ExperimentResult(
        table=table,
        dataset=dataset,
        tables={"questions": questions},
        figures={"question_worth": question_worth_figure(questions, table, about, settings.interval)},
        text=_summary(questions, table, settings.interval),
    )


@styled
def question_worth_figure(
    questions: pd.DataFrame, table: pd.DataFrame, study_name: str = "", interval: float = 0.9
) -> Figure:
    """What each answer carries, and what the same time buys in other games."""
    fig = new_figure(4.5, 5.4)
    above, below = fig.subplots(2, 1, height_ratios=[1.2, 1])
    _carried(above, _by_answer(questions))
    _bought(below, table, interval)
    titled(fig, "Which questions were worth their time?", study_name)
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
        ("comparisons, 11 boxes", asked),
        ("comparisons, slider", replace(asked, scale="slider")),
        ("half free answers, slider", bridge),
        ("one bet per context", bets),
    ]


def _carried(axes: Axes, share: NDArray[np.float64]) -> None:
    n, half = share.size, _carry(share, 0.5)
    axes.plot(np.arange(n + 1), np.concatenate([[0.0], np.cumsum(share) / share.sum()]), color="#0072B2", linewidth=2)
    axes.plot([half, half, 0], [0, 0.5, 0.5], color="0.4", linewidth=1, linestyle=":")
    axes.annotate(f"{half:,} of {n:,} answers: half", (half, 0.5), (8, -4), textcoords="offset points")
    axes.set(xlim=(0, n), ylim=(0, 1.02), xlabel="answers, largest weight first", ylabel="share of the estimate")
    percent(axes.yaxis)
    light_grid(axes, "y")
    axes.set_title("Few answers carry the estimate", fontsize=10)


def _bought(axes: Axes, table: pd.DataFrame, interval: float) -> None:
    rows = table.assign(
        label=table["label"].str.replace(", ", ",\n"),
        hollow=table["coverage"] < interval - COVERS_TOO_LITTLE,
    )
    heights = forest(axes, rows, [Series("width", size=8)])
    for row, height in zip(rows_of(table), heights, strict=True):
        said = f"{round(row.coverage * row.n_replicates)} of {row.n_replicates}"
        said += "\nhold the truth" if height == heights[0] else ""
        axes.text(1.02, height, said, transform=axes.get_yaxis_transform(), va="center")
    axes.set_xlim(0, 1.1 * float(table["width"].max()))
    light_grid(axes, "x")
    axes.set_xlabel(f"mean width of the {interval:.0%} interval, nats")
    axes.set_title(f"What {table['minutes'].iloc[0]:,.0f} minutes buy, simulated", fontsize=10)


def _summary(questions: pd.DataFrame, table: pd.DataFrame, interval: float) -> str:
    share = _by_answer(questions)
    bought = ", ".join(f"{row.label} {row.width:.2f} (covers {row.coverage:.0%})" for row in rows_of(table))
    return (
        f"**{_carry(share, 0.5):,} of {share.size:,} answers carry half of equation 5's estimate**, and "
        f"{_carry(share, 0.9):,} carry 90% of it, each item counting the same. The other answers say only that people "
        f"give a candidate next to nothing. For the same time, the {interval:.0%} intervals of other designs have "
        f"these mean widths in nats (simulated): {bought}."
    )
