"""Many independent replicates of one computation: in parallel, every finished one on disk at once, resumable.

Simulation-based calibration and recovery studies are hundreds of fits that do not depend on each other. Each has a
*task*, a small mapping that says which one it is (its cell and its seed); what the task gives is a list of flat rows.
joblib runs them; its cache on disk would be a pickle a task, which nobody reads and no checksum guards.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from shannon_game.estimators.code_identity import sampler_versions, work_hash
from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.kept import keep_fits
from shannon_game.inference.processes import end_with

Task = Mapping[str, str | int | float]
Row = dict[str, Any]

log = logging.getLogger("shannon-game")

_FORMAT = "shannon-game replicates 1"
# besides these, the module of the work itself; figures and tables live elsewhere and decide no row
_CODE = ("shannon_game.estimators", "shannon_game.models", "shannon_game.inference")
_MADE_BY = ("code", "packages")


def run_replicates(
    work: Callable[[Task], Sequence[Row]],
    tasks: Sequence[Task],
    *,
    path: Path | str,
    settings: Mapping[str, Any],
    n_jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    set_aside: bool = False,
) -> list[Row]:
    """Compute every task that is not in the file yet, and return the rows of all of them."""
    if n_jobs < 1:
        raise InputError(f"is {n_jobs}, should be at least 1", field="n_jobs")
    keys = [_key(task) for task in tasks]
    if len(set(keys)) < len(keys):
        twin = next(dict(task) for task, key in zip(tasks, keys, strict=True) if keys.count(key) > 1)
        raise InputError(f"contain {twin} more than once", field="tasks")
    path = Path(path)
    # as they come back from the file
    settings = json.loads(
        json.dumps({**settings, "code": work_hash(work, *_CODE), "packages": sampler_versions()}, sort_keys=True)
    )
    done = _open(path, settings, set_aside=set_aside)
    missing = [task for task, key in zip(tasks, keys, strict=True) if key not in done]
    n_done = len(tasks) - len(missing)
    if progress is not None:
        progress(n_done, len(tasks))
    for task, rows in _computed(work, missing, n_jobs):
        plain = [_plain(row) for row in rows]
        entry = {"task": dict(task), "rows": plain}
        with _file_errors(path), path.open("ab", buffering=0) as file:
            file.write(_line({"sum": _checksum(settings, entry), **entry}))
        done[_key(task)] = plain
        n_done += 1
        if progress is not None:
            progress(n_done, len(tasks))
    return [{**task, **row} for task, key in zip(tasks, keys, strict=True) for row in done[key]]


def _computed(work: Callable[[Task], Sequence[Row]], tasks: Sequence[Task], n_jobs: int) -> Any:
    """Tasks with their rows, as they end."""
    if n_jobs == 1 or len(tasks) < 2:
        return ((task, _unkept(work, task)) for task in tasks)
    from joblib import Parallel, delayed  # noqa: PLC0415 - only for more than one process

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    return parallel(delayed(_with_task)(work, task, os.getpid()) for task in tasks)


def _unkept(work: Callable[[Task], Sequence[Row]], task: Task) -> Sequence[Row]:
    # its rows are kept, so that its fits need not be
    with keep_fits(None):
        return work(task)


def _with_task(work: Callable[[Task], Sequence[Row]], task: Task, parent: int) -> tuple[Task, Sequence[Row]]:
    end_with(parent)
    return task, work(task)


def _open(path: Path, settings: Mapping[str, Any], *, set_aside: bool) -> dict[Hashable, list[Row]]:
    """Rows of the tasks that the file has; a last line that was cut off by a kill is dropped."""
    first = _line({"format": _FORMAT, "settings": settings})
    with _file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if path.exists() else b""
        if first.startswith(content):
            # nothing yet, or a first line that was cut off
            if content != first:
                path.write_bytes(first)
            return {}
    lines = content.split(b"\n")
    # of a file of another kind nothing is cut off
    found = [_parsed(lines[0], path, 1)]
    if found[0].get("format") != _FORMAT or not isinstance(found[0].get("settings"), dict):
        raise InputError("is not a file of replicates; take another path", source=str(path))
    if cut := len(lines.pop()) if len(lines) > 1 else 0:
        with _file_errors(path):
            os.truncate(path, len(content) - cut)
    old = found[0]["settings"]
    if old != settings:
        differ = sorted(name for name in old.keys() | settings.keys() if old.get(name) != settings.get(name))
        others = [name for name in differ if name not in _MADE_BY]
        how = f"with other settings ({', '.join(others)})" if others else f"by other {' and '.join(differ)}"
        if not set_aside:
            raise InputError(f"was made {how}; go back to that, or take another path", source=str(path))
        aside = _free_name(path)
        log.warning("%s was made %s; it is now %s, and its %d tasks begin anew", path, how, aside.name, len(lines) - 1)
        with _file_errors(path):
            path.rename(aside)
        return _open(path, settings, set_aside=False)
    found += [_parsed(line, path, number) for number, line in enumerate(lines[1:], start=2)]
    for number, entry in enumerate(found[1:], start=2):
        if entry.get("sum") != _checksum(settings, {name: entry.get(name) for name in ("task", "rows")}):
            raise InputError(
                "is not as it was written, or of another file (its checksum does not fit); remove the line, and its "
                "task is done again",
                source=str(path),
                field=f"line {number}",
            )
    return {_key(entry["task"]): entry["rows"] for entry in found[1:]}


def _parsed(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"is not JSON ({problem})", source=str(path), field=f"line {number}") from None
    if not isinstance(found, dict):
        raise InputError("is no JSON object", source=str(path), field=f"line {number}")
    return found


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _checksum(settings: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """Of a line and of the file that it stands in."""
    return hashlib.sha256(json.dumps([settings, entry], sort_keys=True).encode()).hexdigest()[:16]


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"cannot be read and written: {problem.strerror or problem}; what is done is kept, take another path or "
            "make room",
            source=str(path),
        ) from problem


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.stem}-before-{number}{path.suffix}") for number in count(1))
    return next(name for name in names if not name.exists())


def _key(task: Task) -> Hashable:
    return json.dumps(dict(task), sort_keys=True)


def _plain(row: Row) -> Row:
    """NumPy scalars as Python's; a NaN is stored as such (JSON's readers in Python know it)."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in row.items()}
