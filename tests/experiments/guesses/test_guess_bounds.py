"""``+exp=guess_bounds``: a game that goes on until the guess is right, counted by hand and simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import guess_bounds, guess_study
from shannon_game.estimators.documents.guess_bounds import guess_bounds as bounds_of
from shannon_game.estimators.guesses import guess_ranks
from shannon_game.experiments.guesses.guess_bounds import GUESS_BOUND_COLUMNS
from shannon_game.experiments.harness.outputs import write_outputs
from tests.experiments.command import config, prepared

# ann finds the first word at once and the second at the third guess; bo gives the second up after two
GAME = """\
participant,document,position,target,guess
ann,d,0,the,the
bo,d,0,the,a
ann,d,1,cat,dog
bo,d,0,the,the
ann,d,1,cat,cow
bo,d,1,cat,dog
ann,d,1,cat,cat
bo,d,1,cat,cow
"""


def write(folder: Path) -> Path:
    path = folder / "game.csv"
    path.write_text(GAME, encoding="utf-8")
    return path


def test_ranks_are_numbers_of_guesses(tmp_path: Path) -> None:
    study = guess_study(pd.read_csv(write(tmp_path)))
    found = guess_ranks(study)
    assert found.participant.tolist() == ["ann", "ann", "bo", "bo"]
    assert found.item.tolist() == [0, 1, 0, 1]
    assert found.rank.tolist() == [1, 3, 2, np.inf]
    assert found.n_tried.tolist() == [1, 3, 2, 2]


def test_guesses_after_the_right_one_do_not_count() -> None:
    rows = {"participant": ["a"] * 3, "document": ["d"] * 3, "position": [0] * 3, "target": ["x"] * 3}
    found = guess_ranks(guess_study(pd.DataFrame({**rows, "guess": ["y", "x", "x"]})))
    assert (found.rank.tolist(), found.n_tried.tolist()) == ([2], [2])


def test_what_a_run_writes(tmp_path: Path) -> None:
    arguments = ("+exp=guess_bounds", f"study.path={write(tmp_path)}", "experiment.vocab_size=50", "output.dpi=40")
    job = prepared(*arguments)
    result = job.run()
    table = result.table
    assert tuple(table.columns) == GUESS_BOUND_COLUMNS
    assert table["player"].tolist() == ["human", "ann", "bo"]
    assert table["n_not_found"].tolist() == [1, 0, 1]
    np.testing.assert_allclose(table["reciprocal"], [(1 + 1 / 3 + 1 / 2) / 4, 2 / 3, 1 / 4])
    whole = bounds_of(
        [1, 3, 2, np.inf], item=[0, 1, 0, 1], participant=list("aabb"), n_tried=[1, 3, 2, 2], vocab_size=50
    )
    assert table.loc[0, "lower_nats"] == pytest.approx(whole.lower_nats)
    assert table.loc[0, "upper_se_nats"] == pytest.approx(whole.upper_se_nats)
    write_outputs(tmp_path, config(*arguments), job.study, result)
    assert (tmp_path / "figures" / "guess_bounds.png").is_file()


def test_bounds_hold_the_entropy_of_a_simulated_text() -> None:
    """10 people who know the distributions of 150 contexts of 30 words, and guess in their order: no error allowed.

    The bounds are half a nat and more from the entropy, many standard errors.
    """
    rng = np.random.default_rng(1)
    p = -np.sort(-rng.dirichlet(np.full(30, 0.3), size=150), axis=1)
    entropy = float(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=1).mean())
    rank = 1 + (p.cumsum(axis=1) < rng.random((150, 1))).sum(axis=1)
    rows = [
        {"participant": f"p{who}", "document": "d", "position": item, "right": guess == rank[item]}
        for who in range(10)
        for item in range(150)
        for guess in range(1, rank[item] + 1)
    ]
    row = guess_bounds(guess_study(pd.DataFrame(rows), columns={"correct": "right"})).table.iloc[0]
    assert row["n_not_found"] == 0
    assert row["lower_nats"] < entropy < row["upper_nats"]


def test_without_a_vocabulary_there_is_no_upper_bound(tmp_path: Path) -> None:
    result = guess_bounds(guess_study(pd.read_csv(write(tmp_path))))
    assert result.table["upper_nats"].isna().tolist() == [True, False, True]
    assert any("needs experiment.vocab_size" in text for text in result.warnings)
