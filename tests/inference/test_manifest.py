"""Only what a manifest lists, as it was written, is replaced or removed; tried on random folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shannon_game.estimators.errors import InputError
from shannon_game.inference.manifest import claim, manifest_of, put, remove, remove_scratch, replaced

NAMES = ("a", "b", "c/d", "c/e", "f/g/h")
trees = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "1", "2"]))


def write(folder: Path, tree: dict[str, str]) -> None:
    for name, text in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def content(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@given(ours=trees, changes=trees, new=trees)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
def test_a_new_result_takes_the_place_of_the_old_one_alone(
    ours: dict[str, str], changes: dict[str, str], new: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, staging = tmp_path_factory.mktemp("folder"), tmp_path_factory.mktemp("staging")
    write(folder, ours)
    written = manifest_of(folder)
    write(folder, changes)
    write(staging, new)
    theirs = {name: text for name, text in changes.items() if ours.get(name) != text}
    before = content(folder)
    if theirs.keys() & new.keys():
        with pytest.raises(InputError):
            put(staging, folder, written, list)
        assert content(folder) == before
    else:
        put(staging, folder, written, list)
        assert content(folder) == theirs | new


def test_nothing_outside_a_folder_is_removed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "own.txt"
    folder.mkdir()
    outside.write_text("mine")
    (folder / "link").symlink_to(tmp_path)
    (digest,) = manifest_of(tmp_path)["own.txt"]
    remove(folder, dict.fromkeys(("../own.txt", str(outside), "link/own.txt"), (digest,)))
    assert outside.read_text() == "mine"
    with pytest.raises(ValueError, match="no folder of unfinished work"):
        remove_scratch(folder)


def test_a_folder_is_claimed_once_and_keeps_what_a_failure_left(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    with replaced(folder, "bundle") as staging:
        write(staging, {"a": "1"})

    def fail() -> None:
        with replaced(folder, "bundle") as staging:
            write(staging, {"a": "2"})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (folder / "a").read_text() == "1"
    (tmp_path / "own.txt").touch()
    with pytest.raises(InputError):
        claim(tmp_path, "bundle")
