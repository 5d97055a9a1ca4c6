"""A job counts as done only with the same settings, code and data, and with all that it wrote still there."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from shannon_game.estimators.code_identity import code_hash
from shannon_game.experiments.harness import outputs
from shannon_game.experiments.harness.outputs import JobStatus, write_status
from shannon_game.experiments.harness.resume import JobIdentity, content_hash, done_before, job_identity, take_over
from shannon_game.inference.manifest import FITS, manifest_of
from shannon_game.inference.own_folder import release, take
from tests.experiments.command import run

DONE = JobStatus("ok", "perplexity", ("n=1",), "", "2026-01-01T00:00:00+00:00")


def change_in_place(path: Path) -> None:
    """Change the last byte; size and time of change stay."""
    found = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "texts").mkdir(parents=True)
    (folder / "table.csv").write_text("a\n1\n")
    (folder / "texts/one.txt").write_text("one")
    (folder / "large.bin").write_bytes(bytes(2**20 + 1))
    return folder


@pytest.fixture
def cfg(data: Path) -> DictConfig:
    return OmegaConf.create(
        {
            "experiment": {"name": "perplexity", "replicates": str(data / "texts")},
            "study": {"name": "texts", "path": str(data / "table.csv"), "cache_dir": str(data), "columns": {"a": "a"}},
            "data": {"root": "${study.path}"},
            "models": {"tiny": {"path": [str(data)]}},
            "generator": None,
            "seed": 1,
        }
    )


@pytest.fixture
def job(tmp_path: Path, cfg: DictConfig) -> Path:
    """Folder of a job that is done."""
    folder = tmp_path / "job"
    (folder / "figures").mkdir(parents=True)
    names = ("table.csv", "figures/line.png")
    for name in names:
        (folder / name).write_text(name)
    (folder / "run.log").write_text("grows")
    written = {name: digests for name, digests in manifest_of(folder).items() if name in names}
    write_status(folder, replace(DONE, **asdict(job_identity(cfg)), sha256=written))
    return folder


def test_a_job_that_is_whole_is_done(job: Path, cfg: DictConfig) -> None:
    (job / "run.log").write_text("has grown")
    assert done_before(job, job_identity(cfg)) == (True, "")


@pytest.mark.parametrize("name", ["table.csv", "figures/line.png"])
@pytest.mark.parametrize("how", [Path.unlink, lambda path: path.write_text("cut")], ids=["missing", "cut off"])
def test_a_broken_output_is_named(job: Path, cfg: DictConfig, name: str, how: Callable[[Path], object]) -> None:
    how(job / name)
    assert done_before(job, job_identity(cfg)) == (False, f"{name} is missing or has changed")


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        (lambda data: (data / "table.csv").write_text("a\n2\n"), "study.path"),
        (lambda data: (data / "texts/two.txt").touch(), "models.tiny.path.0"),
        (lambda data: (data / "texts/one.txt").rename(data / "texts/0.txt"), "models.tiny.path.0"),
        (lambda data: change_in_place(data / "large.bin"), "models.tiny.path.0"),
        (lambda data: (data / "table.csv").unlink(), "study.path"),
    ],
)
def test_changed_data_are_named(
    job: Path, cfg: DictConfig, data: Path, change: Callable[[Path], object], setting: str
) -> None:
    change(data)
    assert done_before(job, job_identity(cfg)) == (False, f"the files of {setting} have changed since")


def test_other_code_and_other_settings_are_named(job: Path, cfg: DictConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    other = OmegaConf.merge(cfg, {"seed": 2})
    assert done_before(job, job_identity(other)) == (False, "it was of other settings or another version")
    # the same packages with one module more
    monkeypatch.setattr(outputs, "code_hash", lambda *names: code_hash(*names, "tests.experiments.command"))
    assert done_before(job, job_identity(cfg)) == (False, "the code has changed since")


def test_content_and_not_place_or_time_decides(data: Path, tmp_path: Path) -> None:
    before = content_hash(data)
    for path in (data / "table.csv", data / "texts"):
        os.utime(path, (0, 0))
    # what a run, a sweep or an editor leaves inside the folder is no data
    for name in (
        "outputs/.hydra/config.yaml",
        "sweep/multirun.yaml",
        "sweep/0/table.csv",
        ".cache/x",
        ".table.csv.swp",
    ):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    (data / "texts/loop").symlink_to(data, target_is_directory=True)
    assert content_hash(data) == before
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/new.txt").touch()
    (data / "link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    linked = content_hash(data)
    assert linked != before
    (tmp_path / "elsewhere/new.txt").write_text("changed")
    assert content_hash(data) != linked
    assert content_hash(data / "no such file") is None


@pytest.mark.subprocess
def test_a_sweep_does_again_what_no_longer_fits(tmp_path: Path) -> None:
    pairs = [["item", "draw", "context", "target", "candidate", "target_logprob_lm", "candidate_logprob_lm"]]
    for item in range(4):
        pairs += [[item, draw, "a", " b", f" c{draw}", -1.0 - item / 4, -1.5 - draw / 4] for draw in range(3)]
    answers = [["item", "draw", "participant", "report"]]
    answers += [[item, draw, f"p{draw}", 0.5 + item / 10] for item in range(4) for draw in range(3)]

    def write(name: str, rows: list[list[object]]) -> None:
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)

    def sweep(*more: str) -> list[str]:
        settings = (
            "study=comparison_table",
            "study.pairs=pairs.csv",
            "study.answers=answers.csv",
            "study.generator=lm",
        )
        quick = ("output.dpi=40", "output.print=false", "sweep=s", "seed=0,1")
        done = run(tmp_path, "-m", "+exp=perplexity", *settings, *quick, *more)
        assert done.returncode == 0, done.stderr
        return [line for line in done.stderr.splitlines() if "done again" in line or "done before" in line]

    folder = tmp_path / "multirun/perplexity/s"
    write("pairs.csv", pairs)
    write("answers.csv", answers)
    assert sweep() == []
    first = (folder / "0/table.csv").read_text()
    (folder / "1/report.md").unlink()
    again = ["job 0: done before, skipped", "job 1: done again: report.md is missing or has changed"]
    assert sweep("resume=true") == again
    assert (folder / "1_before_1/table.csv").exists()

    answers[1][-1] = 0.9
    write("answers.csv", answers)
    reason = "the files of study.answers have changed since"
    assert sweep("resume=true") == [f"job {job}: done again: {reason}" for job in (0, 1)]
    assert (folder / "0_before_1/table.csv").read_text() == first
    assert (folder / "0/table.csv").read_text() != first

    status = json.loads((folder / "0/status.json").read_text())
    assert {"table.csv", "report.md", "results.nc"} <= status["sha256"].keys()


def stopped(folder: Path, identity: JobIdentity, status: str = "interrupted") -> Path:
    folder.mkdir()
    (folder / "replicates.jsonl").write_text("rows")
    (folder / FITS).mkdir()
    (folder / FITS / "one.nc").write_text("draws")
    write_status(folder, JobStatus(status, "perplexity", (), started="", **asdict(identity)))  # type: ignore[arg-type]
    return folder


def test_a_run_goes_on_with_what_the_same_run_left(tmp_path: Path, cfg: DictConfig) -> None:
    identity = job_identity(cfg)
    left = stopped(tmp_path / "08-00", identity)
    new = tmp_path / "09-00"
    new.mkdir()
    assert take_over(new, identity) == left
    assert (new / FITS / "one.nc").read_text() == "draws"
    assert (new / "replicates.jsonl").read_text() == "rows"
    assert take_over(new, identity) is None


@pytest.mark.parametrize("how", ["done", "other settings", "other data", "lives"])
def test_what_is_not_the_same_run_or_not_stopped_stays(tmp_path: Path, cfg: DictConfig, how: str) -> None:
    identity = job_identity(cfg)
    left = stopped(tmp_path / "08-00", identity, "ok" if how == "done" else "running")
    new = tmp_path / "09-00"
    new.mkdir()
    if how == "lives":
        take(left)
    changes = {"other settings": {"config_hash": "00"}, "other data": {"data": {"study.path": "00"}}}
    try:
        assert take_over(new, replace(identity, **changes.get(how, {}))) is None
    finally:
        release()
    assert (left / "replicates.jsonl").exists()
