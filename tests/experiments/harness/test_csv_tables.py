"""Tables that leave: no cell is a formula, numbers stay numbers, and every text comes back as it was."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shannon_game.experiments.harness.csv_tables import csv_text, guarded, read_guarded_csv, unguarded, write_csv
from shannon_game.experiments.studies.table_file import read_table

FORMULAS = ("=1+1", "=cmd|' /C calc'!A0", "+x", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "'quoted", "''=")
CELLS = st.sampled_from((*FORMULAS, "-1.5", "a\rb", '"', "")) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6
)


@given(CELLS)
def test_no_cell_is_a_formula_and_every_one_comes_back(text: str) -> None:
    assert unguarded(guarded(text)) == text
    if guarded(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
        float(guarded(text))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CELLS, min_size=1, max_size=4), CELLS.filter(bool))
def test_a_table_comes_back(tmp_path: Path, cells: list[str], name: str) -> None:
    table = pd.DataFrame({name: cells, "of it": range(len(cells))})
    found = read_guarded_csv(write_csv(table, tmp_path / "t.csv"))
    assert list(found) == list(table)
    assert found[name].tolist() == cells


@pytest.mark.parametrize("ids", [("ann", "-7"), ("'ann", "=ann"), ("''", "@")])
def test_a_table_of_a_study_says_that_it_is_guarded(tmp_path: Path, ids: tuple[str, str]) -> None:
    table = pd.DataFrame({"participant": ids, "report": [0.5, -0.25]})
    found = read_table(write_csv(table, tmp_path / "t.csv", marked=True), of="answer")
    assert found.texts("participant").tolist() == list(ids)
    assert found.names == list(table)
    # a table that somebody else wrote has its apostrophes
    table.to_csv(tmp_path / "own.csv", index=False)
    assert read_table(tmp_path / "own.csv", of="answer").texts("participant").tolist() == list(ids)


def test_numbers_are_written_as_pandas_does() -> None:
    table = pd.DataFrame(
        {"a": [-1.5, float("nan"), -float("inf")], "b": pd.array([1, None, -3], "Int64"), "c": [True] * 3}
    )
    assert csv_text(table) == table.to_csv(index=False)
