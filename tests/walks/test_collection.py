"""From a study through the pages to what the models take: each step reads what the one before really wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators.comparison import rounding_scheme
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.players.crowd import play_all
from shannon_game.experiments.collect.players.people import Person, simulated_people
from shannon_game.experiments.collect.players.world import world_of
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from shannon_game.models.comparison.participant_data import participant_data

N_PEOPLE, N_QUESTIONS = 4, 8


def test_answers_on_the_slider_are_boxes_of_the_model(tmp_path: Path) -> None:
    study = simulated(n_items=24, n_reference_items=24, n_candidates=5, vocab_size=120, seed=5, store_reference=True)
    save_comparison_study(study, tmp_path / "served.nc")
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    settings = CollectSettings(
        game="comparison", scale="slider", n_questions=N_QUESTIONS, training_rounds=1, attention_share=0.25
    )
    database = open_database(url)
    collection = open_collection(settings, study, database)
    people = simulated_people(world_of(study), ParticipantPopulation(), N_PEOPLE, 5)
    players = [(f"p-{number}", Person(people, number)) for number in range(N_PEOPLE)]
    crowd = play_all(players, "comparison", application=app_of(collection), parameters=settings.recruiter.parameters)
    database.close()
    assert crowd.problems == ()
    # attention checks ask for the slider's ends: nobody fails who reads them
    collected = collected_study(url=url, served=tmp_path / "served.nc", most_failed_checks=0)
    reports = collected["report"].to_numpy()
    assert (~collected["automatic"].to_numpy()).sum() == N_PEOPLE * N_QUESTIONS
    assert set(reports.tolist()) <= {*rounding_scheme("slider").values, 0.5}
    # finer than the eleven values, and beyond their ends
    assert len(set(reports.tolist())) > 11
    assert reports.min() < 0.01
    data = participant_data(collected, "slider")
    np.testing.assert_array_equal(
        np.asarray(rounding_scheme("slider").values)[data.row_box], reports[data.row_response]
    )
    with pytest.raises(InputError, match="is not a value of the grid 'interface'"):
        participant_data(collected, "interface")
