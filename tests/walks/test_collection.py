"""From a study through the pages to what the models take: each step reads what the one before really wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from shannon_game import design
from shannon_game.estimators.comparison import rounding_scheme
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.export import pay_table
from shannon_game.experiments.collect.games.texts import items_alone
from shannon_game.experiments.collect.players.crowd import play_all
from shannon_game.experiments.collect.players.people import Person, simulated_people
from shannon_game.experiments.collect.players.world import world_of
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.settings import CollectSettings, PaySettings
from shannon_game.experiments.collect.tables import Assignment, Question, Session
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
    # finer than the eleven values
    assert len(set(reports.tolist())) > 11
    data = participant_data(collected, "slider")
    np.testing.assert_array_equal(
        np.asarray(rounding_scheme("slider").values)[data.row_box], reports[data.row_response]
    )
    with pytest.raises(InputError, match="is not a value of the grid 'interface'"):
        participant_data(collected, "interface")


def test_a_design_is_the_plan_of_visits_that_the_model_takes(tmp_path: Path) -> None:
    study = simulated(n_items=60, n_reference_items=60, n_candidates=6, vocab_size=60, seed=5, store_reference=True)
    save_comparison_study(study, tmp_path / "served.nc")
    sizes: dict[str, Any] = {"contexts": 60, "draws": 4, "answers": 3, "comparisons": 4, "scales": "slider"}
    planned = design(study, games="bridge", **sizes, n_screen=6, n_replicates=20, width_nats=6.0)
    planned.writers["plan_bridge.yaml"](tmp_path / "plan.yaml")
    settings = CollectSettings(plan=tmp_path / "plan.yaml", pay=PaySettings(base=4.0))
    n_words, n_comparisons = (block.n_questions for block in settings.blocks)
    n_people = planned.table["n_people"].item()
    assert n_words * n_people >= 60 * 3
    assert n_comparisons * n_people >= 60 * 4
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    database = open_database(url)
    collection = open_collection(settings, items_alone(study), database)
    people = simulated_people(world_of(study), ParticipantPopulation(), N_PEOPLE, 5)
    players = [(f"p-{number}", Person(people, number)) for number in range(N_PEOPLE)]
    crowd = play_all(players, "cloze", application=app_of(collection), parameters=settings.recruiter.parameters)
    assert crowd.problems == ()
    with database.read() as transaction:
        pay = pay_table(transaction, collection.study_id, settings.pay)
        visits = transaction.scalars(select(Session)).all()
        asked = transaction.execute(
            select(Assignment.session_id, Question.item_id).join(Question).where(~Question.attention)
        ).all()
    database.close()
    # one consent, one code, one pay, and nobody is asked at one place twice
    assert [(visit.state, visit.block) for visit in visits] == [("done", 1)] * N_PEOPLE
    assert len({visit.completion_code for visit in visits}) == N_PEOPLE
    assert pay["n_answers"].tolist() == [n_words + n_comparisons] * N_PEOPLE
    assert pay["total"].tolist() == [4.0] * N_PEOPLE
    assert len({tuple(row) for row in asked}) == len(asked)
    collected = collected_study(url=url, served=tmp_path / "served.nc", most_failed_checks=0)
    assert (~collected["automatic"].to_numpy()).sum() == N_PEOPLE * n_comparisons
    assert collected.sizes["answer"] == N_PEOPLE * n_words
    data = participant_data(collected, settings.scale)
    assert data.n_answers.sum() == N_PEOPLE * n_words
    assert collected_study(url=url, game="cloze").sizes["response"] == N_PEOPLE * n_words
