"""Documented commands beside a server that eight people use at once, and a kill: what was acknowledged is there.

The whole table, on SQLite and PostgreSQL, is ``python -m tests.benchmarks.collect_live``.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import existing_database, open_database, shown_url
from shannon_game.experiments.studies.collected.loader import collected_study
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from tests.benchmarks.collect_live import measure

pytestmark = [pytest.mark.subprocess, pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does")]


@pytest.mark.parametrize("beside", ["backup", "vacuum"])
def test_every_acknowledged_answer_outlives_a_command_and_a_kill(tmp_path: Path, beside: str) -> None:
    url = f"sqlite:///{tmp_path / 'collect.sqlite'}"
    found = measure(url, tmp_path, beside, n_each=3)
    assert (found.n_in_database, found.n_in_backup, found.n_in_export, found.integrity) == (24, 24, 24, "ok")
    # answers and ids are their owner's alone, wherever they are written
    written = [path for path in (tmp_path / "late").iterdir() if path.suffix == ".csv"]
    written += [save_comparison_study(collected_study(url=url, collection="collect_demo"), tmp_path / "study.nc")]
    assert {path.name for path in written} >= {"pay.csv", "answers_comparison.csv", "study.nc"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://u:Secret@127.0.0.1:1/db", "postgresql://u:Secret@127.0.0.1:abc/db"),
        *("postgresql:/u:Secret@127.0.0.1/db", "postgresql://u:Sec@Secret@127.0.0.1:1/db"),
        *("postgresql://127.0.0.1:1/db?user=u&password=Secret", "postgresql+nothing://u:Secret@h/db"),
    ],
)
def test_no_message_shows_a_password(url: str) -> None:
    pytest.importorskip("psycopg")
    for opened in (open_database, lambda address: existing_database(address).__enter__()):
        with pytest.raises(InputError) as caught:
            opened(url)
        assert "Secret" not in str(caught.value)
    assert "Secret" not in shown_url(url)
