"""Recover the loss gap of players whose belief is not of the model's form.

Usage: python tests/benchmarks/hidden_recovery.py KEPT.npz RESULT.csv --cells CELL ... [--first 0] [--last 9]

KEPT.npz holds the beliefs (`hidden_beliefs.beliefs`, made where it is missing). A CELL is one of

    answers:BELIEF:K0:SCALE               free answers and reports of people with a typical slope K0
    live:BELIEF:WHO[:small]               reports on draws of a live model; no other token is known
    game:PLAYER:WHO                       reports on questions of the comparison game

WHO is people, exact or rounded (a language model's reports). FOLDER is that of the comparison game's public data.
Adds one row per study to RESULT.csv and leaves out what it has already, so that a run that was stopped goes on. With
--gaussian draws are of the Gaussian around the mode, in a sixth of the time; NUTS on some of the same studies says by
how much the two differ.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from functools import cache, partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any
from unittest import mock

import hidden_beliefs as hidden
import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.inference.comparison.anchors import Anchor
from shannon_game.inference.comparison.participant_fit import Compiled, ParticipantFit, fit_participants
from shannon_game.inference.comparison.participant_gap import SharedBelief
from shannon_game.inference.posterior.thresholds import GateThresholds
from shannon_game.models.comparison.participant_data import participant_data
from shannon_game.models.comparison.participants import GRID

SCALES = (1.0, 0.5, 2.0)
GRIDS = ("slider", "interface")
CELLS = (
    *(f"answers:{belief}:{k0:g}:{scale}" for k0 in SCALES for scale in GRIDS for belief in hidden.BELIEFS),
    *(f"live:{belief}:{who}" for belief in ("hot", "noisy", "unigrams") for who in ("people", "exact", "rounded")),
)
TAIL = 0.05
DRAWS, TUNE = 75, 15
GATE = GateThresholds(r_hat=1.03, ess_bulk=150, ess_tail=100)
"""For quantiles of one study among hundreds."""


def study_of(cell: str, number: int, kept: Path, folder: Path) -> tuple[xr.Dataset, hidden.Truth, dict[str, Any]]:
    """A study, its truth, and how its data are read."""
    kind, name, *how = cell.split(":")
    if kind == "answers":
        made, truth = hidden.simulated(_beliefs(folder, kept), name, float(how[0]), number, how[1])
        return made, truth, {"grid": how[1]}
    options = {"people": how[0] == "people", "rounded": how[0] == "rounded"}
    if kind == "live":
        pattern = hidden.SMALL if "small" in how else hidden.PATTERN
        made, truth = hidden.live_items(_beliefs(folder, kept), name, number, **options, pattern=pattern)
    else:
        made, truth = hidden.fresh_items(folder, number, name, **options)
    if options["people"]:
        return made, truth, {}
    return made, truth, {"player": name, "rounding": "interface" if options["rounded"] else None}


@cache
def _beliefs(folder: Path, kept: Path) -> dict[str, hidden.Array]:
    return hidden.beliefs(folder, kept)


def row(one: tuple[str, int], *, kept: Path, folder: Path, anchor: str | None, gaussian: bool) -> dict[str, Any]:
    """Simulate and estimate one study."""
    made, truth, reading = study_of(*one, kept, folder)
    data = participant_data(made, **reading)
    start = time.process_time()
    chosen = Anchor("assumed") if data.is_player else anchor and Anchor(anchor)
    with mock.patch.object(Compiled, "draws", of_gaussian) if gaussian else nullcontext():
        fit = fit_participants(data, anchor=chosen, draws=DRAWS, tune=TUNE, thresholds=GATE, seed=one[1])
    engine = "gaussian" if gaussian else "nuts"
    found = {"engine": engine, "cell": one[0], "study": one[1], "anchor": fit.anchor.name, **compared(fit, truth)}
    found |= {name: getattr(fit.convergence, name) for name in ("r_hat_max", "ess_bulk_min", "ess_tail_min")}
    return found | {"converged": fit.convergence.passed, "cpu_seconds": round(time.process_time() - start, 2)}


def of_gaussian(
    compiled: Compiled, rng: np.random.Generator, earlier: Any = None, *, draws: int, chains: int, **_: Any
) -> tuple[Any, SharedBelief]:
    """Draws of the Gaussian around the mode, instead of trajectories."""
    points = compiled.gaussian.points(chains * draws, rng)
    idata = compiled.program.posterior(points.reshape(chains, draws, -1), {"diverging": np.zeros((chains, draws))})
    return idata, compiled.belief_given((compiled.program.wanted(x) for x in points), rng)


def compared(fit: ParticipantFit, truth: hidden.Truth) -> dict[str, Any]:
    """Estimates beside the truth, nats: all items, those with a report or an answer, people one by one, each item."""
    item_truth, informed = truth["item_gap_nats"][fit.data.position], fit.data.informed
    found = _beside("gap", item_truth.mean(), fit.gap_nats)
    found |= _beside("informed", item_truth[informed].mean(), fit.informed_gap_nats)
    found |= {f"people_{name}": np.nan for name in ("truth", "lower", "upper", "covers")}
    if not fit.data.is_player:
        own, bounds = truth.get("people_gap_nats", item_truth.mean()), fit.people_gap_bounds()
        ends = float(np.quantile(bounds[:, 0], TAIL)), float(np.quantile(bounds[:, 1], 1 - TAIL))
        found |= {"people_truth": own, "people_lower": ends[0], "people_upper": ends[1]}
        found["people_covers"] = float(ends[0] <= own <= ends[1])
    # draws of log-ratios lie on a grid
    low, high = np.quantile(fit.item_gap_nats, [TAIL, 1 - TAIL], axis=0) + np.array([[-GRID.step], [GRID.step]])
    found["item_coverage"] = float(((low <= item_truth) & (item_truth <= high)).mean())
    found["k0_ratio"] = float(np.median(fit.k0)) / truth.get("k0", np.nan)
    return found


def _beside(name: str, truth: float, draws: hidden.Array) -> dict[str, Any]:
    lower, median, upper = np.quantile(draws, [TAIL, 0.5, 1 - TAIL])
    values = {"truth": truth, "median": median, "lower": lower, "upper": upper, "covers": lower <= truth <= upper}
    return {f"{name}_{key}": value for key, value in values.items()}


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Bias, coverage and width of each cell."""
    error = rows["gap_median"] - rows["gap_truth"]
    shown = rows.assign(bias=error, rmse=error**2, width=rows["gap_upper"] - rows["gap_lower"])
    columns = ["bias", "rmse", "width", "gap_covers", "informed_covers", "people_covers", "item_coverage", "k0_ratio"]
    found = shown.groupby("cell", sort=False)[[*columns, "converged", "cpu_seconds"]].mean()
    return found.assign(rmse=np.sqrt(found["rmse"])).round(3)


def main() -> None:
    """Add the rows that are missing, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kept", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--cells", nargs="+", default=CELLS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--anchor")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--gaussian", action="store_true")
    given = parser.parse_args()
    done = pd.read_csv(given.result) if given.result.exists() else pd.DataFrame({"cell": [], "study": []})
    there = set(zip(done["cell"], done["study"], strict=True))
    wanted = [(cell, at) for at in range(given.first, given.last + 1) for cell in given.cells]
    missing = [one for one in wanted if one not in there]
    work = partial(row, kept=given.kept, folder=given.folder, anchor=given.anchor, gaussian=given.gaussian)
    with Pool(given.jobs) as pool:
        for found in pool.imap_unordered(work, missing):
            pd.DataFrame([found]).to_csv(given.result, mode="a", header=not given.result.exists(), index=False)
    print(summary(pd.read_csv(given.result)).to_string())


if __name__ == "__main__":
    main()
