"""Figure of the recovery experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.harness.figures import STYLE, Series, forest, new_figure, plain_log
from experiments.harness.marks import light_grid, mark, named, percent, titled

__all__ = ["ESTIMATOR_LABELS", "recovery_figure"]

_BAND = 0.05
_COLOURS = {"importance": "#D55E00", "jackknife": "#C38700", "assumed": "#4A9BC8"}
_OURS_COLOUR = "#0072B2"
_MARKERS = {"importance": "s", "jackknife": "D"}
ESTIMATOR_LABELS = {
    "importance": "equation 5",
    "jackknife": "jackknife",
    "belief": "belief model",
    "outcomes": "participant model, outcomes",
    "assumed": "participant model, k0 known",
}
"""What a reader calls the estimators."""


def recovery_figure(table: pd.DataFrame, labels: Sequence[str], title: str = "", nominal: float = 0.9) -> Figure:
    """RMSE, bias and coverage of every estimator, a line a cell."""
    estimators = list(dict.fromkeys(table["estimator"]))
    cells = list(dict.fromkeys(labels))
    offsets = np.linspace(0.2, -0.2, len(estimators))
    rmse, se = table["rmse_nats"].where(table["rmse_nats"] > 0), 2 * table["rmse_se_nats"].fillna(0)
    half = 2 * np.sqrt(
        (table["rmse_nats"] ** 2 - table["bias_nats"] ** 2).clip(lower=0)
        / table["n_studies"].where(table["n_studies"] > 1)
    )
    # a root mean square of zero has no place on a log axis, nor has the lower end of its interval
    long = table.assign(
        label=labels,
        rmse=rmse,
        rmse_lower=np.maximum(rmse - se, rmse / 3),
        rmse_upper=rmse + se,
        bias=table["bias_nats"],
        bias_lower=table["bias_nats"] - half,
        bias_upper=table["bias_nats"] + half,
    )
    names = [f"{what}{end}" for what in ("rmse", "bias", "coverage") for end in ("", "_lower", "_upper")]
    wide = pd.DataFrame({"label": cells}, index=cells)
    for estimator in estimators:
        its = long[long["estimator"] == estimator].set_index("label")[names]
        wide = wide.join(its.add_suffix(f" {estimator}"))
    with mpl.rc_context(STYLE):
        fig = new_figure(8.4, 1.9 + 0.4 * len(cells))
        axes = fig.subplots(1, 3, sharey=True)
        for panel, what in zip(axes, ("rmse", "bias", "coverage"), strict=True):
            forest(panel, wide, [_series(what, *one) for one in zip(estimators, offsets, strict=True)])
            light_grid(panel, "x")
            for line in range(1, len(cells)):
                panel.axhline(-line + 0.5, color="0.9", linewidth=0.6, zorder=0)
        axes[0].set_xscale("log")
        plain_log(axes[0].xaxis)
        axes[0].set_xlabel("RMSE, nats (log scale)")
        axes[1].axvline(0, color="0.55", linewidth=1, zorder=0)
        axes[1].set_xlabel("bias, nats")
        axes[2].axvspan(nominal - _BAND, min(nominal + _BAND, 1), color="0.88", zorder=0, linewidth=0)
        axes[2].set_xlim(-0.03, 1.03)
        percent(axes[2].xaxis)
        axes[2].set_xlabel(f"coverage of {nominal:.0%} intervals")
        n_studies = sorted({int(count) for count in table["n_studies"]})
        counts = str(n_studies[0]) if len(n_studies) == 1 else f"{n_studies[0]} to {n_studies[-1]}"
        titled(fig, f"Recovery of a known loss gap: {counts} fresh studies a line, {title}", size=10)
        handles: list[Any] = [_series("rmse", name, 0).handle() for name in estimators]
        handles.append(
            Patch(color="0.88", label=f"{nominal - _BAND:.0%} to {min(nominal + _BAND, 1):.0%}", linewidth=0)
        )
        named(fig, [*handles, mark("bars: 2 Monte-Carlo se; 95% interval for coverage")])
    return fig


def _series(what: str, estimator: str, offset: float) -> Series:
    return Series(
        f"{what} {estimator}",
        f"{what}_lower {estimator}",
        f"{what}_upper {estimator}",
        label=ESTIMATOR_LABELS.get(estimator, estimator),
        marker=_MARKERS.get(estimator, "o"),
        colour=_COLOURS.get(estimator, _OURS_COLOUR),
        size=4.5,
        capsize=0,
        offset=offset,
    )
