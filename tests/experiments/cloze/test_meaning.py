"""``+exp=tvd experiment.vectors=FILE``: synonyms, a model that is people, and files that are no vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import cloze_study, tvd
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.tvd.meaning import read_vectors
from tests.experiments.command import run_experiment


def test_a_model_that_is_people_has_no_distance(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    vectors = np.random.default_rng(0).normal(size=(80, 5))
    lines = [f"word{at} " + " ".join(f"{x:.4f}" for x in row) for at, row in enumerate(vectors)]
    path.write_text("\n".join(["80 5", *lines]), encoding="utf-8")
    result = run_experiment(
        *("+exp=tvd", "study=cloze_simulated", "study.n_items=60", "study.vocab_size=40", "experiment.n_splits=2"),
        *("study.items_per_text=2", "study.families=[same,ranks]", f"experiment.vectors={path}", "output.dpi=40"),
    )
    table = result.table.set_index("player")
    for name in ("half_of_people", "same"):
        assert abs(table.loc[name, "energy_distance"]) < 4 * table.loc[name, "energy_se"]
    assert table.loc["ranks", "energy_distance"] > 4 * table.loc["ranks", "energy_se"]
    by_item = result.tables["items"]["energy_distance_ranks"]
    assert by_item.mean() == pytest.approx(table.loc["ranks", "energy_distance"])


def test_synonyms_are_near_and_no_word_is_the_same(tmp_path: Path) -> None:
    rows = []
    for number in range(1, 5):
        place = {"text_id": f"t{number}", "word_num": 1, "context": f"a {number}", "target": "big"}
        rows += [{**place, "response": "big", "count": 10, "model": None}]
        rows += [{**place, "response": word, "count": 10, "model": word} for word in ("large", "tiny")]
    path = tmp_path / "vectors.txt"
    path.write_text("big 1 0\nlarge 0.99 0.1\ntiny -1 0\n", encoding="utf-8")
    table = tvd(cloze_study(pd.DataFrame(rows)), vectors=path, n_splits=2).table.set_index("player")
    assert table.loc["large", "tvd"] == table.loc["tiny", "tvd"] == 1
    assert table.loc["large", "energy_distance"] < 0.3
    assert table.loc["tiny", "energy_distance"] == pytest.approx(4)


def test_what_is_no_file_of_vectors(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("cat 1 2\ndog 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2 has 1 numbers, the first has 2"):
        read_vectors(path, ["cat"])
    path.write_text("cat one two\n", encoding="utf-8")
    for where in (path, tmp_path / "none.txt"):
        with pytest.raises(InputError, match="cannot be read as word vectors"):
            read_vectors(where, ["cat"])
