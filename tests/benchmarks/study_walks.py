"""Whole simulated studies: 30 people of the plan's worlds through the pages, and the posterior of what was collected.

Usage: python tests/benchmarks/study_walks.py RESULT.csv [--first 0] [--last 9] [--scales slider interface] [--gaussian]

Every study has items, a belief and people of its own. Its people answer freely and compare, as a plan of 30 people and
60 contexts asks them, over HTTP; the database is read by `study=collected` and fitted as by `+exp=human_loss`. Adds a
row per study and scale of reports: the same questions in the same time on the slider and on the eleven buttons. Leaves
out what RESULT.csv has already. With --gaussian draws are of the Gaussian around the mode, in a sixth of the time.
"""

from __future__ import annotations

import argparse
import time
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import xarray as xr
from hidden_recovery import GATE, of_gaussian

from shannon_game import design, simulated
from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.games.registry import chosen_contexts
from shannon_game.experiments.collect.players.crowd import play_all
from shannon_game.experiments.collect.players.demonstration import players_of
from shannon_game.experiments.collect.players.world import with_truth, world_of
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.inference.comparison.participant_fit import Compiled, fit_participants
from shannon_game.models.comparison.participant_data import participant_data

SIZES: dict[str, Any] = {"contexts": 60, "draws": 8, "answers": 6, "comparisons": 8, "scales": ("slider", "interface")}
STUDY: dict[str, Any] = {"n_items": 120, "n_reference_items": 120, "n_candidates": 8, "vocab_size": 500}
DRAWS, TUNE = 75, 15


def promised(study: xr.Dataset, number: int) -> dict[str, float]:
    """Mean width that the plan promises, by scale."""
    costs = {"least_people": 30, "session_minutes": 60.0}
    plan = design(
        study, games="bridge", **SIZES, costs=costs, loss_of="asked", n_screen=60, n_replicates=1, seed=number
    )
    return dict(zip(plan.table["scale"], plan.table["width"], strict=True))


def played(study: xr.Dataset, number: int, scale: str, folder: Path) -> tuple[xr.Dataset, float]:
    """What a study's people left in the database, and the true gap of its items."""
    settings = CollectSettings(
        blocks=[{"game": "cloze", "n_questions": 12}, {"game": "comparison", "n_questions": 16}],
        contexts=60, n_players=30, scale=scale, seed=number, players="simulated", belief="assumed",
    )  # fmt: skip
    url = f"sqlite:///{folder / scale}.sqlite"
    database, asked = open_database(url), chosen_contexts(study, settings)
    collection = open_collection(settings, asked, database)
    world = world_of(asked, "assumed", population=settings.population, seed=number)
    players = list(players_of(asked, settings).items())
    crowd = play_all(players, "cloze", application=app_of(collection), parameters=settings.recruiter.parameters)
    database.close()
    if crowd.problems:
        raise RuntimeError(crowd.problems[0])
    served = save_comparison_study(with_truth(asked, world), folder / f"{scale}.nc")
    generator = asked["target_logprob"].sel(model=asked.attrs["generator"]).to_numpy()
    return collected_study(url=url, served=served), float((generator - world.target_logprob).mean())


def row(number: int, scale: str, *, gaussian: bool) -> dict[str, Any]:
    """Walk one study."""
    study = simulated(**STUDY, seed=number, store_reference=True)
    # the players' own belief is the plan's kind of world, not the simulation's human
    study = study.drop_vars([name for name in study.data_vars if str(name).startswith("human_")])
    with TemporaryDirectory() as folder:
        collected, truth = played(study, number, scale, Path(folder))
    start = time.process_time()
    data = participant_data(collected, scale)
    with mock.patch.object(Compiled, "draws", of_gaussian) if gaussian else nullcontext():
        fit = fit_participants(data, draws=DRAWS, tune=TUNE, thresholds=GATE, seed=number)
    seconds = time.process_time() - start
    lower, median, upper = np.quantile(fit.gap_nats, [0.05, 0.5, 0.95])
    return {
        "engine": "gaussian" if gaussian else "nuts",
        "study": number,
        "scale": scale,
        "true_gap_nats": truth,
        "gap_nats": median,
        "gap_lower_nats": lower,
        "gap_upper_nats": upper,
        "error_nats": median - truth,
        "holds": bool(lower <= truth <= upper),
        "width_nats": upper - lower,
        "promised_width_nats": promised(study, number)[scale],
        "k0": float(np.median(fit.k0)),
        "n_answers": int(data.n_answers.sum()),
        "n_reports": len(data.row_token),
        "converged": fit.convergence.passed,
        "cpu_seconds": seconds,
    }


def main() -> None:
    """Add the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=9)
    parser.add_argument("--scales", nargs="+", default=["slider", "interface"])
    parser.add_argument("--gaussian", action="store_true")
    given = parser.parse_args()
    done = (
        pd.read_csv(given.result) if given.result.exists() else pd.DataFrame({"engine": [], "study": [], "scale": []})
    )
    engine = "gaussian" if given.gaussian else "nuts"
    there = set(zip(done["engine"], done["study"], done["scale"], strict=True))
    for number in range(given.first, given.last + 1):
        for scale in given.scales:
            if (engine, number, scale) not in there:
                found = pd.DataFrame([row(number, scale, gaussian=given.gaussian)]).round(4)
                found.to_csv(given.result, mode="a", header=not given.result.exists(), index=False)
                print(found.to_string())


if __name__ == "__main__":
    main()
