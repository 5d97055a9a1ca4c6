"""``+exp=bounds``: a game that goes on until the guess is right, counted by hand and simulated."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

from shannon_game import bounds, guess_study
from shannon_game.estimators.documents.guess_bounds import guess_bounds as bounds_of
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses import guess_ranks
from shannon_game.estimators.rankings.examples import ranking_study
from tests.experiments.command import prepared

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


def test_people_together_and_each(tmp_path: Path) -> None:
    table = prepared("+exp=bounds", f"study.path={write(tmp_path)}", "experiment.vocab_size=50").run().table
    assert table["player"].tolist() == ["human", "ann", "bo"]
    assert table["n_not_found"].tolist() == [1, 0, 1]
    np.testing.assert_allclose(table["reciprocal"], [(1 + 1 / 3 + 1 / 2) / 4, 2 / 3, 1 / 4])
    whole = bounds_of(
        [1, 3, 2, np.inf], item=[0, 1, 0, 1], participant=list("aabb"), n_tried=[1, 3, 2, 2], vocab_size=50
    )
    assert table.loc[0, "lower_nats"] == pytest.approx(whole.lower_nats)
    assert table.loc[0, "upper_se_nats"] == pytest.approx(whole.upper_se_nats)


@pytest.mark.parametrize("interval", [0.5, 0.9])
def test_the_table_shows_the_interval_that_is_asked_for(tmp_path: Path, interval: float) -> None:
    settings = f"study.path={write(tmp_path)}", "experiment.vocab_size=50", f"experiment.interval={interval}"
    result = prepared("+exp=bounds", *settings).run()
    row, reach = result.table.iloc[0], NormalDist().inv_cdf((1 + interval) / 2)
    found = [float(part.strip("[],")) for part in result.summary()["upper_nats"].iloc[0].split()]
    half = reach * row["upper_se_nats"]
    np.testing.assert_allclose(found, row["upper_nats"] + half * np.array([0, -1, 1]), rtol=1e-4)


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
    row = bounds(guess_study(pd.DataFrame(rows), columns={"correct": "right"})).table.iloc[0]
    assert row["n_not_found"] == 0
    assert row["lower_nats"] < entropy < row["upper_nats"]


def test_the_bounds_are_those_of_the_ranks() -> None:
    study = ranking_study()
    table = bounds(study, vocab_size=100).table
    own = (study["model"] == "large").to_numpy() & (study["context_length"] == 8).to_numpy()
    rank = study["reference_rank"].to_numpy()[own]
    expected = bounds_of(rank, item=study["text"].to_numpy()[own], n_tried=3, vocab_size=100)
    row = table[(table["player"] == "large") & (table["context_length"] == 8)].iloc[0]
    for name in ("lower_nats", "lower_se_nats", "upper_nats", "upper_se_nats"):
        assert row[name] == pytest.approx(getattr(expected, name))
    assert row["top_1"] == pytest.approx((rank == 1).mean())


def test_ranks_need_a_vocabulary_too() -> None:
    result = bounds(ranking_study())
    assert result.table["upper_nats"].isna().any()
    assert "unknown" in result.text
    with pytest.raises(InputError, match="vocab_size: is 3, should be at least 4"):
        bounds(ranking_study(), vocab_size=3)
    with pytest.raises(InputError, match="tie: is 'middle'"):
        bounds(ranking_study(), tie="middle")
