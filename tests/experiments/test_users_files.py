"""A user's own files under every command that takes a folder: no failure or interruption changes a byte of them."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from shannon_game import bundle, perplexity, pseudonymous, simulated
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.comparison.lm_game_write import write_lm_game
from shannon_game.inference.manifest import SCRATCH
from tests.experiments.command import TINY, command, environment, run

THEIRS = """
table.csv results.nc report.md notes.csv items.csv study.nc status.json run.log own.txt figures/own.svg bundle.zip
figures/perplexity.png model/weights.bin tables/t.csv studies/s.nc .running .hydra/config.yaml .hydra/overrides.yaml
replicates.jsonl parts/perplexity/status.json .fits/a/b.nc bundle/manuscript.tex README.md METHODS.md multirun.yaml
summary.csv 0/table.csv 0/run.log 0/.hydra/config.yaml demo.html pay.csv answers_comparison.csv collect.sqlite
multi_comparisons/doc0.json api_answers.db checkpoints/checkpoint-1/state.json .partial/x
"""
NAMES = THEIRS.split()
INTO = "hydra.run.dir=mine"
REPLICATED = ("+exp=recovery", *TINY, "players=[lm-weak]", "experiment.n_studies=1", "experiment.n_items=5")
COMMANDS = (
    ("+exp=perplexity", *TINY, INTO),
    ("+exp=perplexity", "study.n_items=-3", INTO),
    ("+exp=perplexity", "study=lm_game", "study.root=nowhere", INTO),
    ("+exp=perplexity", "estimator.interval=two", INTO),
    ("+exp=perplexity", *TINY, "output.bundle=true", "hydra.run.dir=mine/bundle"),
    ("+exp=perplexity", *TINY, "hydra.run.dir=mine/0"),
    ("+exp=perplexity", *TINY, "hydra.run.dir=mine/table.csv"),
    ("-m", "+exp=perplexity", *TINY, "hydra.sweep.dir=mine", "seed=0,1"),
    ("-m", "+exp=perplexity", *TINY, "hydra.sweep.dir=mine", "seed=0,1", "resume=true", "sweep=s"),
    ("-m", "+exp=perplexity", *TINY, "hydra.sweep.dir=here", "hydra.sweep.subdir=../mine", "seed=0"),
    (*REPLICATED, "experiment.replicates=mine/replicates.jsonl"),
    (*REPLICATED, "experiment.replicates=mine/table.csv"),
    (*REPLICATED, INTO),
    ("+exp=reproduce", "data.root=nowhere", "experiment.parts=[perplexity]", "experiment.folder=mine/parts"),
    ("+exp=reproduce", "data.root=nowhere", INTO),
    ("+exp=collect", "experiment.database=sqlite:///mine/collect.sqlite", "experiment.players=simulated"),
    ("+exp=train", "study=texts", "study.path=mine/own.txt", INTO),
    ("demo", "mine"),
)


def home_with(tmp_path: Path, number: int) -> Path:
    home = tmp_path / f"home{number}"
    for name in NAMES:
        (home / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (home / "mine" / name).write_text(f"a user's {name}\n" * 3)
    return home


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    return {name: digest for name, digest in found.items() if SCRATCH not in name}


def interrupted(home: Path, arguments: tuple[str, ...], how: signal.Signals, seconds: float) -> None:
    with subprocess.Popen(
        command(*arguments), cwd=home, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, how)


@pytest.mark.subprocess
@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(COMMANDS)))
def test_no_command_changes_a_users_files(number: int, tmp_path: Path, seed_offset: int) -> None:
    rng = random.Random(number + seed_offset)
    home = home_with(tmp_path, number)
    before = hashes(home / "mine")
    done = run(home, *COMMANDS[number])
    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 2), done.stderr
    assert hashes(home / "mine") == before
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        interrupted(home, COMMANDS[number], how, rng.uniform(0.5, 4))
        after = hashes(home / "mine")
        assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize("name", ["paper", "paper.zip"])
def test_a_bundle_replaces_only_a_bundle(tmp_path: Path, name: str) -> None:
    small = {"n_items": 6, "n_reference_items": 10, "vocab_size": 200, "n_candidates": 20, "n_participants": 4}
    study, _ = pseudonymous(simulated(**small))
    result = perplexity(study)
    folder = bundle(study, result, tmp_path / "paper")
    bundle(study, result, folder)
    if name == "paper":
        (folder / "CITATION.cff").write_text("authors: filled in")
    else:
        shutil.copy(folder / "README.md", tmp_path / "paper.zip")
    before = hashes(tmp_path)
    with pytest.raises(InputError):
        bundle(study, result, folder)
    assert hashes(tmp_path) == before
    (tmp_path / "own").mkdir()
    (tmp_path / "own/manuscript.tex").write_text("mine")
    for write in (lambda folder: bundle(study, result, folder), lambda folder: write_lm_game(study, folder)):
        with pytest.raises(InputError):
            write(tmp_path / "own")
    assert hashes(tmp_path / "own").keys() == {"manuscript.tex"}
