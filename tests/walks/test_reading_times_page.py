"""The commands of the page on reading times, read from it: norms in their layout, surprisal of tiny models, slopes."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import DATA
from tests.docs.pages import DOCS
from tests.experiments.command import environment
from tests.experiments.studies.cloze.norms_stand_in import SENTENCES, write_all
from tests.experiments.tiny_language_models import write_models

pytestmark = [pytest.mark.subprocess, pytest.mark.torch]

PAGE = DOCS / "reading_times.md"
DRIVER = """
import json, sys
from shannon_game.experiments.run import main
for code in json.load(sys.stdin):
    sys.argv = ["shannon-game", *code]
    if failed := main():
        sys.exit(f"{code}: exit code {failed}")
"""


def commands(models: str, *more: str) -> list[list[str]]:
    """Arguments of the page's commands, with other models in place of SmolLM2."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("shannon-game ")]
    found = [shlex.split(line.removeprefix("shannon-game ")) for line in lines]
    swapped = [[models if word.startswith("model=") else word for word in words] for words in found]
    return [[*words, "output.dpi=40", "output.print=false", *more] for words in swapped]


def run(folder: Path, data: Path, steps: list[list[str]]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps(steps), cwd=folder, capture_output=True, text=True,
        check=False, env=environment() | {"SHANNON_DATA": str(data), "XDG_CACHE_HOME": str(folder / "cache")},
    )  # fmt: skip
    assert not done.returncode, done.stderr[-4000:]


def write_own(folder: Path) -> None:
    """Tables of a person's own, as the page calls them."""
    rng = np.random.default_rng(0)
    rows, times = [], []
    for item in range(12):
        place = {"item": f"i{item}", "sentence": f"Frame {item} has a", "word": "dog" + "s" * (item % 3)}
        said = [place["word"] if rng.random() < item / 12 else "cat" for _ in range(20)]
        rows += [{**place, "answer": answer} for answer in said]
        times.append({"item": place["item"], "time": 250 + 20 * rng.random()})
    pd.DataFrame(rows).to_csv(folder / "norms.csv", index=False)
    pd.DataFrame(times).to_csv(folder / "times.csv", index=False)


def test_the_page_runs_from_the_layout_of_the_public_file_to_its_figure(tmp_path: Path) -> None:
    write_all(tmp_path / "data" / "norms")
    write_models(tmp_path)
    write_own(tmp_path)
    run(tmp_path, tmp_path / "data", commands(f"model=[{tmp_path / 'a'},{tmp_path / 'b'}]"))
    words = pd.read_csv(tmp_path / "surprisal" / "words.csv")
    assert words.groupby("model")["word"].agg(list).tolist() == [" ".join(SENTENCES).split()] * 2
    slopes = pd.read_csv(tmp_path / "times" / "slopes.csv")
    assert slopes["words_before"].tolist() == [0, 1, 2] * 2
    table = pd.read_csv(tmp_path / "times" / "table.csv")
    # of each sentence the words that have two before them, read by everybody
    n_words = sum(len(text.split()) - 2 for text in SENTENCES)
    assert table["n_words"].tolist() == [n_words] * 2
    assert table["n_times"].tolist() == [6 * n_words] * 2
    assert np.isfinite(table[["slope_se", "sd_reader", "gain_nats"]]).all(axis=None)
    for name in ("times", "cloze_times"):
        assert (tmp_path / name / "figures" / "reading_times.png").stat().st_size
    assert pd.read_csv(tmp_path / "cloze_times" / "table.csv")["n_words"].tolist() == [12]


def test_the_page_runs_on_the_real_file(tmp_path: Path) -> None:
    folder = DATA / "norms" / "natural_stories"
    times = {"processed_RTs.tsv": "self_paced", "processed_wordinfo.tsv": "self_paced_mean"}
    there = [measure for name, measure in times.items() if (folder / name).is_file()]
    if not there:
        pytest.skip("no Natural Stories in $SHANNON_DATA/norms/natural_stories")
    write_models(tmp_path)
    first, second, *_ = commands(f"model=[{tmp_path / 'a'},{tmp_path / 'b'}]", f"study.measure={there[0]}")
    run(tmp_path, DATA, [[*first, "experiment.n_documents=3"], second])
    table = pd.read_csv(tmp_path / "times" / "table.csv")
    assert (table["n_texts"] == 3).all()
    assert (table["n_words"] > 2_000).all()
