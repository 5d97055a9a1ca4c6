"""One command spreads scoring over processes, which fill one store: store and study hold the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xarray as xr

from tests.experiments.cloze.test_tvd_exact import COLUMNS, TABLE
from tests.experiments.command import command, environment, run
from tests.experiments.launchers import LAUNCHERS, need
from tests.experiments.tiny_language_models import named, write_models
from tests.same import assert_same_study

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.subprocess]

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("given")
    write_models(folder / "models")
    (folder / "answers.csv").write_text(TABLE, encoding="utf-8")
    return [
        "+exp=build_cloze",
        "study=cloze_table",
        f"study.path={folder / 'answers.csv'}",
        *(f"study.columns.{key}={value}" for key, value in COLUMNS.items()),
        *("model=[]", *named(folder / "models", "a")),
        *("experiment.n_samples=200", "experiment.nucleus=[0.8]", "output.dpi=40"),
    ]


def sweep(folder: Path, given: list[str], *options: str) -> Path:
    """Compute both shards in jobs of their own; the store that they filled."""
    store = folder / "store"
    done = subprocess.run(
        command("-m", *given, f"experiment.store={store}", "experiment.shard=0/2,1/2", "sweep=shards", *options),
        cwd=folder,
        env=environment() | {"RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    jobs = sorted(folder.glob("multirun/build_cloze/shards/*/status.json"))
    assert [json.loads(path.read_text())["status"] for path in jobs] == ["ok", "ok"]
    assert not [*folder.glob("multirun/**/study.nc")]
    return store


def contents(store: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Results of a store, by operation and key."""
    found = {}
    for path in store.rglob("*.arrow"):
        for row in pa.ipc.open_file(path.read_bytes()).read_all().to_pylist():
            found[path.parent.name, row.pop("key")] = row
    assert len(found) > 2
    return found


@pytest.fixture(scope="module")
def one_by_one(given: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """The store that both shards make one after the other, in one process."""
    return contents(sweep(tmp_path_factory.mktemp("basic"), given))


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launcher_fills_the_store_of_shards_one_by_one(
    tmp_path: Path, given: list[str], one_by_one: dict[tuple[str, str], dict[str, Any]], launcher: str
) -> None:
    found = contents(sweep(tmp_path, given, *need(launcher)))
    assert found.keys() == one_by_one.keys()
    for key, row in found.items():
        assert row.keys() == one_by_one[key].keys()
        for name, value in row.items():
            # a worker may have fewer threads, which sum float32 in another order
            its = pytest.approx if isinstance(np.asarray(value).flat[0], float) else lambda same, **_: same
            assert value == its(one_by_one[key][name], rel=1e-4), name


def test_two_processes_make_the_study_of_one(tmp_path: Path, given: list[str]) -> None:
    # exact probabilities may differ in the last digit of float32 between batches
    given = [*given, "experiment.exact=false"]
    store = sweep(tmp_path, given, *need("joblib"))
    studies = []
    for name, its in (("joined", store), ("alone", tmp_path / "one")):
        done = run(tmp_path, *given, f"experiment.store={its}", f"hydra.run.dir={tmp_path / name}")
        assert done.returncode == 0, done.stderr
        studies.append(xr.load_dataset(tmp_path / name / "study.nc", engine="h5netcdf"))
    assert "0 results were computed" in (tmp_path / "joined" / "report.md").read_text()
    assert_same_study(*studies)
