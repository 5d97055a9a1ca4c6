"""``demo``: one page with the figures of every question that can be asked, and what is missing for the others."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.first_steps import demo as demo_module
from shannon_game.experiments.first_steps.demo import demo, demo_parts, write_demo


def test_the_page_has_figures_words_and_commands(tmp_path: Path) -> None:
    # the others are in the slow test
    quick = [demo_parts()[0], demo_parts()[3]]
    page = write_demo(tmp_path / "demo", quick).read_text(encoding="utf-8")
    for part in quick:
        assert part.title in page
    assert page.count("<img ") >= len(quick)
    # figures stand inside, nothing is fetched
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    assert {path.name for path in tmp_path.glob("demo/*_table.csv")} == {f"{n}_table.csv" for n in (1, 2)}


def test_what_is_not_installed_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "EXTRAS", {"bayes": ("no_such_package",)})
    part = replace(demo_parts()[-1], python="raise AssertionError")
    page = write_demo(tmp_path, [part]).read_text(encoding="utf-8")
    assert "Left out" in page
    assert "no_such_package not installed" in page


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(InputError):
        demo([str(tmp_path)])


@pytest.mark.slow
def test_the_whole_demo_converges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo([str(tmp_path / "all")]) == 0
    page = Path(capsys.readouterr().out.strip())
    text = page.read_text(encoding="utf-8")
    assert "Left out" not in text
    assert "not converged" not in text.lower()
