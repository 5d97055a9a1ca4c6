"""One sheet of a run's figures, each below what the paper's figure of that number shows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.image as mpimg
import numpy as np
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from shannon_game.experiments.harness.figures import new_figure
from shannon_game.experiments.harness.plots import styled

_COLUMNS, _WIDTH, _CAPTION, _LETTERS = 3, 5.6, 0.62, 80


@styled
def figure_sheet(rows: Sequence[Mapping[str, str]], folder: Path) -> Figure:
    """Draw the first image of every figure of a paper; one that is not drawn has its reason."""
    first = list({(row["paper"], row["figure"]): row for row in reversed(rows)}.values())[::-1]
    images = [mpimg.imread(folder / row["file"]) if row["file"].endswith(".png") else None for row in first]
    shapes = [(0, 1) if image is None else image.shape[:2] for image in images]
    tall = [min(_WIDTH * height / width, 1.6 * _WIDTH) for height, width in shapes]
    heights = [max(tall[at : at + _COLUMNS]) + _CAPTION for at in range(0, len(first), _COLUMNS)]
    fig = new_figure(_COLUMNS * _WIDTH, sum(heights))
    fig.set_layout_engine("none")
    grid = GridSpec(len(heights), _COLUMNS, fig, 0.01, 0.01, 0.99, 0.99, 0.03, 0.0, height_ratios=heights)
    for at, (row, image, own) in enumerate(zip(first, images, tall, strict=True)):
        axes = fig.add_subplot(grid[at // _COLUMNS, at % _COLUMNS])
        axes.set_axis_off()
        said = f"{row['paper']}, {row['figure']}: {row['caption']}" + (f". Here: {row['note']}" if row["note"] else "")
        axes.text(0, 1, textwrap.fill(said, _LETTERS), va="top", fontsize=9)
        if image is not None:
            height = heights[at // _COLUMNS]
            wide = np.array(own / image.shape[0] * image.shape[1] / _WIDTH).item()
            inset = axes.inset_axes((0, 1 - (_CAPTION + own) / height, wide, own / height))
            inset.imshow(image, aspect="auto", interpolation="lanczos")
            inset.set_axis_off()
    return fig
