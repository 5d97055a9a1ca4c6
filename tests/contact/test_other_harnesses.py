"""The comparison game as a task of lm-evaluation-harness and of Inspect: points as text_players has them."""

from __future__ import annotations

import json
import random
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shannon_game.experiments.boards.bridges import write_comparison_tasks
from tests.contact.test_text_players import STUDY, play
from tests.experiments.command import environment, prepared


def answer(user: str) -> str:
    """Some value, a little more often above one half."""
    return f"{random.Random(user).choice([90, 80, 70, 60, 50, 30, 20, 1])}%"


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_comparison_tasks(prepared("+exp=perplexity", *STUDY).study, tmp_path_factory.mktemp("task"))


@pytest.fixture(scope="module")
def rows(task: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (task / "questions.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def expected(task: Path, rows: list[dict[str, Any]]) -> float:
    earned = runpy.run_path(str(task / "utils.py"))["earned"]
    return float(np.mean([earned(row, answer(row["user"]))["points"] for row in rows]))


def test_points_are_those_of_text_players(tmp_path: Path, expected: float, task: Path, rows: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "*")
        _, result = play(tmp_path, "experiment.ways=verbalised", says=lambda _, user: (answer(user), {"x": 0.5}))
    table = result.table.set_index("way")
    assert table.loc["verbalised", "points"] == pytest.approx(expected)
    earned = runpy.run_path(str(task / "utils.py"))["earned"]
    favoured = np.mean([earned(row, answer(row["user"]))["favoured"] for row in rows])
    assert table.loc["verbalised", "favoured"] == pytest.approx(favoured)
    # what cannot be read is as always 50%, and is counted
    for text, unreadable in {"70 %": 0, "\n70%.\n": 0, "75%": 1, "A: 70%": 1, "": 1}.items():
        assert earned(rows[0], text)["unreadable"] == unreadable


@pytest.mark.torch
def test_lm_evaluation_harness_gives_these_points(task: Path, expected: float) -> None:
    lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed: pip install lm_eval")
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Answers(LM):
        def generate_until(self, requests: list[Any]) -> list[str]:
            return [answer(request.args[0].split("\n\n", 1)[1].removesuffix("\n")) for request in requests]

        def loglikelihood(self, requests: list[Any]) -> list[Any]:
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    found = lm_eval.simple_evaluate(
        model=Answers(),
        tasks=["comparison_game"],
        task_manager=TaskManager(include_path=str(task), include_defaults=False),
    )["results"]["comparison_game"]
    assert found["points,none"] == pytest.approx(expected)
    assert found["unreadable,none"] == 0


_IN_INSPECT = """
import json, runpy, sys
import inspect_ai
from inspect_ai.model import ModelAPI, ModelOutput, get_model, modelapi
from tests.contact.test_other_harnesses import answer

# its own mock model counts tokens by a table of the internet
@modelapi(name="answers")
class Answers(ModelAPI):
    async def generate(self, input, **_):
        return ModelOutput.from_content("answers", answer(input[-1].text))

task, logs = sys.argv[1:]
made = runpy.run_path(f"{task}/comparison_game.py")["comparison_game"]()
[log] = inspect_ai.eval(made, model=get_model("answers/one"), log_dir=logs, display="none")
assert log.status == "success", log.error
print(json.dumps({score.name: score.metrics["mean"].value for score in log.results.scores}))
"""


@pytest.mark.subprocess
@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="Inspect is not installed: pip install inspect_ai")
def test_inspect_gives_these_points(task: Path, expected: float, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _IN_INSPECT, str(task), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout.splitlines()[-1])
    assert values["points"] == pytest.approx(expected)
    assert values["unreadable"] == 0
