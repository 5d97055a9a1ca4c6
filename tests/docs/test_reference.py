"""The site is built with warnings as errors: the pages in seconds, the reference from every module's docstrings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiments.command import ROOT


def built(tmp_path: Path, *options: str) -> Path:
    """Build the site with warnings as errors; gives its folder."""
    for name in ("sphinx", "myst_parser", "numpydoc", "furo", "sphinx_design", "sphinx-mathjax-offline"):
        pytest.importorskip(name, reason='pip install "shannon-game[dev]"')
    out = tmp_path / "html"
    sphinx = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", tmp_path / "cache", *options]
    done = subprocess.run(
        [*sphinx, ROOT / "docs", out],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return out


@pytest.mark.subprocess
def test_pages_without_a_warning_that_fetch_nothing(tmp_path: Path) -> None:
    """Links between pages, headings and figures resolve; styles, scripts and MathJax are files of the site."""
    out = built(tmp_path, "-t", "pages")
    for page in (path.relative_to(out) for path in out.rglob("*.html")):
        text = (out / page).read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|link)\b[^>]*?(?:src|href)="(https?:[^"]*)"', text)
        assert not fetched, page
        # for screen readers and the keyboard
        assert text.count('role="heading"') == text.count('aria-level="2"')
        assert "<pre>" not in text
    assert (out / "_static/mathjax/tex-chtml.js").is_file()
    assert "Search.setIndex" in (out / "searchindex.js").read_text(encoding="utf-8")


@pytest.mark.slow
def test_reference_without_a_warning(tmp_path: Path) -> None:
    out = built(tmp_path)
    page = (out / "reference/shannon_game.estimators.comparison.gap.html").read_text(encoding="utf-8")
    assert 'id="shannon_game.estimators.comparison.gap.estimate_gap"' in page
    # every module has a page: what is not imported is not documented
    modules = {
        ".".join(("shannon_game", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for package in ("estimators", "models", "inference", "experiments")
        for path in (ROOT / package).rglob("*.py")
    }
    assert {path.stem for path in (out / "reference").glob("*.html")} == modules
