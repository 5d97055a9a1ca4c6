"""The cache file: what goes in comes out, and nothing else ever does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.studies.cache import Cached, DamagedCacheError, join_strings, read_cache, split_strings, write_cache

CACHED = Cached(
    {
        "codes": np.arange(600, dtype=np.int32).reshape(2, 300),
        "logprob": -np.linspace(0, 20, 500),
        "text": join_strings(["one", "two"])[0],
    },
    {"names": ["14M", "\ufffd"], "index": 1, "notes": [["text", None, "info"]]},
)


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "study.nc"
    write_cache(path, "key", CACHED)
    found = read_cache(path, "key")
    assert found is not None
    assert found.values == CACHED.values
    assert found.arrays.keys() == CACHED.arrays.keys()
    for name, array in CACHED.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)
    assert [file.name for file in path.parent.iterdir()] == ["study.nc"]


def test_absent_or_made_from_other_input(tmp_path: Path) -> None:
    path = tmp_path / "study.nc"
    assert read_cache(path, "key") is None
    write_cache(path, "key", CACHED)
    assert read_cache(path, "another key") is None
    write_cache(path, "another key", CACHED)
    assert read_cache(path, "another key") is not None


@pytest.mark.parametrize("length", [0, 7, 3000])
def test_a_truncated_file_is_damaged(tmp_path: Path, length: int) -> None:
    path = tmp_path / "study.nc"
    write_cache(path, "key", CACHED)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DamagedCacheError):
        read_cache(path, "key")


def test_a_changed_number_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "study.nc"
    write_cache(path, "key", CACHED)
    content = path.read_bytes()
    old = CACHED.arrays["logprob"][250:252].tobytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, np.array([-1.0, -2.0]).tobytes()))
    with pytest.raises(DamagedCacheError, match="checksum"):
        read_cache(path, "key")


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "study.nc"
    write_cache(path, "key", CACHED)
    with pytest.raises(TypeError):
        write_cache(path, "new", Cached({"bad": np.array([object()])}, {}))
    assert read_cache(path, "key") is not None
    assert [file.name for file in tmp_path.iterdir()] == ["study.nc"]


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        write_cache(tmp_path / "file" / "study.nc", "key", CACHED)


@pytest.mark.parametrize(
    "strings", [[], [""], ["", "a", ""], ["\x00", "a\x00b"], ["\ud83d", "\ufffd", "Zürich", "日本"]]
)
def test_strings_of_any_kind(strings: list[str]) -> None:
    assert split_strings(*join_strings(strings)).tolist() == strings
