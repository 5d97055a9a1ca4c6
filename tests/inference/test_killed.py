"""Whatever can be resumed is killed, several times and at any moment; what comes out at the end has the same bytes.

A process that works for another one ends with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from shannon_game.inference.lm.stored import compute_stored
from shannon_game.inference.posterior.replicates import Row, Task, run_replicates
from shannon_game.inference.store.keys import context_seed, operation_key, result_key
from shannon_game.inference.store.store import open_store, ragged
from tests.experiments.command import environment

ROOT = Path(__file__).parents[2]
N = 48
N_KILLS = 2


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def pairs(items: list[int]) -> list[list[int]]:
    return [[at, at + 1][: len(items) - at] for at in range(0, len(items), 2)]


def store(folder: Path, pause: float) -> str:
    """Fill a store, and hash what it gives back."""
    keys = [result_key(item) for item in range(N)]

    def compute(items: list[int]) -> dict[str, np.ndarray]:
        time.sleep(pause)
        draws = [np.random.default_rng(context_seed(1, keys[item])).normal(size=1 + item % 3) for item in items]
        return {"square": np.array(items) ** 2, "draws": ragged(draws)}

    operation = operation_key("killed", model={}, parameters={})
    arrays = compute_stored(open_store(folder / "store"), operation, range(N), keys, compute, batches=pairs).arrays
    return digest(arrays["square"].tobytes(), *(row.tobytes() for row in arrays["draws"]))


def fit(task: Task, pause: float) -> list[Row]:
    time.sleep(pause)
    draws = np.random.default_rng(int(task["seed"])).normal(size=3)
    return [{"draw": draw, "text": f"é{draw:.3f}"} for draw in draws]


def replicates(folder: Path, pause: float, n_jobs: int = 1) -> str:
    """Compute replicates, and hash their rows and, where they end in order, the file."""
    path, tasks = folder / "replicates.jsonl", [{"seed": seed} for seed in range(N)]
    rows = run_replicates(partial(fit, pause=pause), tasks, path=path, settings={}, n_jobs=n_jobs)
    return digest(json.dumps(rows).encode(), path.read_bytes() if n_jobs == 1 else b"")


RESUMED: dict[str, Callable[[Path, float], str]] = {
    "store": store,
    "replicates": replicates,
    "replicates of two processes": partial(replicates, n_jobs=2),
}


def on_disk(folder: Path) -> int:
    """Results that are there."""
    lines = [path.read_bytes().count(b"\n") - 1 for path in folder.glob("*.jsonl")]
    return sum(lines) + 2 * len(list(folder.glob("store/*/*.arrow")))


@pytest.mark.subprocess
@pytest.mark.parametrize("name", RESUMED)
def test_killed_and_resumed_the_bytes_are_the_same(name: str, tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()
    whole.mkdir()
    code = "import sys; from pathlib import Path; from tests.inference.test_killed import RESUMED; "
    code += f"RESUMED[{name!r}](Path(sys.argv[1]), 0.3)"
    n_before = 0
    for _ in range(N_KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(killed)],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            # its own processes die with it
            start_new_session=True,
        )
        deadline = time.monotonic() + 600
        while on_disk(killed) < n_before + 3 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.3))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        # nothing that was there is lost
        assert n_before < on_disk(killed) < N
        n_before = on_disk(killed)
    assert RESUMED[name](killed, 0.0) == RESUMED[name](whole, 0.0)


PARENT = """
import sys, time
from pathlib import Path
from shannon_game.inference.posterior.replicates import run_replicates
from tests.inference.test_killed import never_ends
run_replicates(never_ends, [{"folder": sys.argv[1], "n": n} for n in range(2)], path=sys.argv[1] + "/r.jsonl",
               settings={}, n_jobs=2)
"""


def never_ends(task: dict[str, str]) -> list[dict[str, int]]:
    Path(task["folder"], f"{os.getpid()}.pid").touch()
    time.sleep(1000)
    return []


def lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.subprocess
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], env=environment())
    end = time.monotonic() + 120
    while len(list(tmp_path.glob("*.pid"))) < 2 and time.monotonic() < end:
        time.sleep(0.2)
    workers = [int(path.stem) for path in tmp_path.glob("*.pid")]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    assert len(workers) == 2
    end = time.monotonic() + 120
    while any(lives(worker) for worker in workers) and time.monotonic() < end:
        time.sleep(0.2)
    assert not any(lives(worker) for worker in workers)
