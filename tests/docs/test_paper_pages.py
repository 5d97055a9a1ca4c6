"""The table of what the papers describe is true of today's code; pages are made from their tables."""

from __future__ import annotations

import ast
import functools

from tests.docs.pages import script
from tests.experiments.command import ROOT

PAGE = script("paper_pages")
ROWS: list[dict[str, str]] = PAGE.read_rows(PAGE.COVERAGE)


@functools.cache
def functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_the_pages_are_those_of_the_tables() -> None:
    page = PAGE.PAGE.read_text(encoding="utf-8")
    assert {match["name"] for match in PAGE.LIST.finditer(page)} == {"coverage", "literature"}
    assert page == PAGE.filled(page)
    assert {row["status"] for row in ROWS} <= set(PAGE.STATUSES)


def test_places_and_tests_are_there() -> None:
    for row in ROWS:
        assert not row["where"] or (ROOT / row["where"]).exists(), f"row {row['row']}: {row['where']}"
        path, _, name = row["test"].partition("::")
        assert not path or (ROOT / path).is_file(), f"row {row['row']}: {path}"
        assert not name or name in functions_of(path), f"row {row['row']}: {row['test']}"
