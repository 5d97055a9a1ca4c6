"""``+exp=meaning``: synonyms, what a run writes, and files that are no vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import cloze_study, meaning
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.meaning import read_vectors
from shannon_game.experiments.harness.outputs import write_outputs
from tests.experiments.command import config, prepared


def write_vectors(path: Path, n_words: int = 80) -> Path:
    rng = np.random.default_rng(0)
    lines = [f"word{at} " + " ".join(f"{x:.4f}" for x in rng.normal(size=5)) for at in range(n_words)]
    path.write_text("\n".join([f"{n_words} 5", *lines]), encoding="utf-8")
    return path


def test_what_a_run_writes(tmp_path: Path) -> None:
    path = write_vectors(tmp_path / "vectors.txt")
    arguments = (
        *("+exp=meaning", "study=cloze_simulated", "study.n_items=60", "study.vocab_size=40"),
        *("study.items_per_text=2", "study.families=[same,ranks]", f"experiment.vectors={path}", "output.dpi=40"),
    )
    job = prepared(*arguments)
    result = job.run()
    table = result.table.set_index("player")
    # people and a model that is people: no distance, where the TVD of samples has one
    for name in ("half_of_people", "same"):
        assert abs(table.loc[name, "energy_distance"]) < 4 * table.loc[name, "energy_se"]
        assert table.loc[name, "tvd"] > 0.2
    assert table.loc["ranks", "energy_distance"] > 4 * table.loc["ranks", "energy_se"]
    write_outputs(tmp_path, config(*arguments), job.study, result)
    assert (tmp_path / "figures" / "meaning.png").is_file()


def test_synonyms_are_near_and_no_word_is_the_same(tmp_path: Path) -> None:
    rows = []
    for number in range(1, 5):
        place = {"text_id": f"t{number}", "word_num": 1, "context": f"a {number}", "target": "big"}
        rows += [{**place, "response": "big", "count": 10, "model": None}]
        rows += [{**place, "response": word, "count": 10, "model": word} for word in ("large", "tiny")]
    path = tmp_path / "vectors.txt"
    path.write_text("big 1 0\nlarge 0.99 0.1\ntiny -1 0\n", encoding="utf-8")
    table = meaning(cloze_study(pd.DataFrame(rows)), vectors=path).table.set_index("player")
    assert table.loc["large", "tvd"] == table.loc["tiny", "tvd"] == 1
    assert table.loc["large", "energy_distance"] < 0.3
    assert table.loc["tiny", "energy_distance"] == pytest.approx(4)


def test_what_is_no_file_of_vectors(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("cat 1 2\ndog 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2 has 1 numbers, the first has 2"):
        read_vectors(path, ["cat"])
    path.write_text("cat one two\n", encoding="utf-8")
    with pytest.raises(InputError, match="cannot be read as word vectors"):
        read_vectors(path, ["cat"])
    with pytest.raises(InputError, match="cannot be read as word vectors"):
        read_vectors(tmp_path / "none.txt", ["cat"])
    with pytest.raises(InputError, match=r"experiment.vectors: is needed"):
        prepared("+exp=meaning", "study=cloze_simulated").run()
