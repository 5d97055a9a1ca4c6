"""``doctor``: every kind of trouble is found, named and has a cure; nothing is found where all is well."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from shannon_game.experiments.first_steps import doctor as doctor_module
from shannon_game.experiments.first_steps import machine
from shannon_game.experiments.harness.findings import Finding
from tests.experiments.command import environment

REQUIRES = ["numpy>=1.26", "gone>=2", "old<2", "pymc>=5; extra == 'bayes'", "absent; extra == 'lm'",
            "shannon-game[lm]; extra == 'sweeps'",
            "old>=3; extra == 'api'", "future; python_version < '3'"]  # fmt: skip
VERSIONS = {"shannon-game": "1.2", "numpy": "2.0", "old": "2.5", "pymc": "5.28"}


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name not in VERSIONS:
            raise PackageNotFoundError(name)
        return VERSIONS[name]

    monkeypatch.setattr(doctor_module, "version", version)
    monkeypatch.setattr(doctor_module, "requires", lambda name: REQUIRES)


@pytest.mark.usefixtures("packages")
def test_packages_that_are_absent_or_do_not_fit_are_problems() -> None:
    found = {each.name: each for each in doctor_module.packages()}
    assert {name for name, each in found.items() if each.problem} == {"gone", "old"}
    assert found["gone"].problem == "is not installed"
    assert found["old"].problem == "is 2.5, should be <2"
    assert found["numpy"] == Finding("numpy", "2.0")
    assert "future" not in found


def test_data_are_checked_by_their_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHANNON_DATA", str(tmp_path))
    place, *studies = machine.data()
    assert (place.value, place.problem) == (str(tmp_path), "")
    assert all(not each.problem and each.cure for each in studies)
    folder = tmp_path / "provo"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / name).write_text(name)
    sums = "".join(f"{hashlib.sha256(name.encode()).hexdigest()}  ./{name}\n" for name in ("a", "b", "c"))
    assert "not checked" in next(each for each in machine.data() if each.name == "provo").value
    (folder / "SHA256SUMS").write_text(sums)
    whole = next(each for each in machine.data() if each.name == "provo")
    assert (whole.problem, whole.value.split(" as ")[0]) == ("", "3 files")
    (folder / "a").write_text("changed")
    (folder / "b").unlink()
    broken = next(each for each in machine.data() if each.name == "provo")
    assert broken.problem == "1 of 3 files missing, such as b; 1 of 3 files with another content, such as a"
    assert broken.cure


@pytest.mark.subprocess
def test_the_command_runs_here(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.run", "doctor", "--no-gpu"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == (not done.stdout.startswith("0 problems")), done.stderr
    assert "python and packages" in done.stdout
    assert list(tmp_path.iterdir()) == []
