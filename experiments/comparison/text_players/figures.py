"""Figures of players that answer in text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison.stated import StatedBelief
from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.marks import light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import styled

_SAID_COLOUR, _LINE_COLOUR = "#0072B2", "#D55E00"
_COLUMNS = 3
_WIDEST = 20.0


@styled
def said_figure(panels: Mapping[str, tuple[FloatArray, FloatArray, StatedBelief]]) -> Figure:
    """What is said against what is believed, one panel per model and way."""
    n_columns = min(len(panels), _COLUMNS)
    n_rows = -(-len(panels) // n_columns)
    fig = new_figure(0.6 + 3.3 * n_columns, 0.9 + 2.9 * n_rows)
    for number, (name, (believed, said, compared)) in enumerate(panels.items()):
        axes = fig.add_subplot(n_rows, n_columns, number + 1)
        known = np.isfinite(believed) & np.isfinite(said)
        width = min(_WIDEST, 1.05 * float(np.abs(believed[known]).max()))
        height = min(_WIDEST, 1.15 * max(float(np.abs(said[known]).max()), 1.0))
        axes.plot(believed[known], said[known], ".", color=_SAID_COLOUR, alpha=0.35, markersize=4)
        axes.axline((0, 0), slope=1, color="0.55", linewidth=1)
        if np.isfinite(compared.slope):
            axes.axline((0, compared.intercept_nats), slope=compared.slope, color=_LINE_COLOUR, linewidth=1.4)
        axes.set(xlim=(-width, width), ylim=(-height, height), xlabel="log-odds believed, nats")
        light_grid(axes, "both")
        axes.set_title(f"{name}: slope {compared.slope:.2g},\nagreement {compared.agreement:.0%}", fontsize=9.5)
        if number % n_columns == 0:
            axes.set_ylabel("log-odds said, nats")
    titled(fig, "Do models say what they believe?")
    dots, line = mark("pair of tokens", _SAID_COLOUR, "."), mark("least squares", _LINE_COLOUR)
    named(fig, [dots, line, mark("said as believed", "0.6")])
    return fig
