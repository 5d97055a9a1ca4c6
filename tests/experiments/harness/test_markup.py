"""Names are names: what a formula, the terminal or Markdown takes for a command changes nothing and ends nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from markdown_it import MarkdownIt

from shannon_game import perplexity
from shannon_game.experiments.harness.report import save_figures
from shannon_game.experiments.harness.tables import markdown_plain, markdown_table, print_table
from tests.estimators.comparison.comparison_studies import small_study

HOSTILE = [r"$\frac{1$", "[/red]", "$x$", "a|b", "*b*", "_c_ d_e", "![x](y)", "<img src=x>", "`d", "&amp;", "~~s~~"]


@pytest.mark.parametrize("first", range(0, len(HOSTILE), 3))
def test_a_run_with_models_of_such_names(
    first: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    study = small_study()
    names = [HOSTILE[(first + at) % len(HOSTILE)] for at in range(study.sizes["model"])]
    old = study["model"].to_numpy().tolist()
    study = study.assign_coords(model=np.array(names, dtype=object))
    study.attrs |= {"generator": names[old.index(study.attrs["generator"])], "name": HOSTILE[first]}
    result = perplexity(study)
    save_figures(tmp_path, result.figures, dpi=50)
    result._repr_html_()
    print_table(result.summary(), HOSTILE[first])
    said = capsys.readouterr().out
    drawn = (tmp_path / "perplexity.svg").read_text(encoding="utf-8")
    shown = MarkdownIt("commonmark").enable("table").render(markdown_table(result.table))
    for name in names:
        assert name in said
        html = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert html in drawn
        assert html in shown
    assert "<img" not in shown
    assert "<em>" not in shown


@pytest.mark.parametrize("text", [*HOSTILE, "\\*x", "[a][b]", "[a]: b", "a_b", "x < 3", "[0.1, 0.2]", "50%", "1_000"])
def test_markdown_gives_a_text_back(text: str) -> None:
    rendered = MarkdownIt("commonmark").enable("strikethrough").renderInline(markdown_plain(text))
    assert rendered.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == text
