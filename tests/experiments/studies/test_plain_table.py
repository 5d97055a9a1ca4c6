"""The shared reader of tables: columns by the loader's own names, each of its type, rows in groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.plain_table import Table, specification, table_of

SPEC = specification(id="who", text="word", whole="n", number_or_empty="x", logprob_or_empty="lp")
NAMES = {"who": "worker", "word": "said", "n": "n", "x": "x", "lp": "lp"}
ROWS = {
    "worker": ["a", "b ", "a"],
    "said": ["x", "y", "z"],
    "n": [1, 2, 1],
    "x": ["", "0,5", "1"],
    "lp": [-1, None, -2],
}


def named(**changes: Any) -> Table:
    return table_of(pd.DataFrame({**ROWS, **changes}), "mine", of="row").named(NAMES, SPEC)


def test_columns_have_the_loader_s_names_and_their_types() -> None:
    table = named()
    assert table["who"].tolist() == ["a", "b", "a"]
    assert table["n"].tolist() == [1, 2, 1]
    np.testing.assert_array_equal(table["x"], [np.nan, 0.5, 1])
    np.testing.assert_array_equal(table.take(np.array([2, 1]))["lp"], [-2, np.nan])


@pytest.mark.parametrize(
    ("column", "cells", "message"),
    [
        ("worker", ["a", "", "b"], "mine, worker: is empty in row 2"),
        ("worker", ["a", "b\x07", "b"], "mine, worker: is 'b.*control character"),
        ("n", [1, 2, 2.5], "mine, n: is '2.5' in row 3, should be a whole number"),
        ("lp", [-1, 0.5, -1], "mine, lp: is '0.5' in row 2, should be ln p"),
        ("x", ["x", "1", "2"], "mine, x: is 'x' in row 1, should be a number"),
    ],
)
def test_a_wrong_cell_is_named_as_the_user_calls_it(column: str, cells: list[Any], message: str) -> None:
    table = named(**{column: cells})
    with pytest.raises(InputError, match=message):
        [table[name] for name in SPEC]


def test_columns_that_are_missing_or_nearly_there() -> None:
    table = table_of(pd.DataFrame(ROWS).rename(columns={"lp": "l_p", "said": "word"}), "mine", of="row")
    with pytest.raises(InputError, match=r"mine, said: is missing; the table has .*columns\.word=NAME"):
        table.named(NAMES, SPEC, optional=["lp"])
    with pytest.raises(InputError, match="mine, l_p: is nearly 'lp', which is not there"):
        table.named(NAMES | {"word": "word"}, SPEC, optional=["lp"])


def test_rows_with_empty_cells_are_refused_or_left_out_with_their_group() -> None:
    table = named(said=["x", "", "z"])
    with pytest.raises(InputError, match=r"mine, said: is empty in row 2 \(1 such rows\).*study\.missing=drop"):
        table.without({"word": table.blank("word")}, "error")
    kept = table.without({"word": table.blank("word")}, "drop")
    assert kept["word"].tolist() == ["x", "z"]
    assert kept.where(1) == "row 3"
    blank = {"x": table.blank("x")}
    assert table.without(blank, "drop", by=("who",))["who"].tolist() == ["b"]
    with pytest.raises(InputError, match="holds no row without an empty cell"):
        table.without({"x": np.ones(3, dtype=bool)}, "drop")


def test_rows_of_a_group_agree() -> None:
    of = named().groups("who", what="person")
    assert of.of_row.tolist() == [0, 1, 0]
    assert of.one("n").tolist() == [1, 2]
    with pytest.raises(InputError, match="mine, said: is 'z' in row 3, but 'x' in another row of the same person"):
        of.one("word")
