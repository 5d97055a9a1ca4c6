"""Pooling: against the estimator, by groups, coverage of simulated studies, and tables that cannot be pooled."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from shannon_game import estimates, pool
from shannon_game.estimators.documents import pooled_mean
from shannon_game.estimators.errors import InputError
from tests.experiments.command import prepared

ROWS = pd.DataFrame(
    {
        "source": ["a", "b", "c", "a", "b"],
        "estimate": [1.30, 1.22, 1.41, 2.0, 2.2],
        "se": [0.05, 0.04, 0.06, 0.1, 0.1],
        "model": ["small", "small", "small", "large", "large"],
    }
)


def write(path: Path, rows: pd.DataFrame = ROWS) -> Path:
    rows.to_csv(path, index=False)
    return path


def test_every_group_is_pooled_by_itself(tmp_path: Path) -> None:
    path = write(tmp_path / "losses.csv")
    result = prepared(
        "+exp=pool", f"study.path={path}", "study.columns.group=model", "study.units=bits a character"
    ).run()
    table = result.table
    small = table[table["group"] == "small"].set_index("what")
    wanted = pooled_mean(ROWS["estimate"][:3], ROWS["se"][:3])
    for name in ("lower", "upper", "tau", "share_between"):
        assert small.loc["pooled", name] == pytest.approx(getattr(wanted, name))
    assert small.loc["new study", "lower"] == pytest.approx(wanted.new_lower)
    assert small.loc["study", "weight"].sum() == pytest.approx(1)
    without = small.loc["without"].set_index("source")
    assert without.loc["b, small", "estimate"] == pytest.approx(pooled_mean([1.30, 1.41], [0.05, 0.06]).mean)
    # two studies say nothing of a third, and cannot do without one
    large = table[table["group"] == "large"]
    assert set(large["what"]) == {"study", "pooled", "new study"}
    assert any("large has 2 studies" in said for said in result.warnings)


@pytest.mark.parametrize(
    ("change", "columns", "message"),
    [
        ({"se": [0.05, 0, 0.06, 0.1, 0.1]}, {"group": "model"}, "se.*above 0"),
        ({}, {"se": "error"}, r"columns=\{'se': 'NAME'\}"),
        ({"model": ["small", "small", "small", "small2", "large"]}, {"group": "model"}, "the only study of 'small2'"),
    ],
)
def test_tables_that_cannot_be_pooled(
    tmp_path: Path, change: dict[str, object], columns: dict[str, str], message: str
) -> None:
    path = write(tmp_path / "e.csv", ROWS.assign(**change))
    with pytest.raises(InputError, match=message):
        pool(estimates(path=path, columns=columns))
