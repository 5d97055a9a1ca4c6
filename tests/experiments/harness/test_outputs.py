"""Outputs: all or none, readable, the same for the same result."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.outputs import (
    ExperimentResult,
    JobStatus,
    begin,
    check_run_folder,
    config_hash,
    finish,
    read_status,
)
from shannon_game.experiments.harness.tables import cell_text
from shannon_game.inference.manifest import scratch


@pytest.fixture
def cfg():
    return OmegaConf.create(
        {
            "experiment": {"name": "perplexity"},
            "seed": 1,
            "twice": "${seed}",
            "resume": False,
            "sweep": "a",
            "output": {"dpi": 30, "print": True, "html": False, "bundle": False},
        }
    )


def status_with(**changes):
    fields = {
        "status": "ok",
        "experiment": "perplexity",
        "overrides": ("+exp=perplexity",),
        "config_hash": "00",
        "started": "2026-01-01T00:00:00+00:00",
    }
    return JobStatus(**(fields | changes))


def run_in(folder, content, **changes):
    """A run that writes files, from its first status to its last."""
    check_run_folder(folder)
    begin(folder, status_with(status="running", **changes))
    with scratch(folder) as staging:
        for name, text in content.items():
            (staging / name).parent.mkdir(exist_ok=True)
            (staging / name).write_text(text)
        return finish(folder, staging, status_with(**changes))


def content_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_that_holds_a_result_is_written_once(tmp_path):
    assert run_in(tmp_path, {"table.csv": "1", "figures/a.png": "1"}) == tmp_path
    before = content_of(tmp_path)
    with pytest.raises(InputError, match="holds the result of perplexity"):
        run_in(tmp_path, {"table.csv": "2"})
    assert content_of(tmp_path) == before


def test_a_result_whose_place_is_taken_goes_beside_it(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    begin(folder, status_with(status="running"))
    (folder / "table.csv").write_text("mine")
    with scratch(folder) as staging:
        (staging / "table.csv").write_text("1")
        assert finish(folder, staging, status_with()) == tmp_path / "run_2"
    assert (folder / "table.csv").read_text() == "mine"
    assert read_status(tmp_path / "run_2").status == "ok"


def test_a_kill_while_a_result_is_put_in_its_place_leaves_no_status_that_is_untrue(tmp_path, monkeypatch):
    monkeypatch.setattr("shannon_game.inference.manifest.remove", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_in(tmp_path, {"a.csv": "1", "b.csv": "1"})
    monkeypatch.undo()
    assert read_status(tmp_path).status == "running"
    run_in(tmp_path, {"b.csv": "3"})
    assert content_of(tmp_path).keys() == {"status.json", "b.csv"}


@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}", json.dumps({"status": "ok"})])
def test_no_status_is_better_than_half_of_one(tmp_path, content):
    if content is not None:
        (tmp_path / "status.json").write_text(content)
    assert read_status(tmp_path) is None


def test_config_hash_follows_the_numbers_only(cfg):
    first = config_hash(cfg)
    assert len(first) == 64
    same = OmegaConf.merge(cfg, {"resume": True, "sweep": "b", "output": {"print": False}})
    assert config_hash(same) == first
    # an interpolation counts by its value
    assert config_hash(OmegaConf.merge(cfg, {"twice": 1})) == first
    for change in ({"seed": 2}, {"twice": 2}, {"output": {"dpi": 31}}, {"experiment": {"name": "rounding"}}):
        assert config_hash(OmegaConf.merge(cfg, change)) != first


@given(
    st.lists(st.sampled_from([*"abc", "x", "se_x", "x_lower", "x_upper", "n_x", "y_median", "y_lower"]), unique=True),
    st.integers(0, 20),
    st.integers(1, 3),
)
def test_readers_see_at_most_eight_columns_and_the_numbers_of_the_table(some, n_more, n_rows):
    names = ["player", *some, *(f"more_{i}" for i in range(n_more)), "value", "converged"]
    table = pd.DataFrame({name: [1000.0 * at + row for row in range(n_rows)] for at, name in enumerate(names)})
    table = table.assign(player=[f"p{row}" for row in range(n_rows)], converged=table["value"] > 1001)
    result = ExperimentResult(table, xr.Dataset(), {}, "People lose 9 nats.\n\nhow")
    lines = result.report.splitlines()
    assert lines[0] == "People lose 9 nats."
    assert {line.count("|") - 1 for line in lines if line.startswith("|")} <= set(range(3, 9))
    assert result._repr_html_().count("<th>") <= 8
    shown = result.summary()
    assert {"player", "converged"} <= set(shown)
    # no number stands under another's name
    for name, column in shown.items():
        own = table[name].map(cell_text)
        assert [str(cell_text(value)).split(" ")[0] for value in column] == own.tolist()
        if column.map(str).str.contains("[", regex=False).any():
            ends = (f"{str(name).removesuffix('_median')}{end}" for end in ("_lower", "_upper"))
            low, high = (table[end].map(cell_text) for end in ends)
            assert column.tolist() == [f"{at} [{a}, {b}]" for at, a, b in zip(own, low, high, strict=True)]
    assert (len(shown.columns) == len(names)) or "`result.table` has" in result.report
