"""Tables of declared rows, as another program reads them; tables of a question that declares nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.rows import Row, typed
from shannon_game.experiments.harness.sweep import SweptJob, declared_rows
from shannon_game.experiments.harness.views import paper_table
from shannon_game.inference.settings import Settings
from tests.experiments.command import config, prepared

# of a question in somebody's own package
OWN = pd.DataFrame(
    {
        "person": ["ann", "bo"],
        "n_answers": [10, 12],
        "bias_median_nats": [0.5, -0.25],
        "bias_lower_nats": [0.25, -0.5],
        "bias_upper_nats": [0.75, 0.0],
        "fine": [True, False],
    }
)


def test_a_program_that_knows_table_schemas_reads_every_column(tmp_path: Path) -> None:
    job = prepared("+exp=practice", "study=simulated", "study.n_items=12", "study.vocab_size=100", "output.dpi=20")
    write_outputs(tmp_path, config("+exp=practice"), job.study, job.run(), settings=job.settings)
    schema = json.loads((tmp_path / "columns.json").read_text(encoding="utf-8"))["fields"]
    table = pd.read_csv(tmp_path / "table.csv")
    assert [one["name"] for one in schema] == list(table.columns)
    kinds = {"string": "O", "integer": "i", "number": "f", "boolean": "b"}
    assert all(table[one["name"]].convert_dtypes().dtype.kind in kinds[one["type"]] + "i" for one in schema)
    assert all(one["description"] for one in schema)
    ends = {one["name"]: one["of"] for one in schema if one["role"] in ("se", "lower", "upper")}
    assert ends == dict.fromkeys(("se_nats", "lower_nats", "upper_nats"), "slope_nats")
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        assert {dataset[name].attrs["units"] for name in ends} == {"nats"}


def test_a_question_that_declares_nothing_is_shown_by_the_types_of_its_columns() -> None:
    result = ExperimentResult(OWN, OWN.to_xarray(), {}, "Answer.")
    # no role follows from a name
    assert [one.role for one in result.columns] == ["key", "context", "estimate", "estimate", "estimate", "flag"]
    assert result.summary().columns[0] == "person"
    tables = [OWN, OWN.assign(bias_median_nats=[0.6, -0.2])]
    jobs = [
        SweptJob(at, "ok", {"experiment.at_least": f"0.{at + 7}"}, "", table.astype(str), typed(table))
        for at, table in enumerate(tables)
    ]
    found = declared_rows(jobs)
    assert found is not None
    shown = paper_table(*found).table
    assert shown.columns[:2].tolist() == ["experiment.at_least", "person"]
    assert set(shown["bias_median_nats"]) == {"0.5", "-0.25", "0.6", "-0.2"}


def test_parts_of_an_estimate_are_columns_after_it() -> None:
    class OneRow(Row):
        who: str = column.key("who")
        gap_nats: float = column.headline("gap", unit="nats", se="gap_se_nats", interval="gap_{}_nats")
        n: int | None = column.context("answers")

    table = OneRow.table([{"who": "ann", "gap_nats": 1.0, "gap_upper_nats": 2.0, "else": 3}])
    assert list(table) == ["who", "gap_nats", "gap_se_nats", "gap_lower_nats", "gap_upper_nats"]
    assert table.isna().loc[0].tolist() == [False, False, True, True, False]
    assert [one.unit for one in OneRow.columns] == ["", "nats", "nats", "nats", "nats", ""]
    with pytest.raises(TypeError, match="no column"):

        class _WrongRow(Row):
            error: float = column.error("gap_nats")


class InMinutes(Settings):
    interval: float = 5.0


@experiment(InMinutes)
def waits(study: xr.Dataset, settings: InMinutes) -> ExperimentResult:
    """Question of somebody's own, whose interval is no probability."""
    return ExperimentResult(OWN, OWN.to_xarray(), {}, f"{settings.interval} minutes")


def test_an_interval_that_is_no_probability_stays_the_setting_of_its_question() -> None:
    assert waits(OWN.to_xarray()).interval == pytest.approx(0.9)
