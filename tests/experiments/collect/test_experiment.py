"""The command: what it serves, and what it says at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

import shannon_game.experiments.collect.experiment as module
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.collection import Collection
from shannon_game.experiments.collect.database import existing_database
from shannon_game.experiments.collect.server import app_of
from shannon_game.experiments.collect.tables import Question, Study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from tests.experiments.collect.players import Player
from tests.experiments.command import prepared, run_experiment


def test_the_command_serves_the_demonstration_and_counts_what_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_player(collection: Collection) -> None:
        player = Player(app_of(collection), "cloze")
        player.to_play()
        player.play_all("the")

    monkeypatch.setattr(module, "serve", one_player)
    database = f"experiment.database=sqlite:///{tmp_path / 'c.sqlite'}"
    result = run_experiment("+exp=collect", database, "experiment.n_questions=2", "experiment.training_rounds=0")
    assert result.table["n_answers"].tolist() == [2]
    assert result.table["state"].tolist() == ["after"]
    assert "1 session of collect_demo, 0 of them complete, with 2 answers" in result.text


def test_a_plan_that_names_its_study_is_all_that_the_command_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = simulated(n_items=12, n_reference_items=12, n_candidates=4, vocab_size=60, seed=5, store_reference=True)
    save_comparison_study(study, tmp_path / "study.nc")
    block = "{n_questions: 2, training_rounds: 1, game: %s}"
    (tmp_path / "plan.yaml").write_text(
        f"served: {tmp_path / 'study.nc'}\nblocks: [{block % 'cloze'}, {block % 'comparison'}]\nattention_share: 0\n"
        # as for people: players rehearse it in a study of their own, on other items than practice takes
        "contexts: 5\ncollection: mine\nhttps: true\nrecruiter: {required: true}"
    )
    given = [f"experiment.plan={tmp_path / 'plan.yaml'}", f"experiment.database=sqlite:///{tmp_path / 'c.sqlite'}"]
    result = run_experiment("+exp=collect", *given, "experiment.players=simulated", "experiment.n_players=3")
    # a row per part of the visit
    assert result.table["game"].tolist() == ["cloze", "comparison"]
    assert result.table["n_answers"].tolist() == [6, 6]
    assert (result.table["n_sent"] >= 9).all()
    with existing_database(f"sqlite:///{tmp_path / 'c.sqlite'}") as database, database.read() as transaction:
        assert transaction.scalars(select(Study.name)).all() == ["mine, simulated players"]
        counted = select(Question.game, Question.item_id).where(~Question.training, ~Question.attention)
        words, tokens = (
            {row.item_id for row in transaction.execute(counted.where(Question.game == game))}
            for game in ("cloze", "comparison")
        )
    assert words == tokens
    assert len(words) == 5
    with pytest.raises(InputError, match=r"served: is .*, and study= names 'simulated'; give one of them"):
        run_experiment("+exp=collect", "study=simulated", *given)


def test_a_study_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="collect needs a comparison or cloze or documents study"):
        prepared("+exp=collect", "study=bets_simulated")
