"""Many players at once, a killed server, SQLite and PostgreSQL: no answer is lost, doubled or changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.benchmarks.collect_load import Load, measure
from tests.benchmarks.postgres import private_cluster, programs

pytestmark = [pytest.mark.slow, pytest.mark.subprocess]

IDLE_LOAD = 1.0
"""A machine that does nothing else: only there do speeds mean anything."""


def check(found: Load) -> None:
    assert found.n_answers > 0
    assert (found.n_lost, found.n_doubled, found.n_changed) == (0, 0, 0)


def test_sqlite_loses_nothing_when_its_server_is_killed(tmp_path: Path) -> None:
    check(measure(f"sqlite:///{tmp_path / 'c.sqlite'}", n_players=60, seconds=60, kills=3, think_seconds=2))


@pytest.mark.skipif(programs() is None, reason="no PostgreSQL is installed")
def test_postgresql_loses_nothing_when_its_server_is_killed() -> None:
    with private_cluster() as url:
        check(measure(url, n_players=60, seconds=60, kills=3, think_seconds=2))


@pytest.mark.skipif(os.getloadavg()[0] > IDLE_LOAD, reason="the machine is busy with other work")
def test_500_players_give_50_answers_a_second(tmp_path: Path) -> None:
    found = measure(f"sqlite:///{tmp_path / 'c.sqlite'}", n_players=500, seconds=120, kills=0)
    check(found)
    assert found.answers_per_second >= 50
    assert found.p95_ms < 200
