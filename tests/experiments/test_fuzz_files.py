"""Damage by chance to folders of runs: one line that says so, or the right result; a user's files stay."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from shannon_game.experiments import run
from tests.experiments.command import TINY
from tests.experiments.test_users_files import hashes

OWN = {"own.txt": "mine", "figures/own.svg": "<svg/>", "model/weights.bin": "w", ".fits-own/x.nc": "x"}
"""A user's files beside the toolkit's."""

# ------------------------------------------------------------------------------------------------- damage


def _put(rng: random.Random, content: bytes) -> bytes:
    at, n = rng.randrange(len(content) + 1), rng.choice((1, 8, 100))
    return content[:at] + rng.randbytes(n) + content[at + n :]


def _json(rng: random.Random, content: bytes) -> bytes:
    """Another value somewhere, of another type."""
    lines = content.split(b"\n")
    try:
        data = json.loads(content)
        lines = []
    except ValueError:
        at = rng.randrange(len(lines))
        data = json.loads(lines[at]) if lines[at][:1] == b"{" else {"a": 1}
    inner: Any = data
    while isinstance(inner, dict) and inner:
        key = rng.choice(list(inner))
        if not isinstance(inner[key], dict) or not inner[key] or rng.random() < 0.2:
            inner[key] = rng.choice((None, 1, -1.5, "x", [], [1], {}, {"a": 1}, True, "../own.txt", ["x"], 10**400))
            break
        inner = inner[key]
    made = json.dumps(data).encode()
    if lines:
        lines[at] = made
        return b"\n".join(lines)
    return made


BYTES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "some bytes": _put,
    "cut off": lambda rng, content: content[: rng.randrange(len(content) + 1)],
    "empty": lambda rng, content: b"",
    "twice": lambda rng, content: content + content,
    "nested": lambda rng, content: b"[" * 200_000,
    "a digit": lambda rng, content: content.replace(*rng.choice(((b"1", b"7"), (b"0", b"3"), (b"5", b"9"))), 1),
    "another value": _json,
    "text": lambda rng, content: b"\xff\xfeno\r\n",
}


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


PATHS: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "a folder": _folder,
    "a loop": _link,
    "a stranger's": lambda path: shutil.copy(__file__, path),
}
DAMAGE = (*BYTES, *PATHS)


def damage(rng: random.Random, path: Path, how: str) -> None:
    if how in PATHS:
        PATHS[how](path)
    else:
        path.write_bytes(BYTES[how](rng, path.read_bytes()))


def files_of(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).as_posix() not in OWN
    )


# ------------------------------------------------------------------------------------------------- run folders


def forked(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run the command in a child of this process, which has imported all that it needs."""
    log = folder.parent / f"{folder.name}.log"
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.chdir(folder)
            out = log.open("w")
            os.dup2(out.fileno(), 1)
            os.dup2(out.fileno(), 2)
            sys.stdout = sys.stderr = out
            sys.argv = ["shannon-game", *arguments]
            with redirect_stdout(out), redirect_stderr(out):
                code = run.main()
        finally:
            out.flush()
            os._exit(code)
    for _ in range(1200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), log.read_text(errors="replace")
        time.sleep(0.05)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return -9, "no answer after 60 s"


RUN = ("+exp=perplexity", *TINY, "output.print=false")
RUNS: dict[str, tuple[str, ...]] = {
    "a run": (*RUN, "hydra.run.dir=mine"),
    "a bundled run": (*RUN, "output.bundle=true", "hydra.run.dir=mine"),
    "a sweep": ("-m", *RUN, "seed=0,1", "sweep=s", "hydra.sweep.dir=mine"),
}


def results(home: Path) -> dict[str, str]:
    """Tables that the runs in a folder wrote, by place."""
    return {
        name: (home / name).read_text() for name in hashes(home) if name.endswith("/table.csv") and "/." not in name
    }


def run_outcome(name: str, how: str, rng: random.Random, home: Path, template: Path) -> str:
    shutil.copytree(template, home, symlinks=True)
    for own, text in OWN.items():
        (home / "mine" / own).parent.mkdir(exist_ok=True)
        (home / "mine" / own).write_text(text)
    wanted = results(home)
    path = rng.choice(files_of(home / "mine"))
    damage(rng, path, how)
    place, damaged = str(path.relative_to(home)), hashes(home)
    resumed = ("resume=true",) if name == "a sweep" else ()
    code, said = forked(home, *RUNS[name], *resumed)
    if "Traceback" in said or "unexpected" in said or code not in (0, 1, 2):
        return f"wrong: {place}: {code}: {said[-600:]}"
    after = hashes(home)
    if any(after.get(f"mine/{own}") != damaged[f"mine/{own}"] for own in OWN):
        return f"wrong: {place}: a user's file changed"
    if code == 0:
        # beside what was there, where something stood in its way
        right = [
            results(home).get(name.replace("mine/", f"{other}/", 1)) for other in ("mine", "mine_2") for name in wanted
        ]
        return (
            "read"
            if any(right) and set(filter(None, right)) <= set(wanted.values())
            else f"wrong: {place}: another result"
        )
    changed = sorted(
        name
        for name in damaged
        if after.get(name) != damaged[name] and not name.endswith((".log", ".running", "multirun.yaml"))
    )
    if code == 2 and changed:
        return f"wrong: {place}: refused, and changed: {changed}"
    return "refused" if len(said) < 3000 else f"wrong: {place}: no line: {said}"


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_a_damaged_run_folder(name: str, tmp_path: Path, seed_offset: int) -> None:
    (template := tmp_path / "template").mkdir()
    code, said = forked(template, *RUNS[name])
    assert code == 0, said
    wrong = {}
    for number in range(3 * len(DAMAGE)):
        how = DAMAGE[number % len(DAMAGE)]
        rng = random.Random(crc32(f"{name} {number} {seed_offset}".encode()))
        found = run_outcome(name, how, rng, tmp_path / str(number), template)
        if found.startswith("wrong"):
            wrong[number, how] = found
    assert wrong == {}
