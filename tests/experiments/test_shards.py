"""One command spreads the scoring of a study over processes, which fill one store: the study has the same bytes."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest

from tests.experiments.cloze.test_tvd_exact import COLUMNS, TABLE
from tests.experiments.command import command, environment, run
from tests.experiments.tiny_language_models import named, write_models

pytestmark = [pytest.mark.slow, pytest.mark.torch, pytest.mark.subprocess]

pytest.importorskip("torch")

LAUNCHERS = {
    "joblib": ("hydra_joblib_launcher", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "ray": (
        *("hydra_ray_launcher", "hydra/launcher=ray", "hydra.launcher.ray.init.address=local"),
        *("+hydra.launcher.ray.init.num_cpus=2", "+hydra.launcher.ray.init.include_dashboard=false"),
    ),
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_two_processes_make_the_study_of_one(tmp_path: Path, launcher: str) -> None:
    plugin, *options = LAUNCHERS[launcher]
    if importlib.util.find_spec(f"hydra_plugins.{plugin}") is None:
        pytest.skip(f"{plugin.replace('_', '-')} is not installed")
    write_models(tmp_path / "models")
    (tmp_path / "answers.csv").write_text(TABLE, encoding="utf-8")
    given = [
        "+exp=build_cloze",
        "study=cloze_table",
        f"study.path={tmp_path / 'answers.csv'}",
        *(f"study.columns.{key}={value}" for key, value in COLUMNS.items()),
        *("model=[]", *named(tmp_path / "models", "a")),
        *("experiment.n_samples=200", "experiment.nucleus=[0.8]", "experiment.exact=false", "output.dpi=40"),
    ]
    both = f"experiment.store={tmp_path / 'both'}"
    swept = subprocess.run(
        command("-m", *given, both, "experiment.shard=0/2,1/2", "sweep=shards", *options),
        cwd=tmp_path,
        env=environment() | {"RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert swept.returncode == 0, swept.stderr
    jobs = sorted(tmp_path.glob("multirun/build_cloze/shards/*/status.json"))
    assert [json.loads(path.read_text())["status"] for path in jobs] == ["ok", "ok"]
    assert not [*tmp_path.glob("multirun/**/study.nc")]
    studies = []
    for name, store in (("joined", both), ("alone", f"experiment.store={tmp_path / 'one'}")):
        done = run(tmp_path, *given, store, f"hydra.run.dir={tmp_path / name}")
        assert done.returncode == 0, done.stderr
        studies.append((tmp_path / name / "study.nc").read_bytes())
    assert "0 results were computed" in (tmp_path / "joined" / "report.md").read_text()
    assert studies[0] == studies[1]
