"""Databases: SQLite in a file, and in the slow tier PostgreSQL; languages that a test writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from shannon_game.experiments.collect import strings
from shannon_game.experiments.collect.database import Database, open_database
from tests.benchmarks.postgres import private_cluster, programs


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """URL of a PostgreSQL server of the tests' own."""
    pytest.importorskip("psycopg")
    if programs() is None:
        pytest.skip("no PostgreSQL is installed under /usr/lib/postgresql")
    with private_cluster() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: Any, tmp_path: Path) -> Iterator[Database]:
    """An empty database."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    else:
        url = request.getfixturevalue("cluster")
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("drop schema public cascade"))
            connection.execute(text("create schema public"))
        engine.dispose()
    opened = open_database(url)
    yield opened
    opened.close()


@pytest.fixture
def languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of languages: English, and what a test writes there."""
    folder = tmp_path / "languages"
    folder.mkdir()
    english = Path(strings.__file__).parent / "languages" / "en.yaml"
    (folder / "en.yaml").write_text(english.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(strings, "_LANGUAGES", folder)
    strings.common_strings.cache_clear()
    yield folder
    strings.common_strings.cache_clear()


@pytest.fixture
def right_to_left(languages: Path) -> str:
    """A language that is written from right to left, but for its words."""
    english = (languages / "en.yaml").read_text(encoding="utf-8")
    hebrew = english.replace("name: English", "name: עברית").replace("direction: ltr", "direction: rtl")
    (languages / "he.yaml").write_text(hebrew, encoding="utf-8")
    return "he"
