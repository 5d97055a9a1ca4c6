"""Folders of runs: one run each, whoever starts when."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.inference import own_folder
from tests.experiments.command import TINY, break_experiment, command, environment, files, run
from tests.same import assert_same_table


@pytest.fixture(autouse=True)
def _given_back() -> Iterator[None]:
    yield
    own_folder.release()


@pytest.mark.subprocess
def test_a_folder_belongs_to_the_process_that_lives(tmp_path: Path) -> None:
    hold = "import sys, time; from pathlib import Path; from shannon_game.inference.own_folder import take\n"
    hold += "take(Path(sys.argv[1])); print('taken', flush=True); time.sleep(600)"
    owner = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment()
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "taken\n"
        assert own_folder.is_taken(tmp_path)
        with pytest.raises(InputError, match=rf"process {owner.pid} on .* writes there"):
            own_folder.take(tmp_path)
    finally:
        owner.kill()
        owner.communicate()
    own_folder.take(tmp_path)


@pytest.mark.subprocess
def test_runs_that_start_at_once_give_a_result_each(tmp_path: Path) -> None:
    # the time that all of them see is the word "same"
    arguments = command("+exp=perplexity", *TINY, "hydra.run.dir='outputs/${now:same}'", "output.print=false")
    runs = [subprocess.Popen(arguments, cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL) for _ in range(3)]
    assert [one.wait() for one in runs] == [0] * 3
    found = sorted((tmp_path / "outputs").iterdir())
    assert {path.name for path in found} == {"same", "same_2", "same_3"}
    for path in found[1:]:
        assert_same_table(path / "table.csv", found[0] / "table.csv")
    assert len({tuple(files(path)) for path in found}) == 1


def content(folder: Path) -> dict[Path, bytes]:
    """Files but for the log, to which the owner writes."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "run.log"}


@pytest.mark.subprocess
def test_the_second_run_into_a_folder_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    patch = break_experiment("__import__('time').sleep(1e6)", "KeyboardInterrupt")
    arguments = ("+exp=perplexity", *TINY, "hydra.run.dir=here")
    first = subprocess.Popen(command(*arguments, patch=patch), cwd=tmp_path, env=environment(), stderr=subprocess.PIPE)
    try:
        status = tmp_path / "here/status.json"
        end = time.monotonic() + 600
        while not (status.exists() and "perplexity" in status.read_text()) and time.monotonic() < end:
            time.sleep(0.2)
        before = content(tmp_path / "here")
        second = run(tmp_path, *arguments)
        assert second.returncode == 2
        assert second.stderr.count("\n") == 1
        assert f"process {first.pid} on" in second.stderr
        assert content(tmp_path / "here") == before
    finally:
        first.kill()
        first.communicate()
