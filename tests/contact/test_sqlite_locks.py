"""An SQLite file that this process serves, read and closed by another one: SQLite's own tool, a backup, an export.

POSIX locks belong to the process. Whoever in it opens and closes the file by other means drops all of them, and the
next other reader deletes the log that the process goes on writing to: answers that were acknowledged are gone.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shannon_game.inference.api.calls import Call
from shannon_game.inference.api.store import AnswerStore

pytestmark = [pytest.mark.subprocess, pytest.mark.skipif(os.name != "posix", reason="POSIX's locks")]

N_READERS = 3
READ = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("select count(*) from " + sys.argv[2]).fetchone()[0])
connection.close()
"""


def outside(path: Path, table: str) -> int:
    """Count a table's rows as another process does, which opens, reads and closes the file."""
    done = subprocess.run([sys.executable, "-c", READ, str(path), table], capture_output=True, text=True, check=True)
    return int(done.stdout)


def killed(script: str, path: Path) -> None:
    """Run a process that ends without closing anything."""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (9, ["written"]), done.stderr


def of(number: int) -> Call:
    return Call("/v1/completions", {"prompt": str(number)}, str(number), most_input_tokens=1, most_output_tokens=1)


def test_answers_of_a_served_database_outlive_outside_readers_and_a_kill(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")
    path = tmp_path / "collect.sqlite"
    script = """
import os, subprocess, sys
from sqlalchemy import text
from shannon_game.experiments.collect.database import open_database
database = open_database(f"sqlite:///{sys.argv[1]}")
with database.engine.begin() as connection:
    connection.execute(text("create table told (n integer)"))
for n in range(12):
    # as many connections at once as there are visitors
    with database.engine.connect(), database.engine.connect():
        with database.write() as transaction:
            transaction.execute(text("insert into told values (:n)"), {"n": n})
    read = [sys.executable, "-c", READ, sys.argv[1], "told"]
    assert int(subprocess.run(read, capture_output=True, check=True).stdout) == n + 1
    assert os.path.exists(sys.argv[1] + "-wal")
print("written", flush=True)
os._exit(9)
""".replace("READ", repr(READ))
    killed(script, path)
    assert outside(path, "told") == 12
    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    connection.close()


def test_paid_answers_outlive_outside_readers(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    with AnswerStore(path) as first:
        for number in range(N_READERS):
            # another part of the same process opens the store too: a notebook, a second experiment
            with AnswerStore(path) as second:
                attempt = second.begin(str(number), 0.0, 1.0)
                assert attempt is not None
                second.keep(attempt, of(number), "{}", 0.0)
            assert outside(path, "answers") == number + 1
            assert Path(f"{path}-wal").exists()
        assert first.ledger().n_answers == N_READERS


def test_threads_that_make_one_store_at_once_keep_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    all_open, all_read = threading.Barrier(9, timeout=60), threading.Barrier(9, timeout=60)

    def serve(number: int) -> None:
        with AnswerStore(path) as store:
            attempt = store.begin(str(number), 0.0, 1.0)
            assert attempt is not None
            store.keep(attempt, of(number), "{}", 0.0)
            all_open.wait()
            all_read.wait()

    threads = [threading.Thread(target=serve, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    all_open.wait()
    assert outside(path, "answers") == 8
    assert Path(f"{path}-wal").exists()
    all_read.wait()
    for thread in threads:
        thread.join()
