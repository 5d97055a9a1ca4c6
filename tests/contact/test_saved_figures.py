"""Figures as a paper takes them: as wide as a column, with a caption in the report in place of a title."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from tests.contact.test_run_folders import QUICK, main

DPI = 100
TITLE = "What perplexity do people and models have?"


def test_a_figure_is_as_wide_as_a_column_and_has_its_title_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, more in {"column": ("output.width=8.5cm",), "page": ("output.width=17cm", "output.title=true")}.items():
        assert main(*QUICK, *more, f"output.dpi={DPI}", f"hydra.run.dir={name}", monkeypatch=monkeypatch) == 0
    for name, width_cm, is_drawn in (("column", 8.5, False), ("page", 17, True)):
        with Image.open(tmp_path / name / "figures/perplexity.png") as image:
            # what is trimmed is less than a tenth of the width, and nothing stands out of it
            assert 0.9 * width_cm < image.width / DPI * 2.54 < 1.02 * width_cm
            assert TITLE in image.info["Title"]
        drawn = (tmp_path / name / "figures/perplexity.svg").read_text(encoding="utf-8").partition("</metadata>")[2]
        assert (TITLE in " ".join(re.findall(r">([^<>]+)</text>", drawn))) == is_drawn
        report = (tmp_path / name / "report.md").read_text(encoding="utf-8")
        assert re.search(rf"!\[perplexity\]\(figures/perplexity.png\)\n\n\*{re.escape(TITLE)}", report)


def test_a_width_without_its_unit_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(*QUICK, "output.width=8.5", "hydra.run.dir=run", monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "output.width" in said
