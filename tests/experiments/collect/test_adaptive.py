"""Adaptive comparisons of a collection: what is asked, with which recorded probability, and when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sqlalchemy import select

from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.adaptive import AdaptiveChooser
from shannon_game.experiments.collect.collection import Collection, open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.export import chosen_study, write_exports
from shannon_game.experiments.collect.players.crowd import Crowd, play_all
from shannon_game.experiments.collect.players.people import Person, simulated_people
from shannon_game.experiments.collect.players.world import world_of
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.tables import Answer, Assignment, Question, Session
from shannon_game.experiments.harness.csv_tables import read_guarded_csv
from shannon_game.experiments.studies.comparison.simulated import simulated
from tests.experiments.collect.players import logged_in

ADAPTIVE: dict[str, Any] = {
    "game": ("comparison", "cloze"), "questions": "adaptive", "n_questions": 12, "training_rounds": 0,
    "attention_share": 0.0, "look_answers": 10, "before": None, "after": None,
}  # fmt: skip


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    return simulated(n_items=16, n_reference_items=16, n_candidates=5, vocab_size=80)


def opened(folder: Path, study: xr.Dataset, **changed: Any) -> Collection:
    database = open_database(f"sqlite:///{folder / 'c.sqlite'}")
    return open_collection(CollectSettings(**{**ADAPTIVE, **changed}), study, database)


def play(collection: Collection, study: xr.Dataset, game: str, n_people: int, first: int = 0) -> Crowd:
    people = simulated_people(world_of(study), ParticipantPopulation(), first + n_people, 3)
    players = [(f"p-{game}-{number}", Person(people, number)) for number in range(first, first + n_people)]
    return play_all(players, game, application=app_of(collection), parameters=("PROLIFIC_PID",), at_once=1)


def test_comparisons_are_drawn_by_what_they_add_and_the_probability_is_exported(
    tmp_path: Path, study: xr.Dataset
) -> None:
    collection = opened(tmp_path, study, width_nats=None)
    # no free answers yet: balanced
    assert play(collection, study, "comparison", 2).problems == ()
    assert play(collection, study, "cloze", 4).problems == ()
    assert play(collection, study, "comparison", 3, first=2).problems == ()
    chooser = collection.chooser
    assert isinstance(chooser, AdaptiveChooser)
    assert not chooser.enough
    assert np.isfinite(chooser.course.width_nats)
    assert chooser.course.n_needed is None
    query = select(Session.game, Assignment, Answer).select_from(Answer).join(Assignment).join(Session)
    with collection.database.read() as transaction:
        rows = transaction.execute(query.order_by(Answer.id)).all()
        contents = {question.id: question.content for question in transaction.scalars(select(Question))}
        write_exports(transaction, chosen_study(transaction), tmp_path / "export")
    collection.database.close()
    asked = [assignment for game, assignment, _ in rows if game == "comparison"]
    assert {assignment.policy for assignment in asked[:20]} == {"balanced"}
    assert {assignment.policy for game, assignment, _ in rows if game == "cloze"} == {"balanced"}
    adaptive = [assignment for assignment in asked if assignment.policy == "adaptive"]
    assert len(adaptive) >= 3 * 12 - 10
    # somebody who has one question left is asked it for certain
    chances = np.array([assignment.probability for assignment in adaptive])
    assert ((chances > 0) & (chances <= 1)).all()
    assert np.median(chances) < 0.5
    # what a person is asked is never a token with itself
    for assignment in (assignment for _, assignment, answer in rows if not answer.automatic):
        content = contents[assignment.question_id]
        if assignment.policy == "adaptive":
            assert content["candidates"][assignment.layout["candidate"]]["token"] != content["target"]
    table = read_guarded_csv(tmp_path / "export" / "answers_comparison.csv")
    exported = table.loc[table["policy"] == "adaptive", "probability"].astype(float)
    np.testing.assert_allclose(sorted(exported), sorted(assignment.probability for assignment in adaptive))


def test_the_probability_that_is_recorded_is_that_of_the_draw(tmp_path: Path, study: xr.Dataset) -> None:
    """20,000 draws of one state: every share within five standard errors of its probability."""
    collection = opened(tmp_path, study, width_nats=None, look_answers=10**9)
    for game in ("cloze", "comparison"):
        play(collection, study, game, 3)
    chooser = collection.chooser
    assert isinstance(chooser, AdaptiveChooser)
    chooser._n_since = None
    chooser.look()
    cards = [card.id for card in collection.deck.cards.values() if card.game == "comparison"]
    n, counts, said = 20_000, {}, {}
    for seed in range(n):
        chooser._taken.clear()
        chosen = chooser.next_question(Session(seed=seed, n_asked=0), cards)
        assert chosen is not None
        pair = (chosen.question, chosen.candidate)
        counts[pair] = counts.get(pair, 0) + 1
        said[pair] = chosen.probability
    collection.database.close()
    assert sum(said.values()) == pytest.approx(1, abs=0.02)
    for pair, probability in said.items():
        assert abs(counts[pair] / n - probability) < 5 * np.sqrt(probability * (1 - probability) / n)


def test_questions_end_at_the_wanted_width_and_nobody_new_comes_in(
    tmp_path: Path, study: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHANNON_COLLECT_PASSWORD", "long enough")
    collection = opened(tmp_path, study, width_nats=50.0)
    play(collection, study, "cloze", 3)
    crowd = play(collection, study, "comparison", 6)
    assert collection.chooser is not None
    assert collection.chooser.enough
    # two looks of ten comparisons or more each, fewer than the 72 that six people would give
    assert 10 <= crowd.n_sent.total() < 72
    assert crowd.problems
    assert all("403 at /start" in problem for problem in crowd.problems)
    with collection.database.read() as transaction:
        assert {session.state for session in transaction.scalars(select(Session))} == {"done"}
    assert "Enough: the 90% interval" in logged_in(app_of(collection)).page.text
    collection.database.close()


def test_adaptive_questions_need_both_games() -> None:
    with pytest.raises(InputError, match=r"questions: is 'adaptive', .* name comparison and cloze in game"):
        CollectSettings(questions="adaptive", game="comparison")
