"""Whole simulated studies of the plans that `shannon-game study` writes, through the pages, beside what they promise.

Usage: python tests/benchmarks/study_walks.py RESULT.csv [--first 0] [--last 9] [--games cloze loss] [--nuts]

Every study has a belief and people of its own, who go through all pages from consent to completion code. `cloze` is
25 sentences by 40 people: the error of cloze probabilities, and the share of them that are as near as the plan says.
`loss` is 60 contexts with an interval of 0.8 nats: the posterior of `human_loss` on what `study=collected` reads. Adds
a row per study, and leaves out what RESULT.csv has already. Draws are of the Gaussian around the mode, or with --nuts
of the sampler, in six times the time.
"""

from __future__ import annotations

import argparse
import time
from contextlib import chdir, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import xarray as xr
from hidden_recovery import GATE, of_gaussian

from shannon_game import simulated, tvd
from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.players.crowd import play_all
from shannon_game.experiments.collect.players.demonstration import players_of
from shannon_game.experiments.collect.players.people import Person
from shannon_game.experiments.collect.players.world import World, with_truth
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.planning.own_study import half_width, loss_sizes, loss_width, read_question, study_command
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.inference.comparison.participant_fit import Compiled, fit_participants
from shannon_game.models.comparison.participant_data import participant_data

SENTENCES = Path(__file__).with_name("sentences.csv")
CLOZE = "cloze norms of 25 sentences by 40 people"
LOSS = "loss of people on 60 contexts, interval of 0.8 nats"
CONTEXTS: dict[str, Any] = {"n_items": 60, "n_reference_items": 60, "n_candidates": 8, "vocab_size": 500}
DRAWS, TUNE = 75, 15


def played(study: xr.Dataset, settings: CollectSettings) -> World:
    """Let a plan's people play in the database of its settings, and give what they believe."""
    database = open_database(settings.url)
    collection = open_collection(settings, study, database)
    players = list(players_of(study, settings).items())
    application = app_of(collection)
    crowd = play_all(players, settings.game[0], application=application, parameters=settings.recruiter.parameters)
    database.close()
    if crowd.problems:
        raise RuntimeError(crowd.problems[0])
    assert isinstance(players[0][1], Person)
    return players[0][1].people.world


def cloze_row(number: int, *, nuts: bool) -> dict[str, Any]:
    """Walk a study of norms: each probability of a target beside what was believed."""
    del nuts
    study_command([str(SENTENCES), CLOZE])
    settings = CollectSettings(plan=Path("my_study/plan.yaml"), players="simulated", seed=number)
    world = played(settings.study_of(collect_demo()), settings)
    items = tvd(collected_study(url=settings.url, game="cloze")).tables["items"].set_index("item")
    truth = np.exp(world.target_logprob)
    error = items.loc[world.name, "cloze_probability"].to_numpy() - truth
    half = half_width(settings.n_players)
    return {
        "engine": "share of answers",
        "truth": truth.mean(),
        "error": error.mean(),
        "rms_error": np.sqrt((error**2).mean()),
        "holds": (np.abs(error) <= half).mean(),
        # the widest interval is that of one half
        "width": 2 * 1.645 * np.sqrt(truth * (1 - truth) / settings.n_players).max(),
        "promised_width": 2 * half,
        "n_people": settings.n_players,
        "n_answers": int(items["n_answers"].sum()),
    }


def loss_row(number: int, *, nuts: bool) -> dict[str, Any]:
    """Walk a study of people's loss."""
    study = simulated(**CONTEXTS, seed=number, store_reference=True)
    # the players' own belief is the plan's kind of world, not the simulation's human
    study = study.drop_vars([name for name in study.data_vars if str(name).startswith("human_")])
    asked = read_question(LOSS)
    sizes = loss_sizes(asked, CONTEXTS["n_items"])
    blocks = [{"game": game, "n_questions": n} for game, n in sizes.questions.items()]
    settings = CollectSettings(
        blocks=blocks, n_sessions=sizes.people, scale="slider", seed=number, players="simulated", belief="assumed"
    )
    world = played(study, settings)
    served = save_comparison_study(with_truth(study, world), Path("served.nc"))
    data = participant_data(collected_study(url=settings.url, served=served), "slider")
    with nullcontext() if nuts else mock.patch.object(Compiled, "draws", of_gaussian):
        fit = fit_participants(data, draws=DRAWS, tune=TUNE, thresholds=GATE, seed=number)
    generator = study["target_logprob"].sel(model=study.attrs["generator"]).to_numpy()
    truth = float((generator - world.target_logprob).mean())
    lower, median, upper = np.quantile(fit.gap_nats, [0.05, 0.5, 0.95])
    return {
        "engine": "nuts" if nuts else "gaussian",
        "truth": truth,
        "error": median - truth,
        "rms_error": abs(median - truth),
        "holds": float(lower <= truth <= upper),
        "width": upper - lower,
        "promised_width": loss_width(CONTEXTS["n_items"], sizes.answers),
        "n_people": sizes.people,
        "n_answers": int(data.n_answers.sum()) + len(data.row_token),
    }


def row(number: int, game: str, *, nuts: bool) -> dict[str, Any]:
    """Walk one study in a folder of its own."""
    start = time.process_time()
    with TemporaryDirectory() as folder, chdir(folder):
        found = (cloze_row if game == "cloze" else loss_row)(number, nuts=nuts)
    return {"game": game, "study": number, **found, "cpu_seconds": time.process_time() - start}


def main() -> None:
    """Add the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=9)
    parser.add_argument("--games", nargs="+", default=["cloze", "loss"])
    parser.add_argument("--nuts", action="store_true")
    given = parser.parse_args()
    result = given.result.absolute()
    there = set[tuple[str, int]]()
    if result.exists():
        done = pd.read_csv(result)
        there = set(zip(done["game"], done["study"], strict=True))
    for number in range(given.first, given.last + 1):
        for game in given.games:
            if (game, number) not in there:
                found = pd.DataFrame([row(number, game, nuts=given.nuts)]).round(4)
                found.to_csv(result, mode="a", header=not result.exists(), index=False)
                print(found.to_string())


if __name__ == "__main__":
    main()
