"""What a fit of the participant model costs, by the numbers of people and items, and how much memory the largest takes.

    python tests/benchmarks/cost_by_size.py RESULT.csv FIGURE.png
    python tests/benchmarks/cost_by_size.py --memory

The first times a gradient and counts the steps of a draw on simulated studies in which everybody answers up to 36
questions, in processor seconds, after a short warm-up. The second gives the peak memory of everything from the study to
the loss of 300 people on 1,000 items; it takes draws near the start in place of the sampler's, as they need the same
room.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import inference
from estimators.comparison import SimulationSettings, rounding_scheme, simulate_comparison_study
from inference.posterior import hamiltonian
from models.comparison.participant_data import ParticipantData, participant_data
from models.comparison.participant_density import participant_density

PEOPLE, ITEMS = (30, 100, 300), (120, 350, 1000)
ANSWERS = 36
TUNE, DRAWS = 300, 100
CHAINS, KEPT = 4, 4000


def data_of(n_people: int, n_items: int, n_candidates: int = 100) -> ParticipantData:
    """Simulated answers, about as many a person as in the public data."""
    study = simulate_comparison_study(
        SimulationSettings(n_items=n_items, n_participants=n_people, n_candidates=n_candidates)
    )
    # everybody is asked everything; some of it is kept
    rng = np.random.default_rng(0)
    who, item = (study[name].to_numpy() for name in ("participant", "response_item"))
    order = np.lexsort((rng.random(who.size), who))
    rank = np.arange(who.size) - np.searchsorted(who[order], who[order])
    kept = order[rank < ANSWERS]
    missing = np.setdiff1d(item, item[kept])
    kept = np.union1d(kept, [np.flatnonzero(item == one)[0] for one in missing])
    return participant_data(study.isel(response=kept.astype(int)), rounding_scheme("interface"))


def cost(n_people: int, n_items: int) -> dict[str, float]:
    """Microseconds a gradient, and gradients a draw."""
    data = data_of(n_people, n_items)
    density = participant_density(data)
    answers = {name: getattr(data, name) for name in ("row_pair", "row_participant", "row_box")}
    given = density.arguments(**answers, present=data.answers.astype(float), k0=1.0)
    rng = np.random.default_rng(0)
    found = hamiltonian.chain(
        density.function, given, density.start, draws=DRAWS, tune=TUNE, target_accept=0.8, rng=rng, tell=lambda _: None
    )
    gradient = np.empty_like(density.start)
    spent = []
    for x in found.draws[:: DRAWS // 20]:
        start = time.thread_time()
        for _ in range(20):
            density.function(x, gradient, *given)
        spent.append((time.thread_time() - start) / 20)
    micro = 1e6 * float(np.min(spent))
    steps = float(found.stats["n_steps"].mean())
    return {
        "people": n_people,
        "items": n_items,
        "answers": data.row_box.size,
        "parameters": density.start.size,
        "gradient_us": micro,
        "gradients_a_draw": steps,
        "seconds_a_1000_draws": micro * steps / 1e3,
    }


def draw_figure(table: pd.DataFrame, path: Path) -> None:
    """Processor time of a gradient by people, a line a number of items; the step size of one short chain is chance."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = fig.add_subplot()
    for (items, part), colour in zip(table.groupby("items"), ("#004488", "#BB5566", "#B8860B"), strict=True):
        axes.plot(part["people"], part["gradient_us"], "o-", color=colour, label=f"{items:,} items")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(PEOPLE, [str(n) for n in PEOPLE])
    ticks = (50, 100, 200, 500, 1000)
    axes.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    each = (table["answers"] / table["people"]).mean()
    axes.set_xlabel(f"people, about {each:.0f} answers each")
    axes.set_ylabel("log-density with its gradient, microseconds")
    axes.set_title("Cost of the participant model", fontsize=10)
    axes.legend(frameon=False)
    fig.savefig(path, dpi=150)


def memory() -> None:
    """Peak memory of a fit to 300 people and 1,000 items."""

    def near(
        density: Callable[..., float], arguments: Any, start: NDArray[np.float64], *, draws: int, **_: Any
    ) -> hamiltonian.Chain:
        made = start + 0.1 * np.random.default_rng(1).normal(size=(draws, start.size))
        stats = {name: np.ones(draws) for name in ("lp", "energy", "n_steps")}
        return hamiltonian.Chain(made, {**stats, "diverging": np.zeros(draws, dtype=bool)})

    hamiltonian.chain = near
    data = data_of(300, 1000)
    fit = inference.fit_participants(data, draws=KEPT, tune=500, chains=CHAINS, keep=2000, seed=1, progress=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(data.participant)} people, {len(data.item)} items, {data.row_box.size} answers, {fit.belief.headline()}"
    )
    tokens = data.rest_item.size + data.tail_item.size + data.pair_item.size
    print(f"{CHAINS} chains of {KEPT} draws, {tokens} tokens: peak {peak:.2f} GiB")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", nargs="?", type=Path)
    parser.add_argument("figure", nargs="?", type=Path)
    parser.add_argument("--memory", action="store_true")
    given = parser.parse_args()
    if given.memory:
        memory()
    if given.result is not None:
        rows = []
        for n_items in ITEMS:
            for n_people in PEOPLE:
                rows.append(cost(n_people, n_items))
                pd.DataFrame(rows).round(3).to_csv(given.result, index=False)
                print(rows[-1], flush=True)
        if given.figure is not None:
            draw_figure(pd.DataFrame(rows), given.figure)


if __name__ == "__main__":
    main()
