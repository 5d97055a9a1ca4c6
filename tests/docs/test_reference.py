"""The reference is generated from the docstrings of every module, with warnings as errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiments.command import ROOT


@pytest.mark.slow
def test_reference_without_a_warning(tmp_path: Path) -> None:
    for name in ("sphinx", "myst_parser", "numpydoc", "furo"):
        pytest.importorskip(name, reason='pip install "shannon-game[docs]"')
    out = tmp_path / "html"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", tmp_path / "cache", ROOT / "docs", out],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    page = (out / "reference/estimators.comparison.gap.html").read_text(encoding="utf-8")
    assert 'id="estimators.comparison.gap.estimate_gap"' in page
    # every module has a page: what is not imported is not documented
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in ("estimators", "models", "inference", "experiments")
        for path in (ROOT / package).rglob("*.py")
    }
    assert {path.stem for path in (out / "reference").glob("*.html")} == modules
