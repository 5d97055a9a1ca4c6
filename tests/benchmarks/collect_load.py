"""How many answers a second a collection takes, how fast its pages are, and whether a killed server loses any.

    python -m tests.benchmarks.collect_load --players 500 --seconds 120 --kills 3
    python -m tests.benchmarks.collect_load --postgres

Players are asynchronous clients on loopback; each thinks for a while, answers, reads the feedback, and asks for the
next question. The server is a process of its own, which is killed with SIGKILL and started again. A player whose
connection breaks sends the same form again, as a person does who presses "send again". In the end the database is
compared with what the players were told was stored.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from sqlalchemy import func, select

from shannon_game.experiments.collect.collection import open_collection
from shannon_game.experiments.collect.database import open_database
from shannon_game.experiments.collect.demo import collect_demo
from shannon_game.experiments.collect.server import serve
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.surveys import right_answers
from shannon_game.experiments.collect.tables import Answer, Assignment, Player, Session
from tests.benchmarks.postgres import private_cluster

_FIELD = re.compile(r'name="(csrf|order|step)" value="([^"]*)"')
_REPORTS = ("99", "90", "80", "70", "60", "50", "40", "30", "20", "10", "1")
_CHECK = re.compile(r"choose (\d+)%")


@dataclass
class Load:
    """What was measured."""

    database: str
    n_players: int
    # outages included
    seconds: float = 0.0
    # acknowledged while it was measured
    n_answers: int = 0
    answers_per_second: float = 0.0
    # of all pages that came at the first try
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    p99_ms: float = 0.0
    n_pages: int = 0
    # requests whose connection broke and that were sent again
    n_retries: int = 0
    # without the server's starts
    server_cpu_seconds: float = 0.0
    # from the kills until the server answered again, in sum
    outage_seconds: float = 0.0
    # answers that players were told were stored, and were not, or were twice, or are others
    n_lost: int = 0
    n_doubled: int = 0
    n_changed: int = 0
    # of the machine, 1 minute
    load_before: float = 0.0
    load_after: float = 0.0


@dataclass
class _Run:
    port: int
    think_seconds: float
    ends_at: float = float("inf")
    measuring: bool = False
    latencies: list[float] = field(default_factory=list)
    stored: dict[tuple[str, int], int] = field(default_factory=dict)
    n_measured: int = 0
    n_retries: int = 0
    n_ready: int = 0


class _Client:
    """HTTP/1.1 with one connection and one cookie: httpx would cost more than the server."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.cookie = ""
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[int, str, str]:
        """Send until an answer comes; gives status, location and text."""
        tries = 0
        while True:
            began = time.monotonic()
            try:
                found = await asyncio.wait_for(self._once(method, path, form), timeout=60)
            except (TimeoutError, OSError, asyncio.IncompleteReadError, ValueError):
                self.close()
                tries += 1
                self.run.n_retries += self.run.measuring
                await asyncio.sleep(0.2 + 0.3 * random.random())
                continue
            if found[0] >= 500:
                await asyncio.sleep(0.3)
                tries += 1
                continue
            if self.run.measuring and tries == 0:
                self.run.latencies.append(time.monotonic() - began)
            return found

    async def _once(self, method: str, path: str, form: dict[str, str] | None) -> tuple[int, str, str]:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.run.port)
        reader, writer = self.streams
        body = urlencode(form).encode() if form is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: {self.cookie}\r\n"
        if form is not None:
            head += f"content-type: application/x-www-form-urlencoded\r\ncontent-length: {len(body)}\r\n"
        writer.write(head.encode() + b"\r\n" + body)
        await writer.drain()
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status, headers = int(lines[0].split(" ", 2)[1]), {}
        for line in lines[1:]:
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
            if name.lower() == "set-cookie":
                self.cookie = value.split(";", 1)[0]
        text = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
        return status, headers.get("location", ""), text

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None

    async def page(self, method: str, path: str, form: dict[str, str] | None = None) -> tuple[str, str]:
        """Follow redirects; gives the path of the page and its text."""
        status, to, text = await self.request(method, path, form)
        while status == 303:
            path = to
            status, to, text = await self.request("GET", path)
        return path, text


async def _player(run: _Run, name: str) -> None:
    """Play sessions until the time is over, each as another person."""
    number = 0
    while time.monotonic() < run.ends_at:
        client = _Client(run)
        who = f"{name}.{number}"
        number += 1
        path, text = await client.page("GET", f"/?PROLIFIC_PID={who}&STUDY_ID=s&SESSION_ID=t")
        form = {"csrf": _csrf(text), "game": "comparison", "PROLIFIC_PID": who, "STUDY_ID": "s", "SESSION_ID": "t"}
        path, text = await client.page("POST", "/start", form)
        path, text = await client.page("POST", "/consent", {"csrf": _csrf(text), "agree": "yes"})
        path, text = await client.page("POST", "/instructions", {"csrf": _csrf(text)} | right_answers("comparison"))
        if number == 1:
            run.n_ready += 1
        while path == "/play" and time.monotonic() < run.ends_at:
            await asyncio.sleep(run.think_seconds * (0.5 + random.random()))
            hidden = dict(_FIELD.findall(text))
            check = _CHECK.search(text)
            report = check[1] if check else random.choice(_REPORTS)
            sent = hidden | {"report": report}
            path, text = await client.page("POST", "/play", sent)
            run.stored[who, int(hidden["order"])] = int(report)
            run.n_measured += run.measuring
            if path.startswith("/feedback"):
                path, text = await client.page("GET", "/play")
        client.close()


def _csrf(text: str) -> str:
    return dict(_FIELD.findall(text)).get("csrf", "")


def settings_of(url: str, port: int) -> CollectSettings:
    return CollectSettings(
        game="comparison", n_questions=40, training_rounds=0, before=None, after=None, database=url, port=port
    )


def _start(url: str, port: int) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.benchmarks.collect_load", "--serve", url, "--port", str(port)]
    return subprocess.Popen(command, cwd=root, env=environment)


def _serve(url: str, port: int) -> None:
    database = open_database(url)
    serve(open_collection(settings_of(url, port), collect_demo(), database))


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def _until_up(port: int, server: subprocess.Popen[bytes]) -> None:
    while not await _answers(port):
        if server.poll() is not None:
            raise RuntimeError("the server did not start")
        await asyncio.sleep(0.05)


async def _measured(url: str, found: Load, *, seconds: float, kills: int, think_seconds: float) -> _Run:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = _Run(port, think_seconds)
    server = _start(url, port)
    async with AsyncExitStack() as stack:
        stack.callback(lambda: (server.kill(), server.wait()))
        await _until_up(port, server)
        players = [asyncio.create_task(_player(run, f"p{n}")) for n in range(found.n_players)]
        while run.n_ready < found.n_players:
            await asyncio.sleep(0.2)
            for player in players:
                if player.done():
                    player.result()
        run.measuring, began, used = True, time.monotonic(), _cpu_seconds(server)
        run.ends_at = began + seconds
        for kill in range(kills):
            await asyncio.sleep(max(began + seconds * (kill + 1) / (kills + 1) - time.monotonic(), 0))
            killed = time.monotonic()
            found.server_cpu_seconds += _cpu_seconds(server) - used
            server.send_signal(signal.SIGKILL)
            server.wait()
            server = _start(url, port)
            await _until_up(port, server)
            found.outage_seconds += time.monotonic() - killed
            used = _cpu_seconds(server)
        await asyncio.sleep(max(run.ends_at - time.monotonic(), 0))
        run.measuring, found.seconds = False, time.monotonic() - began
        found.server_cpu_seconds += _cpu_seconds(server) - used
        await asyncio.gather(*players)
        # closed connections are gone after the loop's next rounds
        await asyncio.sleep(0.2)
    return run


def _cpu_seconds(server: subprocess.Popen[bytes]) -> float:
    """Processor time of a process, by Linux's own book."""
    fields = Path(f"/proc/{server.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _compare(url: str, run: _Run, found: Load) -> None:
    """Compare the database with what the players were told."""
    database = open_database(url)
    query = (
        select(Player.recruiter_id, Assignment.order, Answer.value, func.count().over(partition_by=Assignment.id))
        .select_from(Answer)
        .join(Assignment, Assignment.id == Answer.assignment_id)
        .join(Session, Session.id == Assignment.session_id)
        .join(Player, Player.id == Session.player_id)
        .where(Answer.automatic.is_(False))
    )
    with database.read() as transaction:
        rows = transaction.execute(query).all()
    database.close()
    there: dict[tuple[str, int], int] = {}
    for who, order, value, times in rows:
        found.n_doubled += (who, order) in there or times > 1
        there[who, order] = value["percent_a"]
    found.n_lost = sum(key not in there for key in run.stored)
    found.n_changed = sum(there.get(key, report) != report for key, report in run.stored.items())


def measure(url: str, *, n_players: int, seconds: float, kills: int, think_seconds: float = 7.0) -> Load:
    """Run one measurement on an empty database; the server is killed with SIGKILL, people think so long on average."""
    found = Load(url.split(":", 1)[0], n_players, load_before=os.getloadavg()[0])
    run = asyncio.run(_measured(url, found, seconds=seconds, kills=kills, think_seconds=think_seconds))
    _compare(url, run, found)
    ordered = sorted(run.latencies) or [float("nan")]
    found.n_answers, found.answers_per_second = run.n_measured, run.n_measured / found.seconds
    found.p50_ms, found.p95_ms, found.p99_ms = (1000 * ordered[int(q * (len(ordered) - 1))] for q in (0.5, 0.95, 0.99))
    found.n_pages, found.n_retries, found.load_after = len(run.latencies), run.n_retries, os.getloadavg()[0]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--players", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--think", type=float, default=7.0)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        _serve(given.serve, given.port)
        return
    with ExitStack() as stack:
        if given.postgres:
            url = stack.enter_context(private_cluster())
        else:
            url = f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/load.sqlite"
        found = measure(
            url, n_players=given.players, seconds=given.seconds, kills=given.kills, think_seconds=given.think
        )
        print(json.dumps(asdict(found), indent=1))


if __name__ == "__main__":
    main()
