"""What leaves: no cell is a formula, every text and number comes back, and Markdown takes no name for a command."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from shannon_game.experiments.harness.csv_tables import guarded, read_guarded_csv, unguarded, write_csv
from shannon_game.experiments.harness.tables import markdown_plain, screen_table
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


HOSTILE = [r"$\frac{1$", "[/red]", "$x$", "a|b", "*b*", "_c_ d_e", "![x](y)", "<img src=x>", "`d", "&amp;", "~~s~~"]


@pytest.mark.parametrize("text", [*HOSTILE, "\\*x", "[a][b]", "[a]: b", "a_b", "x < 3", "[0.1, 0.2]", "50%", "1_000"])
def test_markdown_gives_a_text_back(text: str) -> None:
    rendered = MarkdownIt("commonmark").enable("strikethrough").renderInline(markdown_plain(text))
    assert rendered.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text


def test_a_table_on_a_narrow_screen_stands_once_with_its_answer_and_its_verdict(monkeypatch):
    monkeypatch.setenv("COLUMNS", "36")
    table = pd.DataFrame(
        {"player": ["a"], "loss": [1.5], "gap_nats": [0.25], "true_gap_nats": [0.125], "verdict": ["too few"]}
    )
    *lines, rest = screen_table(table).splitlines()
    assert max(map(len, lines)) <= 36
    assert lines[0].split() == ["loss", "gap_nats", "verdict"]
    assert "true_gap_nats" in rest
