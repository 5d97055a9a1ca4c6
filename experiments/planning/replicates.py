"""Simulated studies of every design, and which design is recommended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.planning.games import Outcome, Planned, play
from shannon_game.experiments.planning.settings import (
    DesignPoint,
    DesignSettings,
    n_people,
    people_minutes,
    wanted_width,
)
from shannon_game.experiments.planning.worlds import PlannedWorld
from shannon_game.inference.progress import stage

COVERAGE_SLACK = 0.05
"""How far below the stated coverage that of a recommended design may lie: 85% for intervals of 90%."""


class DesignRow(column.Row):
    """One design: sizes of its studies, and what simulated studies of it show."""

    label: str | None = column.key("what it is called")
    game: str = column.key("game")
    n_contexts: int = column.key("contexts", setting="experiment.contexts")
    scale: str = column.context("scale of the reports")
    n_draws: int = column.context("draws per context")
    n_answers: int = column.context("free answers per context")
    n_comparisons: int = column.context("comparisons per context")
    n_bets: int = column.context("bets per context")
    n_guesses: int = column.context("guesses per context")
    n_people: int = column.context("people")
    minutes: float = column.estimate("people's time, minutes", unit="min")
    money: float | None = column.detail("people's pay")
    in_budget: bool | None = column.detail("whether it is within the budget")
    wanted_width: float | None = column.context("width that is wanted")
    n_replicates: int = column.context("simulated studies")
    truth: float = column.detail("mean truth of the simulated studies")
    width: float = column.headline("mean width of the interval", se="width_mcse")
    width_90: float = column.detail("width that 90% of the studies keep")
    p_width: float = column.estimate("share of studies with the wanted width", se="p_width_mcse")
    coverage: float = column.estimate("share of intervals that hold the truth", se="coverage_mcse")
    bias: float = column.estimate("mean error", se="bias_mcse")
    rmse: float = column.estimate("root of the mean squared error", se="rmse_mcse")
    bias_to_belief: float = column.detail("mean error against the belief")
    p_right_order: float = column.estimate("share of studies with players in the right order", se="p_right_order_mcse")
    recommended: bool | None = column.flag("whether it is the cheapest of its game that keeps its promise")


def design_table(
    points: Sequence[DesignPoint],
    worlds: Sequence[PlannedWorld],
    settings: DesignSettings,
    fitting: Callable[[DesignPoint, int], int] | None = None,
) -> pd.DataFrame:
    """Simulate every design a few times, and those that may be recommended many times.

    Of each game, designs are taken from the cheapest on; the first that keeps its promise
    (:func:`keeps_promise`) in the many new simulations is the game's recommended one. `fitting` raises the number of
    people where a visit has too few contexts for its questions.
    """
    guesses = float(np.mean([world.guesses_a_token for world in worlds]))
    rows = []
    fewest: dict[DesignPoint, list[Outcome]] = {}
    # a design takes as long as it has contexts
    work, start = np.cumsum([0, *(point.n_contexts for point in points)]), time.monotonic()
    with stage("designs simulated a few times", len(points)) as show:
        for number, point in enumerate(points):
            left = (time.monotonic() - start) * (work[-1] / work[number] - 1) if number else None
            show(number, now=f"{point.game}, {point.n_contexts} contexts", seconds_left=left)
            minutes = people_minutes(point, settings.costs, guesses)
            people = n_people(point, minutes, settings.costs)
            people = people if fitting is None else fitting(point, people)
            rng, sizes = rng_for(settings.seed, f"screen {point}"), replace(point, n_contexts=0)
            if settings.quick and sizes in fewest:
                found = narrower(fewest[sizes], point.n_contexts / min(settings.contexts))
            else:
                found = simulated_studies(point, people, worlds, settings, settings.n_screen, rng)
                fewest[sizes] = found
            rows.append(_row(point, people, minutes, found, settings))
    table = pd.DataFrame(rows)
    if settings.quick:
        kept = table["in_budget"] & (table["p_width"] >= settings.assurance)
        first = table[kept].sort_values("minutes", kind="stable").drop_duplicates("game").index
        return table.assign(recommended=table.index.isin(first))
    hopeful = table[table["in_budget"] & (table["p_width"] > 0.5)].sort_values("minutes", kind="stable")
    recommended: dict[str, int] = {}
    # at most: a game's others are left out once one keeps its promise
    with stage("designs simulated many times, at most", len(hopeful)) as show:
        for number, at in enumerate(hopeful.index.tolist()):
            show(number, now=points[at].game)
            if points[at].game in recommended:
                continue
            people, minutes = int(rows[at]["n_people"]), float(rows[at]["minutes"])
            rng = rng_for(settings.seed, f"many {points[at]}")
            found = simulated_studies(points[at], people, worlds, settings, settings.n_replicates, rng)
            rows[at] = _row(points[at], people, minutes, found, settings)
            if keeps_promise(rows[at], settings):
                recommended[points[at].game] = at
    return pd.DataFrame(rows).assign(recommended=[at in recommended.values() for at in range(len(rows))])


def simulated_studies(  # noqa: PLR0917 - what a study is simulated from
    point: DesignPoint,
    people: int,
    worlds: Sequence[PlannedWorld],
    settings: DesignSettings,
    n: int,
    rng: np.random.Generator,
) -> list[Outcome]:
    """Simulate a design as often as asked; worlds take turns."""
    planned = [Planned(world, point, people, settings) for world in worlds]
    found = []
    with stage("studies", n) as show:
        for number in range(n):
            show(number)
            found.append(play(planned[number % len(planned)], rng))
    return found


def narrower(found: Sequence[Outcome], times: float) -> list[Outcome]:
    """Outcomes as with so many times the contexts: errors and standard errors fall with the root."""
    root = times**-0.5
    return [replace(one, value=one.truth + root * (one.value - one.truth), se=root * one.se) for one in found]


def keeps_promise(row: Any, settings: DesignSettings) -> bool:
    """Whether width and coverage are as promised, by a standard error of the simulation."""
    wide_enough = row["p_width"] - row["p_width_mcse"] >= settings.assurance
    covers = row["coverage"] - row["coverage_mcse"] >= settings.interval - COVERAGE_SLACK
    return bool(wide_enough and covers)


def summarise(found: Sequence[Outcome], wanted: float, interval: float) -> dict[str, Any]:
    """Width, coverage, bias, error and order over simulated studies, each with its Monte-Carlo standard error."""
    width = np.array([one.width(interval) for one in found])
    error = np.array([one.value - one.truth for one in found])
    kept, covered = (width <= wanted) * 1.0, (np.abs(error) <= width / 2) * 1.0
    right, belief = np.array([one.right_order for one in found]), np.array([one.value - one.belief for one in found])
    n = error.size
    rmse = float(np.sqrt(np.mean(error**2)))
    return {
        "n_replicates": n,
        "truth": float(np.mean([one.truth for one in found])),
        "width": float(np.mean(width)),
        "width_mcse": _mcse(width),
        "width_90": float(np.quantile(width, 0.9)),
        "p_width": float(kept.mean()),
        "p_width_mcse": _share_mcse(kept),
        "coverage": float(covered.mean()),
        "coverage_mcse": _share_mcse(covered),
        "bias": float(error.mean()),
        "bias_mcse": _mcse(error),
        "rmse": rmse,
        "rmse_mcse": _mcse(error**2) / (2 * rmse) if rmse > 0 else _mcse(error),
        "bias_to_belief": float(belief.mean()),
        "p_right_order": float(right.mean()),
        "p_right_order_mcse": _share_mcse(right),
    }


def _mcse(values: Any) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _share_mcse(hits: Any) -> float:
    """Of a share, half a case added on either side: no share of a few is known for sure."""
    n, p = len(hits), float(np.mean(hits))
    middle = (n * p + 0.5) / (n + 1)
    return float(np.sqrt(middle * (1 - middle) / n))


def _row(
    point: DesignPoint, people: int, minutes: float, found: Sequence[Outcome], settings: DesignSettings
) -> dict[str, Any]:
    own = [one.minutes for one in found]
    # a study that stops by itself takes what it takes
    minutes = float(np.mean(own)) if np.isfinite(own).all() else minutes
    money = minutes / 60 * settings.costs.pay_per_hour
    in_budget = (settings.budget_minutes is None or minutes <= settings.budget_minutes) and (
        settings.budget_money is None or money <= settings.budget_money
    )
    wanted = wanted_width(point.game, settings)
    return {
        **asdict(point),
        "n_people": people,
        "minutes": minutes,
        "money": money,
        "in_budget": in_budget,
        "wanted_width": wanted,
        **summarise(found, wanted, settings.interval),
    }
