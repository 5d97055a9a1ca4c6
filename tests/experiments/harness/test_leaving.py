"""The end of a command: at once, and nothing is lost by it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import atexit, sys, threading, time
from shannon_game.experiments.harness.process import leave
atexit.register(lambda: print("registered"))
def work():
    time.sleep(0.5)
    print("worked")
if sys.argv[1] == "thread":
    threading.Thread(target=work).start()
print("said")
leave(3)
"""


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("way", "lines"), [("alone", ["said", "registered"]), ("thread", ["said", "worked", "registered"])]
)
def test_what_is_said_registered_or_still_at_work_is_whole(way: str, lines: list[str], tmp_path: Path) -> None:
    with (tmp_path / "said.txt").open("w") as file:
        done = subprocess.run([sys.executable, "-c", CODE, way], stdout=file, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (3, b"")
    assert (tmp_path / "said.txt").read_text().split() == lines
