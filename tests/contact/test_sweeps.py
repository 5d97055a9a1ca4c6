"""A sweep as its users meet it: real models as generators, a launcher, a kill, a notebook, a program that reads it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

import shannon_game as sg
from tests.experiments.command import command, environment, run
from tests.experiments.tiny_language_models import write_models, write_texts

pytest.importorskip("torch")
pytest.importorskip("hydra_plugins.hydra_joblib_launcher")


@pytest.mark.torch
@pytest.mark.subprocess
def test_generators_in_folders_sweep_go_on_after_a_kill_and_are_the_frame_of_a_notebook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_models(tmp_path)
    write_texts(tmp_path / "texts")
    few = {"study.path": "texts", "study.n_contexts": 5, "study.n_candidates": 6, "study.store": "store"}
    swept = ("generator=./a,./b", "n=2,4", "rounding=coarse")
    given = ("study=built", *(f"{name}={value}" for name, value in few.items()), *swept, "sweep=s", "output.dpi=30")
    launcher = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    start = command("-m", "+exp=perplexity", *given, *launcher)
    first = subprocess.Popen(start, cwd=tmp_path, env=environment(), **quiet)  # type: ignore[call-overload]
    folder, end = tmp_path / "multirun/perplexity/s", time.monotonic() + 300
    while not list(folder.glob("*/table.csv")) and time.monotonic() < end:
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    done = run(tmp_path, "-m", "+exp=perplexity", *given, "resume=true")
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    frame = sg.sweep("perplexity", "built", **few, generator=["./a", "./b"], n=[2, 4], rounding="coarse")
    summary = pd.read_csv(folder / "summary.csv").drop(columns=["status", "error"])
    pd.testing.assert_frame_equal(frame, summary, check_dtype=False)
    assert set(zip(frame["generator"], frame["player"], strict=True)) == {(a, b) for a in "ab" for b in "ab"}
