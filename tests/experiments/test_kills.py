"""Runs that are killed outright at any moment: the same command goes on, and its table has the same bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from shannon_game.experiments.harness.outputs import read_status
from shannon_game.inference.manifest import SCRATCH
from tests.experiments.command import TINY, command, environment, run
from tests.same import assert_same_table

SAMPLED = ("sampler.draws=60", "sampler.tune=100", "sampler.chains=2", "sampler.cores=1")
CLOZE = ("study=cloze_simulated", "study.n_items=6", "study.vocab_size=40", "study.n_answers=12", "study.n_samples=30")
RUNS = {
    "perplexity": ("+exp=perplexity", *TINY),
    "sweep": ("-m", "+exp=perplexity", *TINY, "players=[human]", "seed=0,1", "sweep=s"),
    "recovery": (
        *("+exp=recovery", *TINY, *SAMPLED, "experiment.n_items=10", "n=5", "players=[lm-weak]", "rounding=none"),
        "experiment.n_studies=3",
    ),
    "tvd": (
        *("+exp=tvd", *CLOZE, *SAMPLED, "experiment.n_splits=3", "experiment.allow_unconverged=true"),
        "experiment.bayes={n_contexts: 3, more_draws: 1}",
    ),
    "human_loss": (
        *("+exp=human_loss", *TINY, "sampler.draws=60", "players=[human,lm-weak]", "rounding=none"),
        *("experiment.grid=interface", "experiment.sensitivity=false"),
    ),
}
"""Experiment -> command line, tiny."""

ALL_DONE = {0, 3}
"""Exit codes of a run whose outputs are there."""


def tables(home: Path) -> dict[str, Path]:
    """Tables of finished runs, by folder where a sweep names it; none may lie beside an unfinished status."""
    found = {}
    for path in sorted(home.rglob("*")):
        if path.name in ("table.csv", "summary.csv") and not any(part.startswith(SCRATCH) for part in path.parts):
            if path.name == "table.csv":
                status = read_status(path.parent)
                assert status is not None
                # what is moved into place just before the status says "ok"
                if status.status != "ok":
                    continue
            found[str(path.relative_to(home)) if "multirun" in path.parts else path.name] = path
    return found


def assert_same_tables(killed: Path, whole: Path) -> None:
    ours, theirs = tables(killed), tables(whole)
    assert ours.keys() == theirs.keys()
    for name, path in ours.items():
        assert_same_table(path, theirs[name])


def check(name: str, home: Path, n_kills: int, seed: int) -> None:
    """Run undisturbed, then with kills at random times of the same command, and compare."""
    rng = random.Random(seed)
    whole, killed = home / "whole", home / "killed"
    whole.mkdir()
    killed.mkdir()
    start = time.monotonic()
    done = run(whole, *RUNS[name])
    assert done.returncode in ALL_DONE, done.stderr
    seconds = time.monotonic() - start
    again = ("resume=true",) if name == "sweep" else ()
    kills = 0
    while kills < n_kills:
        resume = again if (killed / "multirun").exists() else ()
        with subprocess.Popen(
            command(*RUNS[name], *resume),
            cwd=killed,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                process.wait(timeout=rng.uniform(0.1, 1.0) * seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            else:
                # it was faster than the kill: the next one starts from nothing
                assert_same_tables(killed, whole)
                for path in killed.iterdir():
                    shutil.rmtree(path)
    resume = again if (killed / "multirun").exists() else ()
    last = run(killed, *RUNS[name], *resume)
    assert last.returncode == done.returncode, last.stderr
    assert_same_tables(killed, whole)
    finished = [path.parent for path in killed.rglob("status.json") if '"ok"' in path.read_text()]
    assert finished
    assert not any((folder / ".fits").exists() for folder in finished)


@pytest.mark.subprocess
def test_a_killed_sweep_goes_on(tmp_path: Path) -> None:
    check("sweep", tmp_path, 1, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_kills"), [(name, 4 if name == "human_loss" else 9) for name in RUNS])
def test_many_kills(name: str, n_kills: int, tmp_path: Path, seed_offset: int) -> None:
    check(name, tmp_path, n_kills, seed=2 + seed_offset)
