"""Sweeps: failures stay in their job, a killed sweep goes on where it was, the summary does not show it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest

from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.outputs import JobStatus, write_status
from shannon_game.experiments.harness.sweep import collect, swept_settings, write_summary
from shannon_game.experiments.harness.sweep_figure import draw_sweep
from shannon_game.inference.manifest import claim
from tests.experiments.command import TINY, break_experiment, run


def statuses(folder):
    return {
        int(path.parent.name): json.loads(path.read_text())["status"] for path in sorted(folder.glob("*/status.json"))
    }


@pytest.fixture(autouse=True)
def own_folder(tmp_path):
    # as the callback does, before any job
    claim(tmp_path, "sweep")


def make_job(folder, number, *, status="ok", overrides=(), table="player,perplexity\nhuman,2.5\n", error=None):
    job = folder / str(number)
    job.mkdir()
    write_status(job, JobStatus(status, "perplexity", tuple(overrides), "00", "now", 1.0, (), error))
    if status == "ok":
        (job / "table.csv").write_text(table)


def test_the_summary_has_every_job(tmp_path):
    same = ["+exp=perplexity", "sweep=a"]
    make_job(tmp_path, 0, overrides=[*same, "n=1", "seed=3"], table="player,perplexity,k\nhuman,2.50,\nlm,1.0,0.1\n")
    make_job(tmp_path, 1, overrides=[*same, "n=2", "seed=3"], status="failed", error="no, not that")
    make_job(tmp_path, 2, overrides=["+exp=perplexity", "sweep=a", "resume=true", "n=10", "seed=3"])
    make_job(tmp_path, 3, overrides=[*same, "n=99", "seed=3"])
    make_job(tmp_path, 5, overrides=[*same, "n=1", "seed=3"])
    planned = [{"exp": "perplexity", "n": n, "seed": "3"} for n in ("1", "2", "10", "20", "30")]
    jobs = collect(tmp_path, planned)
    # job 3 holds another sweep's result, job 4 was never begun, job 5 is beyond the plan
    assert [job.status for job in jobs] == ["ok", "failed", "ok", "missing", "missing"]
    assert swept_settings(jobs) == ["n"]
    table = write_summary(tmp_path, jobs, title="t", dpi=30).table
    with (tmp_path / "summary.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["job", "status", "sweep.n", "player", "perplexity", "k", "error"],
            ["0", "ok", "1", "human", "2.50", "", ""],
            ["0", "ok", "1", "lm", "1.0", "0.1", ""],
            ["1", "failed", "2", "", "", "", "no, not that"],
            ["2", "ok", "10", "human", "2.5", "", ""],
            ["3", "missing", "20", "", "", "", ""],
            ["4", "missing", "30", "", "", "", ""],
        ]
    # what does not depend on the setting stands once
    assert table[["n", "perplexity"]].to_numpy().tolist() == [["all", "2.5"], [1, "1"]]
    assert (tmp_path / "summary.png").stat().st_size > 1000
    assert "<svg" in (tmp_path / "summary.svg").read_text()


@pytest.mark.subprocess
def test_an_interrupted_sweep_leaves_a_summary(tmp_path):
    patch = break_experiment("settings.seed == 1", "KeyboardInterrupt")
    done = run(tmp_path, "-m", "+exp=perplexity", *TINY, "seed=0,1,2", "sweep=s", patch=patch)
    folder = tmp_path / "multirun/perplexity/s"
    assert done.returncode == 130
    assert statuses(folder) == {0: "ok", 1: "interrupted"}
    with (folder / "summary.csv").open(newline="") as file:
        found = {(row["job"], row["status"], row["sweep.seed"]) for row in csv.DictReader(file)}
    assert found == {("0", "ok", "0"), ("1", "interrupted", "1"), ("2", "missing", "2")}


@pytest.mark.subprocess
def test_one_failed_job_does_not_stop_the_others(tmp_path):
    patch = break_experiment("settings.seed == 1", "RuntimeError('the roof is leaking')")
    done = run(tmp_path, "-m", "+exp=perplexity", *TINY, "players=[human],[bob]", "seed=0,1", "sweep=s", patch=patch)
    folder = tmp_path / "multirun/perplexity/s"
    assert done.returncode == 1
    # job 3 is broken before the unknown player is found
    assert statuses(folder) == {0: "ok", 1: "failed", 2: "failed", 3: "failed"}
    for number in (1, 3):
        log = (folder / str(number) / "run.log").read_text()
        assert "Traceback (most recent call last)" in log
        assert "RuntimeError: the roof is leaking" in log
    log = (folder / "2/run.log").read_text()
    assert "unknown player 'bob'" in log
    assert "Traceback" not in log
    assert "4 jobs: 3 failed, 1 ok" in done.stdout
    with (folder / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["error"] for row in rows if row["job"] == "1"} == {"RuntimeError: the roof is leaking"}
    assert {(row["sweep.players"], row["sweep.seed"]) for row in rows if row["job"] == "0"} == {("[human]", "0")}

    # the roof is mended: only what failed is done again
    before = (folder / "0/status.json").stat().st_mtime_ns
    done = run(tmp_path, "-m", "+exp=perplexity", *TINY, "players=[human],[bob]", "seed=0,1", "sweep=s", "resume=true")
    assert done.returncode == 1
    assert statuses(folder) == {0: "ok", 1: "ok", 2: "failed", 3: "failed"}
    assert (folder / "0/status.json").stat().st_mtime_ns == before
    assert "job 0: done before, skipped" in done.stderr
    assert "job 1: done before" not in done.stderr


@pytest.mark.parametrize("n_groups", [1, 29])
def test_every_mark_of_the_figure_lies_inside_its_axes(n_groups):
    rows = pd.MultiIndex.from_product([[0.7, 0.9], [f"p{at}" for at in range(n_groups)]], names=["at_least", "player"])
    table = rows.to_frame(index=False)
    value = np.linspace(1.4, 3.6, len(table))
    table = table.assign(gap_nats=value, gap_nats_lower=value - 0.5, gap_nats_upper=value + 0.5)

    class OwnRow(column.Row):
        at_least: float = column.key("threshold")
        player: str = column.key("player")
        gap_nats: float = column.headline("gap", interval="gap_nats_{}")

    columns = OwnRow.columns
    figure = draw_sweep(table, columns, "t")
    assert figure is not None
    figure.canvas.draw()
    (axes,) = figure.axes if n_groups > 12 else figure.axes[:1]
    marks = np.concatenate([line.get_transform().transform(line.get_xydata()) for line in axes.lines])
    assert len(marks) >= 2 * n_groups
    assert all(axes.bbox.contains(x, y) for x, y in marks)
