"""Figures can be read in one column, in every colour of the house."""

from __future__ import annotations

import doctest
import re

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from experiments.harness import legible as module
from experiments.harness.figures import new_figure
from experiments.harness.legible import LEAST_POINTS, contrast, legible, points_in_column, texts
from experiments.harness.marks import mark as entry
from experiments.harness.marks import named, titled
from tests.experiments.command import ROOT, run_experiment

FILLS = {"#d9d9d9", "#f0f0f0"}
"""Of bars that have their number written in them."""
SOURCES = sorted((ROOT / "experiments").rglob("*.py"))


def smallest(figure: Figure) -> float:
    return min(points_in_column(float(each.get_fontsize()), figure.get_figwidth()) for each in texts(figure))


def test_every_colour_of_a_figure_can_be_seen_on_white() -> None:
    found = {colour for path in SOURCES for colour in re.findall(r'"(#[0-9A-Fa-f]{6})"', path.read_text("utf-8"))}
    assert len(found) > 10
    assert {colour: round(contrast(colour), 2) for colour in found - FILLS if contrast(colour) < 3} == {}


@pytest.mark.parametrize(("colour", "ratio"), [("#777777", 4.48), ("#767676", 4.54), ("white", 1), ("#FF0000", 4.0)])
def test_contrast_is_that_of_wcag(colour: str, ratio: float) -> None:
    assert contrast(colour) == pytest.approx(ratio, abs=0.005)


@pytest.mark.parametrize("width", [4.0, 6.8, 7.4, 10.6])
def test_no_text_is_smaller_than_a_column_allows(width: float) -> None:
    figure = new_figure(width, 3)
    left, right = figure.subplots(1, 2)
    left.plot([1, 2], [1, 2])
    left.tick_params(labelsize=4)
    left.text(1, 1, "here", fontsize=3)
    right.set_title("a title", fontsize=5)
    right.set_yticks([0, 1], ["a", "b"])
    titled(figure, "What it shows", size=6)
    named(figure, [entry("line")])
    assert smallest(legible(figure)) >= LEAST_POINTS - 1e-9
    figure.draw_without_rendering()
    # ticks that a drawing makes are of the size too
    assert smallest(figure) >= LEAST_POINTS - 1e-9


def test_a_title_that_is_too_long_has_lines() -> None:
    figure = new_figure(6.8, 3)
    axes = figure.add_subplot()
    axes.set_title("short")
    assert legible(figure).axes[0].title.get_text() == "short"
    axes.set_title("words that go on " * 8, loc="left")
    legible(figure).draw_without_rendering()
    assert axes.get_title(loc="left").count("\n") >= 1
    assert axes._left_title.get_window_extent().x1 <= figure.bbox.width  # type: ignore[attr-defined]
    axes.set_xlabel("(what bars are, what crosses are, and what stands in brackets) " * 2)
    legible(figure).draw_without_rendering()
    box = axes.xaxis.label.get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width


@pytest.mark.parametrize(
    ("command", "figure"),
    [(("+exp=perplexity", "n=10"), "perplexity"), (("+exp=tvd", "study=cloze_simulated", "study.n_items=8"), "tvd")],
)
def test_figures_of_a_result_are_legible(command: tuple[str, ...], figure: str) -> None:
    drawn = run_experiment(*command).figures[figure]
    drawn.draw_without_rendering()
    assert smallest(drawn) >= LEAST_POINTS - 1e-9
    assert {to_hex(each.get_color()) for each in texts(drawn) if contrast(each.get_color()) < 4.5} == set()


def test_the_examples_are_right() -> None:
    assert doctest.testmod(module).failed == 0
