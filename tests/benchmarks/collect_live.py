"""Whether a collection keeps every acknowledged answer beside the documented commands and a kill.

    python -m tests.benchmarks.collect_live
    python -m tests.benchmarks.collect_live --postgres

Eight visitors play at once through a server in another process. After a third of their answers one command runs beside
them; then they play on, all at once, and the server is killed with SIGKILL. Answers that visitors were told were stored
are looked for in the database, in a backup and in the export. Everything stays on 127.0.0.1 and ends after a fixed
number of answers.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import os
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, make_url, text

from shannon_game.experiments.collect.surveys import right_answers
from tests.benchmarks.collect_load import _CHECK, _FIELD, Load, _Client, _compare, _csrf, _Run, _start, _until_up
from tests.benchmarks.postgres import private_cluster, programs

ROOT = Path(__file__).parents[2]
GONE = "gone"
"""The recruiter's id of somebody whom ``forget`` deletes."""
REHEARSAL = (
    *("study=simulated", "study.n_items=20", "study.n_reference_items=20", "study.n_candidates=3"),
    *("study.vocab_size=60", "experiment.game=[comparison]", "experiment.n_questions=3"),
    *("experiment.training_rounds=0", "experiment.n_players=2", "experiment.players=simulated"),
)


@dataclass(frozen=True)
class Found:
    """Answers that visitors were told were stored, and where they were found."""

    beside: str
    n_acknowledged: int
    n_in_database: int
    n_in_backup: int
    n_in_export: int
    integrity: str


def _ran(command: list[str], folder: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command} gave {done.returncode}: {done.stderr[-800:]}")


def _of_collect(*arguments: str) -> Callable[[str, Path], None]:
    command = [sys.executable, "-m", "shannon_game.experiments.collect", *arguments[:1], "--url"]
    return lambda url, folder: _ran([*command, url, *arguments[1:]], folder)


def _sqlite(statement: str) -> Callable[[str, Path], None]:
    """As the page on deployment has it."""
    return lambda url, folder: _ran(["sqlite3", "-cmd", ".timeout 30000", _path(url), statement], folder)


def _path(url: str) -> str:
    return make_url(url).database or ""


def _postgres(program: str, *arguments: str) -> Callable[[str, Path], None]:
    def run(url: str, folder: Path) -> None:
        address, found = make_url(url), programs()
        assert found is not None
        where = ["-h", str(address.host), "-p", str(address.port), "-U", str(address.username)]
        _ran([str(found / program), *where, *arguments, str(address.database)], folder)

    return run


def _rehearsed(*more: str) -> Callable[[str, Path], None]:
    command = [sys.executable, "-m", "experiments.run", "+exp=collect", *REHEARSAL, "hydra.run.dir=rehearsed"]

    def run(url: str, folder: Path) -> None:
        own = [f"experiment.database={url}", *more] if more else []
        _ran([*command, *own], folder)

    return run


_SHARED: Mapping[str, Callable[[str, Path], None]] = {
    "nothing": lambda _url, _folder: None,
    "export": _of_collect("export", "--folder", "early"),
    "forget": _of_collect("forget", GONE),
    "public": _of_collect("public", "--folder", "site"),
    "rehearsal": _rehearsed(),
    "rehearsal in the same database": _rehearsed("experiment.beside_people=true"),
}
ON_SQLITE = _SHARED | {
    "backup": _sqlite(".backup early.sqlite"),
    "vacuum": _sqlite("pragma secure_delete=on; vacuum; pragma wal_checkpoint(truncate)"),
}
"""Command -> how it is run on SQLite, beside the server."""
ON_POSTGRES = _SHARED | {
    "backup": _postgres("pg_dump", "--format=custom", "--file=early.dump", "--dbname"),
    "vacuum": _postgres("vacuumdb", "--full", "--dbname"),
}


async def _visitor(
    run: _Run, name: str, n_before: int, n_after: int, gates: tuple[asyncio.Event, asyncio.Event]
) -> None:
    """Give some answers, wait for the command to begin, play on beside it, wait for its end, and play on."""
    client, begun = _Client(run), False
    who = {"PROLIFIC_PID": name, "STUDY_ID": "s", "SESSION_ID": "t"}
    path, page = await client.page("GET", f"/?PROLIFIC_PID={name}&STUDY_ID=s&SESSION_ID=t")
    path, page = await client.page("POST", "/start", {"csrf": _csrf(page), "game": "comparison"} | who)
    path, page = await client.page("POST", "/consent", {"csrf": _csrf(page), "agree": "yes"})
    path, page = await client.page("POST", "/instructions", {"csrf": _csrf(page)} | right_answers("comparison"))
    for number in range(n_before + n_after):
        if number == n_before and not begun:
            begun, run.n_ready = True, run.n_ready + 1
            await gates[0].wait()
        if number == n_before + n_after // 2:
            await gates[1].wait()
        if path != "/play":
            raise RuntimeError(f"{name} is at {path} instead of a question")
        hidden, check = dict(_FIELD.findall(page)), _CHECK.search(page)
        report = check[1] if check else random.choice(("99", "80", "60", "40", "20", "1"))
        path, page = await client.page("POST", "/play", hidden | {"report": report})
        # the next page is there: the visitor was told
        run.stored[name, int(hidden["order"])] = int(report)
        if path.startswith("/feedback"):
            path, page = await client.page("GET", "/play")
    client.close()


async def _played(url: str, folder: Path, command: Callable[[str, Path], None], n_visitors: int, n_each: int) -> _Run:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        run = _Run(free.getsockname()[1], 0.0)
    server = _start(url, run.port)
    try:
        await asyncio.wait_for(_until_up(run.port, server), 120)
        begins, ended = asyncio.Event(), asyncio.Event()
        # one more, who has stopped when the command deletes them
        ended.set()
        begins.set()
        await _visitor(run, GONE, 1, 1, (begins, ended))
        begins.clear()
        ended.clear()
        run.n_ready, n_before = 0, n_each // 3
        visitors = [
            asyncio.create_task(_visitor(run, f"u{at}", n_before, n_each - n_before, (begins, ended)))
            for at in range(n_visitors)
        ]
        while run.n_ready < n_visitors and not any(task.done() for task in visitors):
            await asyncio.sleep(0.02)
        begins.set()
        await asyncio.to_thread(command, url, folder)
        ended.set()
        await asyncio.wait_for(asyncio.gather(*visitors), 300)
    finally:
        server.kill()
        server.wait()
    return run


def _backed_up(url: str, folder: Path) -> str:
    """Back the database up and give the address of what is restored."""
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        _sqlite(".backup late.sqlite")(url, folder)
        return f"sqlite:///{folder / 'late.sqlite'}"
    _postgres("pg_dump", "--format=custom", "--file=late.dump", "--dbname")(url, folder)
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("drop database if exists restored"))
        connection.execute(text("create database restored"))
    engine.dispose()
    restored = address.set(database="restored")
    found = programs()
    assert found is not None
    where = ["-h", str(address.host), "-p", str(address.port), "-U", str(address.username)]
    _ran([str(found / "pg_restore"), *where, "--dbname=restored", "late.dump"], folder)
    return restored.render_as_string(hide_password=False)


def _n_kept(url: str, run: _Run) -> int:
    found = Load("", 0)
    _compare(url, run, found)
    if found.n_changed > found.n_lost or found.n_doubled:
        # what is not there counts as changed by no value of its own
        raise RuntimeError(f"{found.n_doubled} answers are there twice, {found.n_changed} are others")
    return len(run.stored) - found.n_lost


def _n_exported(folder: Path) -> int:
    with (folder / "answers_comparison.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["automatic"] == "0"]
    return len({(row["session"], row["order"]) for row in rows})


def measure(url: str, folder: Path, beside: str, *, n_visitors: int = 8, n_each: int = 6) -> Found:
    """Play `n_visitors` times `n_each` answers beside a command on an empty database, kill the server, and count."""
    commands = ON_SQLITE if url.startswith("sqlite") else ON_POSTGRES
    run = asyncio.run(_played(url, folder, commands[beside], n_visitors, n_each))
    stored = dict(run.stored)
    run.stored = {key: value for key, value in stored.items() if key[0] != GONE}
    # the export holds those of the person who stopped too, unless the command has deleted them
    n_more = 0 if beside == "forget" else len(stored) - len(run.stored)
    n_in_database, integrity = _n_kept(url, run), "ok"
    if url.startswith("sqlite"):
        engine = create_engine(url)
        with engine.connect() as connection:
            integrity = str(connection.execute(text("pragma integrity_check")).scalar())
        engine.dispose()
    n_in_backup = _n_kept(_backed_up(url, folder), run)
    _of_collect("export", "--folder", "late", "--collection", "collect_demo")(url, folder)
    counts = len(run.stored), n_in_database, n_in_backup, _n_exported(folder / "late") - n_more
    return Found(beside, *counts, integrity)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--visitors", type=int, default=8)
    parser.add_argument("--answers", type=int, default=6, help="of each visitor")
    given = parser.parse_args()
    print(f"{'beside the server':32s} {'acknowledged':>12s} {'database':>9s} {'backup':>7s} {'export':>7s} integrity")
    for beside in ON_POSTGRES if given.postgres else ON_SQLITE:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = stack.enter_context(private_cluster()) if given.postgres else f"sqlite:///{folder}/collect.sqlite"
            row = measure(url, folder, beside, n_visitors=given.visitors, n_each=given.answers)
            numbers = f"{row.n_acknowledged:12d} {row.n_in_database:9d} {row.n_in_backup:7d} {row.n_in_export:7d}"
            print(f"{row.beside:32s} {numbers} {row.integrity}", flush=True)


if __name__ == "__main__":
    main()
