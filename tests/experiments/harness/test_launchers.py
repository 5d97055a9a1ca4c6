"""Sweeps on other launchers, for real: the same summary as one job after the other, failures in their job, resume.

``tests/slurm/setup_one_node.sh`` makes a Debian machine the Slurm cluster that the Slurm test needs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.experiments.command import ROOT, TINY, command
from tests.same import assert_same_table

pytestmark = pytest.mark.slow

LAUNCHERS = {
    "joblib": ("hydra_joblib_launcher", ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")),
    "submitit_local": ("hydra_submitit_launcher", ("hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5")),
    "submitit_slurm": (
        "hydra_submitit_launcher",
        (
            "hydra/launcher=submitit_slurm",
            "hydra.launcher.partition=main",
            "hydra.launcher.cpus_per_task=1",
            "hydra.launcher.timeout_min=5",
        ),
    ),
    "ray": (
        "hydra_ray_launcher",
        (
            "hydra/launcher=ray",
            # without it Ray joins the last cluster that was started here, even one that has died
            "hydra.launcher.ray.init.address=local",
            "+hydra.launcher.ray.init.num_cpus=2",
            "+hydra.launcher.ray.init.include_dashboard=false",
            # 127.0.0.1 would become the machine's address in its network
            "+hydra.launcher.ray.init._node_ip_address=127.0.0.2",
        ),
    ),
}


def need(launcher: str) -> tuple[str, ...]:
    """Options of a launcher; the test is skipped where the launcher cannot run."""
    plugin, options = LAUNCHERS[launcher]
    # looked for, not imported: importing Ray takes seconds and warns
    if importlib.util.find_spec(f"hydra_plugins.{plugin}") is None:
        pytest.skip(f"{plugin.replace('_', '-')} is not installed")
    if launcher == "submitit_slurm":
        if shutil.which("sinfo") is None:
            pytest.skip("there is no sinfo, so no Slurm; tests/slurm/setup_one_node.sh sets it up")
        nodes = subprocess.run(
            ["sinfo", "--noheader", "--partition=main", "--states=idle", "--format=%n"],
            capture_output=True,
            text=True,
            check=False,
        )
        if nodes.returncode != 0 or not nodes.stdout.strip():
            pytest.skip(
                "no node of Slurm's partition main is idle; tests/slurm/setup_one_node.sh starts a cluster "
                f"{nodes.stderr.strip()}"
            )
    return options


# Hydra calls this in the process that runs the job, so it breaks jobs wherever they run.
BREAKER = """
from hydra.experimental.callback import Callback


class Break(Callback):
    def on_job_start(self, config, **kwargs):
        import shannon_game.experiments.comparison.perplexity as module

        # a worker may do several jobs: mend what an earlier one broke
        real = getattr(module, "real", module.perplexity)
        module.real = real

        def broken(study, settings):
            if settings.seed == 1:
                raise RuntimeError("the roof is leaking")
            return real(study, settings)

        broken.settings_class = real.settings_class
        module.perplexity = broken
"""


def environment(folder: Path) -> dict[str, str]:
    # workers inherit it; Ray would report its use over the network otherwise
    return os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "COLUMNS": "200", "RAY_USAGE_STATS_ENABLED": "0"}


def sweep(
    folder: Path, name: str, *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("-m", "+exp=perplexity", *TINY, *arguments, f"sweep={name}"),
        cwd=folder,
        env=env or environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def job_statuses(folder: Path) -> dict[int, str]:
    return {int(path.parent.name): json.loads(path.read_text())["status"] for path in folder.glob("*/status.json")}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_launcher_gives_the_summary_of_the_basic_one_and_resume_does_what_is_missing(
    tmp_path: Path, launcher: str
) -> None:
    options = need(launcher)
    (tmp_path / "breaker.py").write_text(BREAKER)
    swept = ("players=[human],[bob]", "seed=0,1,2")
    broken = "+hydra.callbacks.breaker._target_=breaker.Break"
    assert sweep(tmp_path, "basic", *swept, broken).returncode == 1
    done = sweep(tmp_path, "other", *swept, broken, *options)
    assert done.returncode == 1, done.stderr
    home = tmp_path / "multirun/perplexity"
    folder = home / "other"
    # bob is no player of the study
    assert job_statuses(folder) == {0: "ok", 1: "failed", 2: "ok", 3: "failed", 4: "failed", 5: "failed"}
    assert_same_table(folder / "summary.csv", home / "basic/summary.csv")
    if launcher.startswith("submitit"):
        # Slurm names a job of an array NUMBER_INDEX; a local job has its process's number
        kind = "*_[0-9]" if launcher == "submitit_slurm" else "[0-9]*"
        assert len(list((folder / ".submitit").glob(f"{kind}/*_result.pkl"))) == 6
    log = (folder / "1/run.log").read_text()
    assert "Traceback (most recent call last)" in log
    assert "RuntimeError: the roof is leaking" in log
    log = (folder / "3/run.log").read_text()
    assert "unknown player 'bob'" in log
    assert "Traceback" not in log

    # the roof is mended and a job's folder lost: both are done again, job 2 is not
    shutil.rmtree(folder / "0")
    before = (folder / "2/table.csv").stat().st_mtime_ns
    assert sweep(tmp_path, "mended", *swept).returncode == 1
    resumed = sweep(tmp_path, "other", *swept, *options, "resume=true")
    assert resumed.returncode == 1, resumed.stderr
    assert job_statuses(folder) == {0: "ok", 1: "ok", 2: "ok", 3: "failed", 4: "failed", 5: "failed"}
    assert (folder / "2/table.csv").stat().st_mtime_ns == before
    assert_same_table(folder / "summary.csv", home / "mended/summary.csv")
