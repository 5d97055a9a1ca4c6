"""The forest plot that experiments share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.harness.figures import Series, forest, new_figure

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


def test_rows_go_down_with_gaps_between_groups_and_room_where_asked() -> None:
    heights, _ = points(ROWS, [LOSS])
    np.testing.assert_allclose(heights, [0, -1, -2.45, -4.05])


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


@pytest.mark.parametrize("column", ["colour", "group", "hollow", "height"])
def test_what_says_how_a_row_looks_can_be_left_out(column: str) -> None:
    _, marks = points(ROWS.drop(columns=column), [LOSS])
    assert len(marks) == 4
