"""Hashes of code: other bytes, names or scopes are another hash; the rest is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from shannon_game.estimators.code_identity import PACKAGES, code_hash, source_hash, work_hash
from shannon_game.estimators.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "some_package"
    (folder / "part").mkdir(parents=True)
    for name in ("__init__.py", "part/__init__.py", "part/one.py"):
        (folder / name).write_text(f"# {name}\n")
    (folder / "published.csv").write_text("value\n1\n")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def fresh(*names: str) -> str:
    code_hash.cache_clear()
    return code_hash(*names)


@pytest.mark.parametrize("name", ["__init__.py", "part/one.py", "published.csv"])
def test_one_byte_of_any_file_is_another_hash(package: Path, name: str) -> None:
    before = fresh("some_package")
    content = (package / name).read_bytes()
    (package / name).write_bytes(content + b"\n")
    assert fresh("some_package") != before
    (package / name).write_bytes(content)
    assert fresh("some_package") == before


def test_new_renamed_and_moved_bytes_are_another_hash(package: Path) -> None:
    seen = {fresh("some_package")}
    (package / "new.py").touch()
    seen.add(fresh("some_package"))
    (package / "new.py").rename(package / "newer.py")
    seen.add(fresh("some_package"))
    # the same bytes in the same order, but another file ends where they stand
    (package / "part/one.py").write_text("ab")
    (package / "part/two.py").write_text("c")
    seen.add(fresh("some_package"))
    (package / "part/one.py").write_text("a")
    (package / "part/two.py").write_text("bc")
    seen.add(fresh("some_package"))
    assert len(seen) == 5


def test_scopes_hold_what_they_name(package: Path) -> None:
    names = ("some_package", "some_package.part", "some_package.part.one")
    before = [fresh(name) for name in names]
    assert len(set(before)) == 3
    (package / "__init__.py").write_text("x = 1\n")
    (package / "notes.txt").write_text("no code")
    assert [fresh(name) == old for name, old in zip(names, before, strict=True)] == [False, True, True]
    assert fresh("some_package", "some_package.part") == fresh("some_package.part", "some_package")
    # nothing was imported for it
    assert "some_package" not in sys.modules


@pytest.mark.subprocess
def test_a_copy_elsewhere_has_the_same_hash_and_a_changed_one_its_own(tmp_path: Path) -> None:
    (tmp_path / "shannon_game").mkdir()
    shutil.copy(ROOT / "shannon_game/__init__.py", tmp_path / "shannon_game")
    for package in PACKAGES:
        name = package.removeprefix("shannon_game.")
        there = ROOT / name
        shutil.copytree(there, tmp_path / "shannon_game" / name, ignore=shutil.ignore_patterns("__pycache__"))

    def found() -> str:
        code = f"from shannon_game.estimators.code_identity import code_hash; print(code_hash(*{PACKAGES}))"
        command = [sys.executable, "-c", code]
        environment = {"PYTHONPATH": ""}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert found() == code_hash(*PACKAGES)
    with (tmp_path / "shannon_game/models/__init__.py").open("a") as file:
        file.write("# not committed\n")
    assert found() != code_hash(*PACKAGES)


def test_names_without_a_file_are_refused() -> None:
    for names in ((), ("no_such_package",), ("shannon_game.estimators.no_such_module",)):
        with pytest.raises(InputError, match="names"):
            code_hash(*names)


def first(x: int) -> int:
    return x + 1


def second(x: int) -> int:
    return x + 2


def test_functions_are_known_by_their_source_and_by_their_module() -> None:
    assert source_hash(first) != source_hash(second)
    assert source_hash(partial(partial(first), 1)) == source_hash(first)
    assert work_hash(first, "shannon_game.estimators") == work_hash(partial(second, 1), "shannon_game.estimators")
    assert work_hash(first, "shannon_game.estimators") != work_hash(first, "shannon_game.models")
    typed_in: dict[str, object] = {}
    exec("def third(): pass", typed_in)
    with pytest.raises(InputError, match="no source"):
        source_hash(typed_in["third"])  # type: ignore[arg-type]
