"""Replicates: order, resumption, refusal of what does not belong together."""

from __future__ import annotations

import json
import logging
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from estimators.errors import InputError
from inference.posterior import replicates
from inference.posterior.replicates import Row, Task, run_replicates


def square(task: Task, calls: Path) -> list[Row]:
    with calls.open("a") as file:
        file.write(f"{task['seed']}\n")
    return [{"value": np.float64(task["seed"]) ** 2}, {"value": float("nan")}]


TASKS: list[Task] = [{"cell": "a", "seed": seed} for seed in range(6)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_come_in_the_order_of_tasks(tmp_path: Path, n_jobs: int) -> None:
    work = partial(square, calls=tmp_path / "calls")
    rows = run_replicates(work, TASKS, path=tmp_path / "r.jsonl", settings={}, n_jobs=n_jobs)
    assert [row["value"] for row in rows[::2]] == [seed**2 for seed in range(6)]
    assert all(np.isnan(row["value"]) and row["cell"] == "a" for row in rows[1::2])


def test_goes_on_after_a_kill_in_the_middle_of_a_line(tmp_path: Path) -> None:
    path, calls = tmp_path / "r.jsonl", tmp_path / "calls"
    work = partial(square, calls=calls)
    run_replicates(work, TASKS[:3], path=path, settings={"n": 1})
    path.write_text(path.read_text()[:-20])  # the last line is half written
    counts: list[tuple[int, int]] = []
    rows = run_replicates(work, TASKS, path=path, settings={"n": 1}, progress=lambda *now: counts.append(now))
    assert calls.read_text().split() == ["0", "1", "2", "2", "3", "4", "5"]
    assert counts[0] == (2, 6)
    assert counts[-1] == (6, 6)
    assert [row["value"] for row in rows[::2]] == [seed**2 for seed in range(6)]
    assert len(path.read_text().splitlines()) == 7


def test_refuses_other_settings_and_other_files(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    work = partial(square, calls=tmp_path / "calls")
    run_replicates(work, TASKS, path=path, settings={"n": 1, "draws": 5})
    with pytest.raises(InputError, match=r"r\.jsonl.*other settings \(n\)"):
        run_replicates(work, TASKS, path=path, settings={"n": 2, "draws": 5})
    with pytest.raises(InputError, match="more than once"):
        run_replicates(work, [*TASKS, TASKS[0]], path=path, settings={"n": 1, "draws": 5})
    with pytest.raises(InputError, match="at least 1"):
        run_replicates(work, TASKS, path=path, settings={"n": 1, "draws": 5}, n_jobs=0)
    path.write_text(json.dumps({"some": "thing"}) + "\n")
    with pytest.raises(InputError, match="not a file of replicates"):
        run_replicates(work, TASKS, path=path, settings={})
    path.write_text("no json\n")
    with pytest.raises(InputError, match="line 1"):
        run_replicates(work, TASKS, path=path, settings={})


@pytest.fixture
def other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is run next is of other code than what was run before."""
    monkeypatch.setattr(replicates, "_CODE", ("estimators",))


def test_refuses_rows_of_other_code(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path, work = tmp_path / "r.jsonl", partial(square, calls=tmp_path / "calls")
    run_replicates(work, TASKS, path=path, settings={"n": 1})
    before = path.read_text()
    request.getfixturevalue("other_code")
    with pytest.raises(InputError, match=r"r\.jsonl.*made by other code"):
        run_replicates(work, TASKS, path=path, settings={"n": 1})
    assert path.read_text() == before


def test_rows_of_other_code_are_set_aside_where_asked(
    tmp_path: Path, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    path, calls = tmp_path / "r.jsonl", tmp_path / "calls"
    again = partial(run_replicates, partial(square, calls=calls), TASKS, path=path, set_aside=True)
    again(settings={"n": 1})
    before = path.read_text()
    again(settings={"n": 1})
    assert len(calls.read_text().split()) == 6
    request.getfixturevalue("other_code")
    with caplog.at_level(logging.WARNING, "shannon-game"):
        again(settings={"n": 1})
        again(settings={"n": 2})
    assert len(calls.read_text().split()) == 18
    assert (tmp_path / "r-before-1.jsonl").read_text() == before
    assert (tmp_path / "r-before-2.jsonl").is_file()
    first, second = caplog.messages
    assert "made by other code; it is now r-before-1.jsonl, and its 6 tasks begin anew" in first
    assert "made with other settings (n)" in second
