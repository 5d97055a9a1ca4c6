"""A cloze study as a task of lm-evaluation-harness: its distance is ours, for the same sums over tokens."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from shannon_game import cloze_table
from shannon_game.estimators.cloze import study_words, tvd_exact
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.lm_eval_task import write_lm_eval_task
from shannon_game.experiments.cloze.settings import WordSettings
from shannon_game.inference.lm.continuations import continuation_log_probs
from shannon_game.inference.lm.language_model import encode
from tests.experiments.cloze.test_tvd_exact import COLUMNS, TABLE
from tests.inference.lm import tiny_models

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "answers.csv").write_text(TABLE, encoding="utf-8")
    tiny_models.save(tmp_path / "a", "gpt2", tiny_models.byte_level(), seed=1)
    study = cloze_table(path=tmp_path / "answers.csv", columns=COLUMNS)
    return write_lm_eval_task(study, tmp_path / "people")


def expected(task: Path) -> np.ndarray:
    """Distances from our engine's sums over tokens."""
    model = tiny_models.load(task.parent / "a", bos="none")
    rows = [json.loads(line) for line in (task / "contexts.jsonl").read_text(encoding="utf-8").splitlines()]
    sums = continuation_log_probs(
        model, encode(model, [row["context"] for row in rows]), [row["continuations"] for row in rows]
    )
    q = np.concatenate([np.bincount(row["word"], np.exp(its)) for row, its in zip(rows, sums, strict=True)])
    study = cloze_table(path=task.parent / "answers.csv", columns=COLUMNS)
    rules = WordSettings().of(study)
    people = study_words(study, human=rules, model=rules, corpus=rules, models=[]).human_distributions
    distance = runpy.run_path(str(task / "utils.py"))["distance"]
    found = [distance(row, [(its, False) for its in some])["tvd"] for row, some in zip(rows, sums, strict=True)]
    np.testing.assert_allclose(found, tvd_exact(people, q), atol=1e-12)
    return tvd_exact(people, q)


def test_the_task_has_the_distance_of_its_sums(task: Path) -> None:
    pytest.importorskip("datasets")
    assert expected(task).min() < 0.999


def test_files_of_the_user_stay(task: Path) -> None:
    study = cloze_table(path=task.parent / "answers.csv", columns=COLUMNS)
    write_lm_eval_task(study, task, "again")
    assert not (task / "distance_to_people.yaml").exists()
    (task / "utils.py").write_text("mine = 1\n")
    with pytest.raises(InputError, match=r"utils\.py was not written by the toolkit"):
        write_lm_eval_task(study, task)
    assert (task / "utils.py").read_text() == "mine = 1\n"
    (task.parent / "own").mkdir()
    (task.parent / "own" / "utils.py").write_text("mine = 1\n")
    with pytest.raises(InputError, match="name a new or an empty folder"):
        write_lm_eval_task(study, task.parent / "own")


def test_the_harness_gives_that_distance(task: Path) -> None:
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed: pip install lm_eval")
    from lm_eval.tasks import TaskManager

    found = lm_eval.simple_evaluate(
        model="hf",
        model_args={"pretrained": str(task.parent / "a"), "dtype": "float32"},
        tasks=["distance_to_people"],
        task_manager=TaskManager(include_path=str(task), include_defaults=False),
        device="cpu",
    )["results"]["distance_to_people"]
    assert found["tvd,none"] == pytest.approx(expected(task).mean(), abs=1e-5)
