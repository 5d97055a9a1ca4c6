"""Signals, and several processes on one store: nothing in flight is lost, nothing is paid twice."""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from shannon_game.inference.api import store as answer_store
from shannon_game.inference.api.client import StoppedError
from shannon_game.inference.api.scoring import score_windows
from shannon_game.inference.api.store import AnswerStore, BudgetSpentError
from tests.inference.api.fake_server import FakeEndpoint, never, serving
from tests.inference.api.test_api import settings, started, windows

WINDOWS, TOKENS, AT_ONCE = 6, 5, 4
CALLS = WINDOWS * TOKENS

CHOSEN = {"concurrency": AT_ONCE, "timeout_s": 20.0, "budget_usd": 100.0}


def wait_for(endpoint: FakeEndpoint, n_requests: int, *processes: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 600  # a machine may be busy with other things
    while endpoint.n_requests < n_requests:
        assert time.monotonic() < deadline, f"{endpoint.n_requests} of {n_requests} calls arrived"
        assert all(process.poll() is None for process in processes), [each.communicate() for each in processes]
        time.sleep(0.01)


def states(store: Path) -> dict[str, int]:
    with sqlite3.connect(store) as connection:
        found = dict(connection.execute("SELECT state, COUNT(*) FROM attempts GROUP BY state").fetchall())
    connection.close()
    return found


def resumed(endpoint: FakeEndpoint, store: Path) -> None:
    assert (
        score_windows(windows(WINDOWS, TOKENS), settings(endpoint.url, timeout_s=20.0), store).sizes["token"] == CALLS
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_the_calls_in_flight_end(tmp_path: Path, number: signal.Signals) -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        with serving(FakeEndpoint(never, idempotent=False, seconds=0.05)) as endpoint:
            given = settings(endpoint.url, timeout_s=20.0, concurrency=AT_ONCE)

            def progress(done: int, _: int) -> None:
                if done == 7:
                    signal.raise_signal(number)

            # the handler of SIGTERM here only writes down that it was called
            with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else StoppedError):
                score_windows(windows(WINDOWS, TOKENS), given, tmp_path / "s.db", progress=progress)
            assert came == ([number] if number == signal.SIGTERM else [])
            assert 7 < sum(endpoint.charged.values()) < CALLS
            assert states(tmp_path / "s.db") == {"paid": sum(endpoint.charged.values())}
            resumed(endpoint, tmp_path / "s.db")
            assert list(endpoint.charged.values()) == [1] * CALLS
    finally:
        signal.signal(signal.SIGTERM, before)


# anyio does not await what it was about to connect
@pytest.mark.filterwarnings("ignore:coroutine 'connect_tcp:RuntimeWarning")
def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    with serving(FakeEndpoint(never, idempotent=False, seconds=0.05)) as endpoint:

        def progress(done: int, _: int) -> None:
            if done == 7:
                endpoint.seconds = 1000
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)

        start = time.monotonic()
        given = settings(endpoint.url, timeout_s=1000.0, concurrency=AT_ONCE)
        with pytest.raises(KeyboardInterrupt):
            score_windows(windows(WINDOWS, TOKENS), given, tmp_path / "s.db", progress=progress)
        # the calls in flight last longer
        assert time.monotonic() - start < 500
        gc.collect()
        assert states(tmp_path / "s.db")["sent"] <= AT_ONCE
        endpoint.seconds = 0
        # the claims of what was dropped do not outlive the store that made them
        resumed(endpoint, tmp_path / "s.db")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.subprocess
def test_two_processes_on_one_store_pay_once(tmp_path: Path) -> None:
    with serving(FakeEndpoint(never, idempotent=False, seconds=0.1)) as endpoint:
        process = started(endpoint, tmp_path / "s.db", WINDOWS, TOKENS, **CHOSEN)
        wait_for(endpoint, 1, process)
        resumed(endpoint, tmp_path / "s.db")
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        assert output.strip() == str(CALLS)
        assert list(endpoint.charged.values()) == [1] * CALLS
        assert endpoint.n_requests == CALLS
        assert endpoint.most_at_once > 1


def test_a_claim_keeps_others_away_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 2e9
    monkeypatch.setattr(answer_store, "time", SimpleNamespace(time=lambda: now))
    with AnswerStore(tmp_path / "s.db") as one, AnswerStore(tmp_path / "s.db") as other:
        first = one.begin("key", 0.1, 1.0, lease_s=300)
        assert first is not None
        assert other.begin("key", 0.1, 1.0) is None
        now += 301
        second = other.begin("key", 0.1, 1.0)
        assert second is not None
        # the first, late, does not end the claim of the second
        one.unsure(first)
        assert one.begin("key", 0.1, 1.0) is None
        other.refused(second)
        third = one.begin("key", 0.1, 1.0)
        assert third is not None
        # of another machine nothing is known, of a process that ended everything
        for owner, can_begin in (("elsewhere 1 ab", False), (f"{os.uname().nodename} {2**22 + 1} ab", True)):
            with sqlite3.connect(tmp_path / "s.db") as connection:
                connection.execute("UPDATE claims SET owner = ?", (owner,))
            connection.close()
            assert (other.begin("key", 0.1, 1.0) is not None) == can_begin
        # a clock that was put back
        now = 1e9
        assert one.begin("key", 0.1, 1.0) is not None
        with pytest.raises(BudgetSpentError):
            other.begin("another key", 0.9, 1.0)
        assert one.ledger().most_usd == pytest.approx(0.4)


@pytest.mark.subprocess
def test_two_processes_keep_one_budget(tmp_path: Path) -> None:
    """Calls are booked at their bytes while they are in flight, and cost $0.0011 each: 30 of them are too many."""
    budget = 0.03
    with serving(FakeEndpoint(never, idempotent=False, seconds=0.05)) as endpoint:
        chosen = CHOSEN | {"budget_usd": budget}
        process = started(endpoint, tmp_path / "s.db", WINDOWS, TOKENS, **chosen)
        wait_for(endpoint, 1, process)
        with pytest.raises(BudgetSpentError):
            score_windows(windows(WINDOWS, TOKENS), settings(endpoint.url, **chosen), tmp_path / "s.db")
        assert "BudgetSpentError" in process.communicate(timeout=600)[1]
        assert 0 < sum(endpoint.charged.values()) * 11e-4 <= budget
        assert set(endpoint.charged.values()) == {1}
