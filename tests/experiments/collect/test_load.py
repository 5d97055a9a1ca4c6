"""Many players at once, a killed server, SQLite and PostgreSQL: no answer is lost, doubled or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.collect_load import Load, measure
from tests.benchmarks.postgres import private_cluster, programs

pytestmark = [pytest.mark.slow, pytest.mark.subprocess]


def check(found: Load) -> None:
    assert found.n_answers > 0
    assert (found.n_lost, found.n_doubled, found.n_changed) == (0, 0, 0)


def test_sqlite_loses_nothing_when_its_server_is_killed(tmp_path: Path) -> None:
    check(measure(f"sqlite:///{tmp_path / 'c.sqlite'}", n_players=60, seconds=60, kills=3, think_seconds=2))


@pytest.mark.skipif(programs() is None, reason="no PostgreSQL is installed")
def test_postgresql_loses_nothing_when_its_server_is_killed() -> None:
    with private_cluster() as url:
        check(measure(url, n_players=60, seconds=60, kills=3, think_seconds=2))


def test_500_players_lose_nothing(tmp_path: Path) -> None:
    check(measure(f"sqlite:///{tmp_path / 'c.sqlite'}", n_players=500, seconds=120, kills=0))
