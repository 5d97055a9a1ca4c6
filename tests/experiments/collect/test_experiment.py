"""The command: what it serves, and what it says at the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import existing_database
from shannon_game.experiments.collect.tables import Question, Study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from tests.experiments.command import prepared, run_experiment


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
