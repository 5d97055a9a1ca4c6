"""A study, whole: the commands of the tutorial, read from its page, with nothing stubbed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml

from shannon_game import collected_study, comparison_file
from tests.docs.pages import DOCS, blocks
from tests.experiments.command import environment

pytestmark = [pytest.mark.subprocess, pytest.mark.torch, pytest.mark.mcmc]

PAGE = DOCS / "tutorials" / "collect_and_estimate.md"
# one process for all commands: each would import the same for seconds
DRIVER = """
import json, sys
from shannon_game.experiments.run import main as run
names = {"__name__": "__page__"}
for kind, code in json.load(sys.stdin):
    if kind == "python":
        exec(code, names)
        continue
    sys.argv = ["shannon-game", *code]
    if failed := run():
        sys.exit(f"{code}: exit code {failed}")
"""


def steps() -> list[tuple[str, str | list[str]]]:
    """What the page runs, in order: python blocks, and the arguments of commands."""
    found: list[tuple[str, str | list[str]]] = []
    for block in blocks(PAGE.read_text(encoding="utf-8")):
        if block.language == "python":
            found.append(("python", block.code))
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            command, *arguments = shlex.split(line.removeprefix("python -m "))
            assert command in ("experiments.run", "shannon-game")
            found.append(("run", arguments))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rehearsal")
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps(steps()), cwd=folder, env=environment(), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr[-4000:]
    (folder / "said.txt").write_text(done.stdout)
    return folder


def test_the_built_study_is_what_was_planned_asked_and_answered(folder: Path) -> None:
    built, served = (comparison_file(path=folder / name) for name in ("built/study.nc", "played/served.nc"))
    plan = yaml.safe_load((folder / "my_plan" / "plan_bridge.yaml").read_text())
    # practice has texts of its own
    assert served.sizes["item"] == plan["contexts"] == 30
    assert served["token"].to_numpy().tolist() == built["token"].to_numpy().tolist()
    np.testing.assert_allclose(np.exp(built["reference_logprob"].astype(float)).sum("token"), 1, atol=1e-4)
    collected = collected_study(url=f"sqlite:///{folder / 'collect.sqlite'}", served=folder / "played" / "served.nc")
    words, comparisons = (block["n_questions"] for block in plan["blocks"])
    assert (~collected["automatic"].to_numpy()).sum() == 30 * comparisons
    assert collected.sizes["answer"] == 30 * words
    # most words are no token that the study asks about, and nearly all are tokens of the whole distribution
    assert np.mean(collected["answer_candidate"].to_numpy() == -2) < 0.1
    assert (collected["candidate_source"].to_numpy() == "answer").any()


def test_every_analysis_wrote_its_table_beside_the_truth(folder: Path) -> None:
    names = re.findall(r"hydra\.run\.dir=(\w+)", PAGE.read_text())
    assert names
    for name in names:
        assert len(pd.read_csv(folder / name / "table.csv")), name
    loss = pd.read_csv(folder / "human_loss" / "table.csv").set_index("analysis").loc["everyone"]
    collected = collected_study(url=f"sqlite:///{folder / 'collect.sqlite'}", served=folder / "played" / "served.nc")
    asked = np.union1d(collected["response_item"], collected["answer_item"])
    own = collected["target_logprob"].sel(model="local") - collected["human_target_logprob"]
    truth = own.to_numpy()[asked].mean()
    assert loss["true_gap_nats"] == pytest.approx(truth, abs=1e-6)
    # a tiny study: the interval is wide, and five of its widths are no accident
    width = loss["gap_upper_nats"] - loss["gap_lower_nats"]
    assert abs(loss["gap_median_nats"] - truth) < 2.5 * width
    assert 0.5 < loss["k0_median"] < 2


def test_the_bundle_names_nobody(folder: Path) -> None:
    assert (folder / "human_loss" / "bundle.zip").stat().st_size
    people = pd.read_csv(folder / "tables" / "answers_comparison.csv")["participant"].unique()
    texts = [path.read_text() for path in (folder / "human_loss" / "bundle").rglob("*.csv")]
    assert texts
    assert not [name for name in people if any(name in text for text in texts)]
    assert xr.open_dataset(folder / "human_loss" / "results.nc", engine="h5netcdf").sizes
