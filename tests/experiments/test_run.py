"""The command: what it writes, how it fails, with which exit code."""

from __future__ import annotations

import errno
import json
import re
from dataclasses import replace

import pandas as pd
import pytest
import xarray as xr

import shannon_game.experiments.run
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.command_line import check_arguments
from shannon_game.experiments.harness.outputs import JobStatus, write_status
from shannon_game.experiments.run import _end, _judged
from tests.experiments.command import ROOT, TINY, break_experiment, files, run

EXPERIMENTS = sorted(path.stem for path in (ROOT / "conf/exp").glob("*.yaml"))


@pytest.mark.subprocess
def test_a_run_from_another_directory_writes_everything(tmp_path):
    done = run(tmp_path, "+exp=perplexity", *TINY, "hydra.run.dir=here")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "here"
    written = "figures/perplexity.png figures/perplexity.svg items.csv notes.csv participants.csv report.md results.nc"
    assert files(folder) == ["columns.json", *written.split(), "run.log", "status.json", "table.csv"]
    status = json.loads((folder / "status.json").read_text())
    assert status["status"] == "ok"
    assert status["experiment"] == "perplexity"
    assert status["error"] is None
    assert status["overrides"] == ["+exp=perplexity", *TINY]
    assert status["seconds"] > 0

    table = pd.read_csv(folder / "table.csv", keep_default_na=False)
    assert set(table["player"]) == {"human", "lm-weak", "lm-medium", "lm-strong"}
    # the printed table is the written one
    for player in table["player"]:
        assert player in done.stdout
    for value in table["perplexity"].astype(float):
        assert f"{value:.5g}" in done.stdout

    report = (folder / "report.md").read_text()
    for warning in status["warnings"]:
        assert f"- {warning}" in report
    with xr.open_dataset(folder / "results.nc", engine="h5netcdf") as dataset:
        assert dataset.attrs["study"] == "simulated"
        assert json.loads(dataset.attrs["config"])["study"]["n_items"] == 12

    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = run(tmp_path, "+exp=perplexity", *TINY, "seed=5", "hydra.run.dir=here")
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), [*EXPERIMENTS, "+exp="]),
        (("+exp=perplexityy",), ["perplexityy", "did you mean 'perplexity'?", ", ".join(sorted(EXPERIMENTS))]),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) and value else "",
)
def test_a_mistake_in_the_command_is_one_line_and_leaves_nothing(tmp_path, arguments, says):
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for text in says:
        assert text in done.stderr
    assert files(tmp_path) == []


@pytest.mark.subprocess
def test_an_unexpected_error_is_one_line_and_its_traceback_is_in_the_log(tmp_path):
    # extensions in Rust raise what is no Exception
    panic = "type('PanicException', (BaseException,), {})('the roof is leaking')"
    done = run(tmp_path, "+exp=perplexity", *TINY, "hydra.run.dir=here", patch=break_experiment("True", panic))
    assert done.returncode == 1
    assert done.stderr == ("unexpected error: PanicException: the roof is leaking; the traceback is in here/run.log\n")
    log = (tmp_path / "here/run.log").read_text()
    assert "Traceback (most recent call last)" in log
    assert "PanicException: the roof is leaking" in log
    assert files(tmp_path / "here") == ["run.log", "status.json"]
    status = json.loads((tmp_path / "here/status.json").read_text())
    assert (status["status"], status["error"]) == ("failed", "PanicException: the roof is leaking")


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (InputError("is 3, should be 4", field="n"), 2, "n: is 3, should be 4"),
        (MemoryError("Unable to allocate 74.5 GiB"), 2, "not enough memory: Unable to allocate 74.5 GiB; ask for less"),
        (OSError(errno.ENOSPC, "No space left on device", "table.csv"), 2, "cannot write: .*'table.csv'; make room"),
        (
            OSError("Can't write (errno = 28, error message = 'No space left on device')"),
            2,
            "cannot write: .*make room",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "table.csv"), 2, r"\[Errno 13\] Permission denied"),
        (RuntimeError("a\nb"), 1, "RuntimeError: a b"),
        (SystemExit(3), 1, "SystemExit: 3"),
    ],
)
def test_what_ends_a_job_is_judged(error, code, says):
    found, message = _judged(error)
    assert found == code
    assert re.match(says, message)
    assert "\n" not in message


def test_a_full_disk_leaves_no_status_rather_than_an_untrue_one(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    status = JobStatus("running", "perplexity", (), "", "")
    write_status(tmp_path, status)
    monkeypatch.setattr(shannon_game.experiments.run, "write_status", full)
    _end(tmp_path, replace(status, status="failed"))
    assert not list(tmp_path.iterdir())


@pytest.mark.subprocess
def test_a_reader_that_leaves_early_loses_no_output(tmp_path):
    patch = "import os, sys\nread, write = os.pipe()\nos.close(read)\nos.dup2(write, 1)\n"
    done = run(tmp_path, "+exp=perplexity", *TINY, "hydra.run.dir=here", patch=patch)
    assert done.returncode == 0, done.stderr
    assert "BrokenPipe" not in done.stderr
    assert json.loads((tmp_path / "here/status.json").read_text())["status"] == "ok"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-m", "+exp=perplexity,rounding"], "one experiment"),
        (["perplexity", "n=5", "human_loss"], "perplexity, human_loss: a run answers one"),
        (["-m", "+exp=perplexity", "resume=true"], "there is: first, second"),
        (["-m", "perplexity", "sweep=first"], "add resume=true"),
        (["+exp=perplexity", "seed=0,1"], "seed: has several values; add -m"),
    ],
)
def test_a_sweep_is_never_mixed_up(tmp_path, monkeypatch, arguments, says):
    for name in ("first", "second"):
        (tmp_path / "multirun/perplexity" / name / "0").mkdir(parents=True)
        (tmp_path / "multirun/perplexity" / name / "multirun.yaml").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says):
        check_arguments(arguments)


FAILED_GATE = """
import dataclasses, functools
import shannon_game.experiments.comparison.perplexity as module
real = module.perplexity
@functools.wraps(real)
def doubtful(study, settings):
    return dataclasses.replace(real(study, settings), gate_failed=True, warnings=("no convergence",))
module.perplexity = doubtful
"""


@pytest.mark.subprocess
def test_a_failed_check_is_the_exit_code_and_keeps_the_outputs(tmp_path):
    done = run(tmp_path, *TINY, "+exp=perplexity", "hydra.run.dir=out", patch=FAILED_GATE)
    assert done.returncode == 3, done.stderr
    status = json.loads((tmp_path / "out" / "status.json").read_text(encoding="utf-8"))
    assert status["status"] == "ok"
    assert status["gate_failed"]
    assert status["warnings"][-1] == "no convergence"
    assert (tmp_path / "out" / "table.csv").is_file()
    assert "a check failed" in done.stderr


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("players=[bob]",), ["'bob'", "human, lm-weak, lm-medium, lm-strong"]),
        (("output.dpx=3",), ["output: unknown setting 'dpx'; did you mean 'dpi'?"]),
    ],
)
def test_a_mistake_that_the_job_finds_is_one_line_and_a_failed_status(tmp_path, arguments, says):
    done = run(tmp_path, "+exp=perplexity", *TINY, *arguments, "hydra.run.dir=here")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert files(tmp_path / "here") == ["run.log", "status.json"]
    status = json.loads((tmp_path / "here/status.json").read_text())
    assert status["status"] == "failed"
    for text in says:
        assert text in done.stderr
        assert text in status["error"]
