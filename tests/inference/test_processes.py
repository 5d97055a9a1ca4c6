"""A process that works for another one ends with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.experiments.command import environment

PARENT = """
import sys, time
from pathlib import Path
from shannon_game.inference.posterior.replicates import run_replicates
from tests.inference.test_processes import never_ends
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
