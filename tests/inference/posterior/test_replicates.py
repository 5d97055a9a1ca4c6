"""Replicates: order, resumption, refusal of what does not belong together."""

from __future__ import annotations

import errno
import json
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior import replicates
from shannon_game.inference.posterior.replicates import Row, Task, run_replicates


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


def edit_line(number: int, edit: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        lines[number - 1] = edit(lines[number - 1])
        path.write_bytes(b"".join(lines))

    return spoil


def from_another_file(path: Path) -> None:
    """A line of the same task, with other settings."""
    run_replicates(partial(square, calls=path.with_name("calls")), TASKS, path=path.with_name("o"), settings={"n": 2})
    edit_line(3, lambda line: path.with_name("o").read_bytes().splitlines(keepends=True)[2])(path)


NOT_WRITTEN = "is not as it was written, or of another file"

DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a changed number": (edit_line(3, lambda line: line.replace(b"1.0", b"7.0")), rf"line 3: {NOT_WRITTEN}"),
    "another file's line": (from_another_file, rf"line 3: {NOT_WRITTEN}"),
    "a line without a checksum": (edit_line(3, lambda line: b'{"task": {}, "rows": []}\n'), rf"line 3: {NOT_WRITTEN}"),
    "no JSON": (edit_line(3, lambda line: line[:20] + b"\n"), "line 3: is not JSON"),
    "settings that are none": (
        edit_line(1, lambda line: json.dumps({"format": "shannon-game replicates 1"}).encode() + b"\n"),
        "not a file of replicates",
    ),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "cannot be read and written: Is a directory"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_or_foreign_file_is_named_and_left_as_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    again = partial(run_replicates, partial(square, calls=tmp_path / "calls"), TASKS, path=path, settings={"n": 1})
    again()
    spoil, message = DAMAGED[name]
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(InputError, match=message) as caught:
        again()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_killed_at_any_byte_it_ends_with_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    again = partial(run_replicates, partial(square, calls=tmp_path / "calls"), TASKS[:1], path=path, settings={"n": 1})
    again()
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        again()
        assert path.read_bytes() == whole


def test_a_full_disk_is_told_in_one_line_and_what_is_done_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    again = partial(run_replicates, partial(square, calls=tmp_path / "calls"), path=path, settings={"n": 1})
    again(TASKS[:2])
    with monkeypatch.context() as full:
        full.setattr(Path, "open", no_space(Path.open))
        with pytest.raises(InputError, match=r"r\.jsonl: cannot be read and written: No space left on device"):
            again(TASKS)
    again(TASKS)
    assert (tmp_path / "calls").read_text().split() == ["0", "1", "2", "2", "3", "4", "5"]


def no_space(opened: Callable[..., Any]) -> Callable[..., Any]:
    """Open files as ever, other than those that results are added to."""

    def opening(path: Path, mode: str = "r", *more: Any, **named: Any) -> Any:
        if mode == "ab":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return opened(path, mode, *more, **named)

    return opening


def test_rows_of_other_code_are_refused_or_set_aside_where_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, calls = tmp_path / "r.jsonl", tmp_path / "calls"
    again = partial(run_replicates, partial(square, calls=calls), TASKS, path=path, set_aside=True)
    again(settings={"n": 1})
    before = path.read_text()
    again(settings={"n": 1})
    assert len(calls.read_text().split()) == 6
    # what is run next is of other code than what was run before
    monkeypatch.setattr(replicates, "_CODE", ("shannon_game.estimators",))
    with pytest.raises(InputError, match=r"r\.jsonl.*made by other code"):
        run_replicates(partial(square, calls=calls), TASKS, path=path, settings={"n": 1})
    assert path.read_text() == before
    with caplog.at_level(logging.WARNING, "shannon-game"):
        again(settings={"n": 1})
        again(settings={"n": 2})
    assert len(calls.read_text().split()) == 18
    assert (tmp_path / "r-before-1.jsonl").read_text() == before
    assert (tmp_path / "r-before-2.jsonl").is_file()
    first, second = caplog.messages
    assert "made by other code; it is now r-before-1.jsonl, and its 6 tasks begin anew" in first
    assert "made with other settings (n)" in second
