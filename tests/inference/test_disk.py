"""What cannot fit into memory or onto the disk is refused by its size, before anything is computed or written."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shannon_game import cloze_simulated, simulated
from shannon_game.estimators.errors import InputError
from shannon_game.inference.disk import create_private, make_room, write_ahead, write_whole


@pytest.mark.parametrize(
    ("load", "settings", "says"),
    [
        (simulated, {"vocab_size": 10**10}, r"vocab_size: would need about [\d,]+ GiB of memory; there are \d"),
        (simulated, {"n_items": 10**9, "n_reference_items": 10**9}, r"n_reference_items: would need about [\d,]+ GiB"),
        (cloze_simulated, {"vocab_size": 10**12}, r"vocab_size: would need about [\d,]+ GiB"),
        (cloze_simulated, {"n_items": 10**12}, r"n_items: would need about [\d,]+ GiB"),
    ],
)
def test_a_size_beyond_the_machine_is_refused(load: Any, settings: dict[str, int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load(**settings)


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


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[tuple[sqlite3.Connection, sqlite3.Connection]]:
    """A connection that writes, and one that must wait for it although SQLite would refuse it at once."""
    path = tmp_path / "answers.db"
    writer, other = (sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False) for _ in range(2))
    writer.execute("BEGIN EXCLUSIVE")
    yield writer, other
    writer.close()
    other.close()


def test_the_switch_to_a_write_ahead_log_waits(locked: tuple[sqlite3.Connection, sqlite3.Connection]) -> None:
    writer, other = locked
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("PRAGMA journal_mode=WAL")
    end = threading.Timer(0.2, writer.execute, ["COMMIT"])
    end.start()
    write_ahead(other, busy_seconds=60)
    end.join()
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_private_files_are_read_by_their_owner_alone(tmp_path: Path) -> None:
    old, new, text = (tmp_path / name for name in ("old", "new", "text"))
    old.write_text("a")
    old.chmod(0o444)
    create_private(old)
    create_private(new)
    write_whole(text, "a", private=True)
    # what was there before keeps its mode until it is known to be a database
    assert [mode(path) for path in (old, new, text)] == [0o444, 0o600, 0o600]


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_an_open_database_is_made_private_with_its_log(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("CREATE TABLE a (b)")
    for file in tmp_path.iterdir():
        file.chmod(0o644)
    connection = sqlite3.connect(path)
    write_ahead(connection, busy_seconds=1)
    assert {file.name: mode(file) for file in tmp_path.iterdir()} == {
        f"answers.db{end}": 0o600 for end in ("", "-wal", "-shm")
    }
    connection.close()
    other.close()
