"""The tables of published values: every row well-formed, every mistake named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from omegaconf import OmegaConf

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.papers.published import COLUMNS, published
from shannon_game.experiments.papers.published_study import (
    EXPLAINED,
    NOT_REPRODUCIBLE,
    REPRODUCED,
    judge,
    number_of,
    parse_select,
)
from shannon_game.experiments.papers.ranks_published import read_published
from shannon_game.experiments.papers.reproduce.parts import ADDED, DATA, DISPLAYS, PAPERS, PARTS
from tests.experiments.command import ROOT, config


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    return published().to_dataframe().reset_index().to_dict("records")


def test_every_row_of_every_table_is_a_value(rows) -> None:
    folder = Path(published.__wrapped__.__code__.co_filename).parent
    tables = folder.glob("*published*.csv")
    assert len(rows) == sum(len(path.read_text(encoding="utf-8").splitlines()) - 1 for path in tables)
    assert {row["paper"] for row in rows} == set(PAPERS)
    assert sum(note["count"] for note in notes(published())) == len(rows)
    assert len(read_published()) == sum(row["part"] == "ranks" and "place=" in row["select"] for row in rows)


def test_places_parts_and_reasons(rows) -> None:
    shown = {(display.paper, display.where) for display in DISPLAYS}
    for row in rows:
        name = row["value"]
        assert (row["paper"], row["where"]) in shown, name
        assert row["part"] in PARTS or (row["part"] == "" and row["expected"] == NOT_REPRODUCIBLE), name
        assert not (row["part"] and PARTS[row["part"]].bayes), f"{name} should not need a posterior"
        # what can be compared can also fail: no printed zero without digits, no tolerance wider than the value
        assert row["printed"] != "0", name
        number = float(number_of(str(row["printed"])))
        if not str(row["printed"]).startswith(("<", ">")):
            assert judge(str(row["printed"]), number) == REPRODUCED
        assert str(row["table"]).endswith(".csv") or not row["part"], name
        parse_select(str(row["select"]))
        if number != 0 and row["tolerance"] == row["tolerance"]:
            assert row["tolerance"] < abs(number), name
    misprints = Counter(row["where"] for row in rows if row["expected"] == EXPLAINED)
    assert misprints == {"appendix A": 4, "figure 3": 1}


def test_the_plan_is_consistent() -> None:
    for name, part in PARTS.items():
        assert name == part.name
        takes = config(f"+exp={part.experiment}").experiment.kind
        assert OmegaConf.load(ROOT / f"conf/study/{DATA[part.group].study}.yaml").kind in takes
    for display in DISPLAYS:
        assert display.paper in PAPERS
        assert display.part in PARTS or display.part == ""
        assert display.part or not display.figures
    assert all(addition.part in PARTS for addition in ADDED)
    # every part is shown somewhere, or holds published values
    used = {display.part for display in DISPLAYS} | {addition.part for addition in ADDED}
    used |= set(published()["part"].to_numpy().tolist())
    assert set(PARTS) <= used


GOOD = {
    "paper": "mine",
    "where": "table 1",
    "quantity": "a number",
    "unit": "",
    "printed": "0.50",
    "tolerance": "",
    "expected": "",
    "reason": "",
    "part": "perplexity",
    "table": "table.csv",
    "select": "player=human",
    "column": "gap_nats",
    "source": "my paper",
}


HEADER = ",".join(COLUMNS).encode() + b"\n"


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    rows = [GOOD, GOOD | {"quantity": 'another, with "quotes"', "tolerance": "1e-3"}]
    pd.DataFrame(rows, columns=COLUMNS).to_csv(tmp_path / "mine.csv", index=False)
    study = published(tables=[str(tmp_path / "mine.csv")])
    mine = study.isel(value=study["paper"].to_numpy() == "mine")
    assert mine["quantity"].to_numpy().tolist() == ["a number", 'another, with "quotes"']
    assert mine["tolerance"].to_numpy().tolist()[1] == 1e-3
    assert study.attrs["data_sha256"] != published().attrs["data_sha256"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"mine\.csv: there is no such file"),
        (b"", "cannot be read as CSV"),
        (b"\xff\xfe\x00", "cannot be read as CSV"),
        (b"paper,where\na,b\n", "header: is paper, where; should be paper, where, quantity"),
        (",".join(COLUMNS).encode(), "has a header and no row"),
        (HEADER + b"one,two\n", "row 2, quantity: is empty"),
        (HEADER + b"," * 20, "cannot be read as CSV: .* Expected 13 fields in line 2, saw 21"),
        (HEADER + b"mine,table 1,a number,,0.50,wide,,,,,,,me\n", "row 2, tolerance: is 'wide'"),
    ],
)
def test_malformed_files(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        published(tables=[str(path)])


def test_a_table_is_named_in_a_list() -> None:
    with pytest.raises(InputError, match=r"tables: is 'x\.csv', should be a list"):
        published(tables="x.csv")
