"""From a study through the pages to what the models take: each step reads what the one before really wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select

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
from shannon_game.experiments.collect.settings import CollectSettings
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


def test_a_plan_is_one_visit_of_free_answers_and_comparisons(tmp_path: Path) -> None:
    study = simulated(n_items=40, n_reference_items=40, n_candidates=6, vocab_size=60, seed=5, store_reference=True)
    save_comparison_study(study, tmp_path / "served.nc")
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "blocks: [{game: cloze, n_questions: 6, training_rounds: 0}, {game: comparison, n_questions: 10}]\n"
        "scale: slider\nattention_share: 0.2\npay: {base: 4.0}\n"
    )
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    settings = CollectSettings(plan=plan)
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
    assert pay["n_answers"].tolist() == [16] * N_PEOPLE
    assert pay["total"].tolist() == [4.0] * N_PEOPLE
    assert len({tuple(row) for row in asked}) == len(asked)
    collected = collected_study(url=url, served=tmp_path / "served.nc", most_failed_checks=0)
    assert (~collected["automatic"].to_numpy()).sum() == N_PEOPLE * 10
    assert collected.sizes["answer"] == N_PEOPLE * 6
    data = participant_data(collected, "slider")
    assert data.n_answers.sum() == N_PEOPLE * 6
    words = collected_study(url=url, game="cloze")
    assert words.sizes["response"] == N_PEOPLE * 6
