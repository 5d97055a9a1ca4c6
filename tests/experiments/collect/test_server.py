"""The command as a process: it serves, ends when it is told to, and goes on where it was killed."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.experiments.collect.players import Player, order_of
from tests.experiments.command import environment


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(folder: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """Start the short form of the command, and wait until it answers."""
    settings = (f"experiment.port={port}", "experiment.n_questions=3", "experiment.training_rounds=0")
    more = ("experiment.attention_share=0", "hydra.run.dir=out")
    start = [sys.executable, "-m", "experiments.run", "collect", "experiment.game=cloze", *settings, *more]
    with (
        subprocess.Popen(
            start, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", follow_redirects=True, timeout=60) as client,
    ):
        try:
            since = time.monotonic()
            while True:
                try:
                    assert client.get("/healthz").text == "ok\n"
                    break
                except httpx.ConnectError:
                    assert process.poll() is None, process.stdout and process.stdout.read()
                    assert time.monotonic() - since < 120
                    time.sleep(0.2)
            yield process, client
        finally:
            process.kill()


@pytest.mark.subprocess
def test_a_killed_server_goes_on_and_one_that_is_told_to_ends_cleanly(tmp_path: Path) -> None:
    port = free_port()
    with serving(tmp_path, port) as (process, client):
        player = Player(None, "cloze", client)
        player.to_play()
        player.answer("the")
        assert player.page.url.path == "/play"
        order = order_of(player.get("/play"))
        cookies = dict(client.cookies)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    with serving(tmp_path, port) as (process, client):
        client.cookies.update(cookies)
        player = Player(None, "cloze", client)
        assert order_of(player.get("/play")) == order == "1"
        player.play_all("the")
        assert player.page.url.path == "/after"
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert f"open http://127.0.0.1:{port}/" in said
    report = (tmp_path / "out" / "report.md").read_text()
    assert "1 session of collect_demo, 0 of them complete, with 3 answers" in report
    assert json.loads((tmp_path / "out" / "status.json").read_text())["status"] == "ok"
