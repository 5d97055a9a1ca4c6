"""The page for R: its scripts run, and what R reads is what Python wrote."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.docs.pages import run_page
from tests.experiments.command import ROOT

SCRIPT = ROOT / "docs/r/shannon_game.R"


@cache
def lacks(*packages: str) -> str:
    """What is missing to run R with some packages; empty if nothing is."""
    if shutil.which("Rscript") is None:
        return "Rscript is not installed"
    quoted = ", ".join(f'"{name}"' for name in packages)
    code = f"for (p in c({quoted})) if (!requireNamespace(p, quietly = TRUE)) cat(p, '')"
    found = subprocess.run(["Rscript", "--vanilla", "-e", code], capture_output=True, text=True, check=True).stdout
    return f"R has no {found}" if found.strip() else ""


def run_r(code: str, folder: Path) -> str:
    text = f'source("{SCRIPT}")\n{code}'
    done = subprocess.run(
        ["Rscript", "--vanilla", "-e", text], cwd=folder, capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.subprocess
def test_tables_are_read_as_they_were_written(tmp_path: Path) -> None:
    if lacks("stats"):
        pytest.skip(lacks("stats"))
    table = pd.DataFrame(
        {
            "participant": ["7513247084907933005", "NA", "T"],
            "converged": [True, False, True],
            "gap_nats": [0.1, np.nan, 1 / 3],
            "item": ["001", "b", 'c "d", e'],
            "n": [1, 2, 3],
        }
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    table.iloc[:1].to_csv(tmp_path / "items.csv", index=False)
    said = run_r(
        "run <- read_run('.')\n"
        "cat(names(run), sapply(run$table, class), sep = '|'); cat('\\n')\n"
        "cat(run$table$participant, run$table$item, sep = '|'); cat('\\n')\n"
        "cat(run$table$converged, is.na(run$table$gap_nats), sprintf('%.17g', run$table$gap_nats[3]), sep = '|')",
        tmp_path,
    )
    assert said.splitlines() == [
        "items|table|character|logical|numeric|character|integer",
        '7513247084907933005|NA|T|001|b|c "d", e',
        "TRUE|FALSE|TRUE|FALSE|TRUE|FALSE|0.33333333333333331",
    ]


@pytest.mark.subprocess
def test_draws_are_read_by_chain_draw_and_label(tmp_path: Path) -> None:
    if lacks("ncdf4", "posterior"):
        pytest.skip(lacks("ncdf4", "posterior"))
    rng = np.random.default_rng(1)
    posterior = xr.Dataset(
        {
            "mu": (("chain", "draw"), rng.normal(size=(2, 5))),
            "slope": (("chain", "draw", "participant"), rng.normal(size=(2, 5, 3))),
            "both": (("chain", "draw", "participant", "level"), rng.normal(size=(2, 5, 3, 2))),
        },
        coords={"chain": [0, 1], "draw": np.arange(5), "participant": ["p000", "p001", "p002"], "level": [10, 20]},
    )
    posterior.to_netcdf(tmp_path / "posterior_x.nc", group="posterior", engine="h5netcdf")
    said = run_r(
        "draws <- read_posterior('posterior_x.nc')\n"
        "cat(dim(draws)); cat('\\n'); cat(dimnames(draws)$variable, sep = '|'); cat('\\n')\n"
        "cat(sprintf('%.15g', c(draws[4, 2, 'mu'], draws[3, 1, 'slope[p002]'], draws[5, 2, 'both[p001,20]'])))",
        tmp_path,
    ).splitlines()
    assert said[0] == "5 2 10"
    assert said[1].split("|")[:5] == ["mu", "slope[p000]", "slope[p001]", "slope[p002]", "both[p000,10]"]
    expected = [
        posterior["mu"].sel(chain=1, draw=3),
        posterior["slope"].sel(chain=0, draw=2, participant="p002"),
        posterior["both"].sel(chain=1, draw=4, participant="p001", level=20),
    ]
    np.testing.assert_allclose([float(value) for value in said[2].split()], [float(each) for each in expected])


@pytest.mark.slow
def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five blocks of R, two of the shell: three runs of the command, a minute."""
    if lacks("lme4", "ncdf4", "posterior"):
        pytest.skip(lacks("lme4", "ncdf4", "posterior"))
    monkeypatch.chdir(tmp_path)
    shutil.copy(SCRIPT, tmp_path)
    assert run_page(ROOT / "docs/r.md", tmp_path) == 7
