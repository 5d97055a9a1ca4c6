"""The forest plot that experiments share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shannon_game.experiments.harness import marks
from shannon_game.experiments.harness.figures import Series, forest, legible, new_figure
from shannon_game.experiments.harness.tables import short_names

ROWS = pd.DataFrame(
    {
        "label": ["a", "a rounded", "b", "c"],
        "group": ["a", "a", "b", "b"],
        "colour": ["#000000", "#000000", "#0072B2", "#0072B2"],
        "hollow": [False, True, False, False],
        "height": [1.0, 1.0, 1.6, 1.0],
        "loss": [3.0, 4.0, 20.0, 6.0],
        "low": [2.0, 3.5, 18.0, 6.5],
        "high": [4.0, 5.0, 25.0, 7.0],
        "truth": [np.nan, 4.5, 90.0, np.nan],
    }
)
LOSS, TRUTH = Series("loss", "low", "high", offset=0.1), Series("truth", marker="|", colour="#CC3311")


def points(rows: pd.DataFrame, series: list[Series], **options: str) -> tuple[np.ndarray, list]:
    axes = new_figure(4, 3).add_subplot()
    heights = forest(axes, rows, series, **options)
    return heights, [bar.lines[0] for bar in axes.containers]


def test_every_finite_value_is_one_mark_in_the_colour_of_its_row_or_series() -> None:
    _, marks = points(ROWS, [LOSS, TRUTH])
    assert [float(mark.get_xdata()[0]) for mark in marks] == [3, 4, 20, 6, 4.5, 90]
    np.testing.assert_allclose([float(mark.get_ydata()[0]) for mark in marks], [0.1, -0.9, -2.35, -3.95, -1, -2.45])
    assert [mark.get_color() for mark in marks] == [*ROWS["colour"], "#CC3311", "#CC3311"]
    assert [mark.get_markerfacecolor() for mark in marks][:2] == ["#000000", "white"]


def test_an_estimate_outside_its_interval_has_a_bar_on_one_side_only() -> None:
    axes = new_figure(4, 3).add_subplot()
    forest(axes, ROWS.iloc[3:], [LOSS])
    (segment,) = axes.containers[0].lines[2][0].get_segments()
    assert segment[:, 0].tolist() == [6, 7]


def test_a_log_axis_holds_all_that_is_drawn() -> None:
    axes = new_figure(4, 3).add_subplot()
    forest(axes, ROWS, [LOSS, TRUTH], scale="log")
    low, high = axes.get_xlim()
    assert axes.get_xscale() == "log"
    assert low < 2
    assert high > 90
    assert [label.get_text() for label in axes.get_yticklabels()] == ROWS["label"].tolist()


@pytest.mark.parametrize(("quantiles", "bands"), [(np.arange(6).reshape(3, 2), 1), ([[1, 2]], 0), ([1, 2], 0)])
def test_a_curve_has_a_band_where_there_are_three_lines(quantiles: np.ndarray, bands: int) -> None:
    axes = new_figure(4, 3).add_subplot()
    marks.curve(axes, [0, 1], quantiles, "black")
    assert len(axes.collections) == bands
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_ydata(), np.atleast_2d(quantiles)[-1 if bands == 0 else 1])


def test_arms_are_never_negative() -> None:
    np.testing.assert_array_equal(marks.arms([1, 3], [2, 2], [4, 5]), [[1, 0], [2, 3]])


def test_long_names_are_numbered_in_one_order() -> None:
    long = ["7513247084907933005", "-372181953", "7513247084907933005"]
    assert short_names(long) == short_names(long[::-1]) == {"-372181953": "P1", "7513247084907933005": "P2"}
    assert short_names(["Ann", "participant"[:9]]) == {"Ann": "Ann", "participa": "participa"}
    assert short_names([]) == {}


def test_no_text_is_too_small_for_a_column() -> None:
    figure = new_figure(6.8, 3)
    axes = figure.add_subplot()
    axes.set_title("small", fontsize=6)
    axes.tick_params(labelsize=5)
    legible(figure).draw_without_rendering()
    sizes = [axes.title.get_fontsize(), *(label.get_fontsize() for label in axes.get_xticklabels())]
    assert min(sizes) * 85 / 25.4 / 6.8 >= 5 - 1e-9
