"""Figure of the recovery experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from shannon_game.experiments.harness.figures import STYLE, Series, forest, new_figure
from shannon_game.experiments.harness.marks import light_grid, mark, named, percent, titled

__all__ = ["ESTIMATOR_LABELS", "recovery_figure"]

_BAND = 0.05
_COLOURS = {"importance": "#D55E00", "jackknife": "#C38700", "outcomes": "#0072B2", "assumed": "#4A9BC8"}
_MARKERS = {"importance": "s", "jackknife": "D"}
ESTIMATOR_LABELS = {
    "importance": "equation 5",
    "jackknife": "jackknife",
    "outcomes": "participant model, outcomes",
    "assumed": "participant model, k0 known",
}
"""What a reader calls the estimators."""


def recovery_figure(cells: pd.DataFrame, labels: Sequence[str], title: str, nominal: float) -> Figure:
    """Errors and coverage of every estimator, a line a cell."""
    estimators = list(dict.fromkeys(cells["estimator"]))
    names = list(dict.fromkeys(labels))
    wide = pd.DataFrame({"label": names}, index=names)
    for estimator in estimators:
        own = cells.assign(label=labels)[cells["estimator"] == estimator].set_index("label")
        wide = wide.join(own.select_dtypes("number").add_suffix(f" {estimator}"))
    offsets = np.linspace(0.2, -0.2, len(estimators))
    with mpl.rc_context(STYLE):
        fig = new_figure(7.2, 1.9 + 0.4 * len(names))
        left, right = fig.subplots(1, 2, sharey=True)
        for axes, columns in ((left, ("bias_nats", "error")), (right, ("coverage", "coverage"))):
            forest(axes, wide, [_series(*columns, *one) for one in zip(estimators, offsets, strict=True)])
            light_grid(axes, "x")
            for line in range(1, len(names)):
                axes.axhline(-line + 0.5, color="0.9", linewidth=0.6, zorder=0)
        left.axvline(0, color="0.55", linewidth=1, zorder=0)
        left.set_xlabel("error, nats: mean, 5% and 95%")
        right.axvspan(nominal - _BAND, min(nominal + _BAND, 1), color="0.88", zorder=0, linewidth=0)
        right.set_xlim(-0.03, 1.03)
        percent(right.xaxis)
        right.set_xlabel(f"coverage of {nominal:.0%} intervals")
        titled(fig, title, size=10)
        handles: list[Any] = [_series("bias_nats", "error", name, 0).handle() for name in estimators]
        handles.append(
            Patch(color="0.88", label=f"{nominal - _BAND:.0%} to {min(nominal + _BAND, 1):.0%}", linewidth=0)
        )
        named(fig, [*handles, mark("bars of coverage: 95% interval")])
    return fig


def _series(value: str, ends: str, estimator: str, offset: float) -> Series:
    unit = "_nats" if ends == "error" else ""
    return Series(
        f"{value} {estimator}",
        f"{ends}_lower{unit} {estimator}",
        f"{ends}_upper{unit} {estimator}",
        label=ESTIMATOR_LABELS[estimator],
        marker=_MARKERS.get(estimator, "o"),
        colour=_COLOURS[estimator],
        size=4.5,
        capsize=0,
        offset=offset,
    )
