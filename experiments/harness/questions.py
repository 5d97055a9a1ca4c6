"""What questions repeat: lines of a summary, normal intervals, figures of one panel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INTERVAL_SE = NormalDist().inv_cdf(0.95)
"""Standard errors on either side of an estimate: a normal interval of 90%, as all questions have by default."""


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows by the names of their columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def bullets(table: pd.DataFrame, line: str) -> str:
    """Fill in a line for every row, as in ``bullets(table, "**{player}**: {tvd:.3f}")``."""
    return "\n".join(f"- {line.format(**row)}" for row in records(table))


def listed(parts: Iterable[str]) -> str:
    """Join as in a sentence: ``a, b and c``."""
    *first, last = [*parts] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def half_width(se: pd.Series[float], interval: float = 0.9) -> pd.Series[float]:
    """Half of a normal interval; none where there is no standard error."""
    return NormalDist().inv_cdf((1 + interval) / 2) * se.fillna(0)


def normal_interval(value: float, se: float, digits: int) -> str:
    """Interval of 90% in words, as in ``[0.61, 0.64]``."""
    return f"[{value - INTERVAL_SE * se:.{digits}f}, {value + INTERVAL_SE * se:.{digits}f}]"


@contextmanager
def one_panel(
    width: float, height: float, title: str, about: str = "", *, grid: Literal["x", "y", "both"] | None = "y"
) -> Iterator[tuple[Figure, Axes]]:
    """Make a figure of one panel in the house style, with its title above."""
    import matplotlib as mpl  # noqa: PLC0415 - the command itself draws nothing

    from shannon_game.experiments.harness.figures import STYLE, new_figure  # noqa: PLC0415
    from shannon_game.experiments.harness.marks import light_grid, titled  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        figure = new_figure(width, height)
        axes = figure.add_subplot()
        yield figure, axes
        if grid is not None:
            light_grid(axes, grid)
        titled(figure, title, about)
