"""What cannot fit into memory or onto the disk is refused by its size, before anything is computed or written."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import estimators.errors
from estimators.errors import InputError, check_memory
from experiments import cloze_simulated, simulated
from inference.disk import make_room


@pytest.mark.parametrize(
    ("load", "settings", "says"),
    [
        (simulated, {"vocab_size": 10**10}, r"vocab_size: would need about [\d,]+ GiB of memory; there are \d"),
        (simulated, {"n_items": 10**9, "n_reference_items": 10**9}, r"n_reference_items: would need about [\d,]+ GiB"),
        (simulated, {"n_participants": 10**12}, r"would need about [\d,]+ GiB"),
        (simulated, {"n_candidates": 10**12}, r"would need about [\d,]+ GiB"),
        (cloze_simulated, {"vocab_size": 10**12}, r"vocab_size: would need about [\d,]+ GiB"),
        (cloze_simulated, {"n_items": 10**12}, r"n_items: would need about [\d,]+ GiB"),
    ],
)
def test_a_size_beyond_the_machine_is_refused(load: Any, settings: dict[str, int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load(**settings)


def test_a_container_has_less(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    monkeypatch.setattr(estimators.errors, "_LIMIT", tmp_path / "memory.max")
    check_memory(999_999)
    with pytest.raises(InputError, match="would need about 0 GiB"):
        check_memory(1_000_001)
    (tmp_path / "memory.max").write_text("max\n")
    check_memory(1_000_001)


def test_a_file_begins_only_where_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_room(tmp_path / "a.nc", 1000)
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(OSError, match="No space left on device"):
        make_room(tmp_path / "a.nc", 2 * free)

    def no_quota(*_: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "posix_fallocate", no_quota, raising=False)
    with pytest.raises(OSError, match="quota"):
        make_room(tmp_path / "a.nc", 1000)
    assert not list(tmp_path.iterdir())
