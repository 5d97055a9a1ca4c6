"""Launchers of sweeps with the options of a small machine, and whether each can run here.

``tests/slurm/setup_one_node.sh`` makes a Debian machine the Slurm cluster that Slurm needs.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess

import pytest

HEAD = "127.0.0.2"
"""Where Ray listens."""

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
            f"+hydra.launcher.ray.init._node_ip_address={HEAD}",
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
