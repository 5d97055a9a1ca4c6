"""A collection on PostgreSQL: played, loaded, exported, a participant deleted, as on SQLite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.experiments.collect.__main__ import main
from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.players.crowd import play_all
from shannon_game.experiments.collect.players.people import Person, simulated_people
from shannon_game.experiments.collect.players.world import world_of
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.harness.csv_tables import read_guarded_csv
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from tests.benchmarks.postgres import private_cluster, programs

pytestmark = [pytest.mark.slow, pytest.mark.subprocess]


@pytest.mark.skipif(programs() is None, reason="no PostgreSQL is installed")
def test_a_collection_on_postgresql(tmp_path: Path) -> None:
    study = simulated(n_items=12, n_reference_items=12, n_candidates=4, vocab_size=80)
    people = simulated_people(world_of(study), ParticipantPopulation(), 3, 0)
    settings = CollectSettings(game=("comparison", "cloze", "bets"), n_questions=4, training_rounds=1)
    with private_cluster() as url:
        database = open_database(url)
        collection = open_collection(settings, study, database)
        for game in settings.game:
            # each game has its own people: 12 items are too few for one person in three games
            players = [(f"{game}-{number}", Person(people, number)) for number in range(3)]
            parameters = settings.recruiter.parameters
            crowd = play_all(players, game, application=app_of(collection), parameters=parameters)
            assert crowd.problems == ()
        database.close()
        plain = url.replace("postgresql+psycopg", "postgresql")
        found = collected_study(url=plain)
        assert found.sizes["response"] >= 3 * 4
        assert collected_study(url=plain, game="bets").attrs["kind"] == "bet"
        assert main(["export", "--url", plain, "--folder", str(tmp_path)]) == 0
        table = read_guarded_csv(tmp_path / "answers_comparison.csv")
        own = table[(table["training"] == "0") & (table["attention"] == "0")]
        assert own["report"].astype(float).tolist() == found["report"].to_numpy().tolist()
        assert len(read_guarded_csv(tmp_path / "pay.csv")) == 9
        gone = str(found["participant"].to_numpy()[0])
        assert main(["forget", "--url", plain, gone]) == 0
        left = collected_study(url=plain)
        kept = found["participant"].to_numpy() != gone
        np.testing.assert_array_equal(left["report"].to_numpy(), found["report"].to_numpy()[kept])
