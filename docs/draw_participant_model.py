"""Draw ``docs/figures/participant_model.png``: the participant model as a graph, with its plates.

python docs/draw_participant_model.py
"""

from __future__ import annotations

import re
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyBboxPatch

FIGURE = Path(__file__).parent / "figures" / "participant_model.png"
LATENT, OBSERVED, GIVEN, DERIVED = "#ffffff", "#c9d9ea", "#eeeeee", "#ffffff"
NODES = {
    "words": (2.4, 6.0, "law of words:\nplace, spread, sides", LATENT),
    "targets": (5.75, 6.0, "law of targets:\nmean, slope, spread", LATENT),
    "e": (2.4, 4.1, "$e_x$", LATENT),
    "t": (5.75, 4.1, "$e_y$", LATENT),
    "g": (0.75, 4.1, "$g(x)$", GIVEN),
    "gy": (7.1, 4.1, "$g(y)$", GIVEN),
    "h": (2.4, 2.6, "$h(x) = g(x)\\,e^{e_x} / Z$", DERIVED),
    "answers": (2.4, 1.0, "free answers", OBSERVED),
    "gap": (5.75, 2.6, "gap $\\ln Z - e_y$", DERIVED),
    "report": (9.0, 2.6, "report", OBSERVED),
    "people": (10.6, 4.35, "slope$_p$, bias$_p$, noise$_p$", LATENT),
    "k0": (9.0, 6.0, "$k_0$", LATENT),
    "sd": (11.2, 6.0, "spreads over people,\ntypical noise", LATENT),
    "lapse": (9.0, 0.8, "lapse, half", LATENT),
}
ARROWS = (
    *(("words", "e"), ("targets", "t"), ("g", "e"), ("gy", "t"), ("e", "h"), ("h", "answers"), ("h", "gap")),
    *(("t", "gap"), ("e", "report"), ("t", "report"), ("people", "report"), ("k0", "people"), ("sd", "people")),
    ("lapse", "report"),
)
PLATES = (
    (0.0, 0.1, 7.7, 5.15, "items"),
    (0.12, 1.75, 3.95, 3.0, "words of the vocabulary"),
    (8.15, 1.85, 1.7, 1.25, "reports"),
    (8.6, 3.6, 4.0, 1.25, "participants"),
)


def size(label: str) -> tuple[float, float]:
    """Width and height of a node."""
    lines = label.split("\n")
    letters = max(len(re.sub(r"\\[,a-z]?|[${}^_]", "", line)) for line in lines)
    return max(0.95, 0.115 * letters + 0.35), 0.62 if len(lines) == 1 else 0.95


def node(axes: Axes, left: float, bottom: float, label: str, colour: str) -> Ellipse | FancyBboxPatch:
    """Draw a variable: an ellipse, or a box where it follows from others."""
    width, height = size(label)
    if label.startswith(("$h", "gap")):
        corner = (left - width / 2, bottom - height / 2)
        shape = FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=.08", fc=colour, ec="#444444")
    else:
        shape = Ellipse((left, bottom), width * 1.15, height, fc=colour, ec="#444444")
    shape.set_zorder(3)
    axes.add_patch(shape)
    axes.text(left, bottom, label, ha="center", va="center", fontsize=10, zorder=4, linespacing=1.1)
    return shape


def model_figure() -> Figure:
    """Draw the graph."""
    figure = Figure(figsize=(10.4, 5.4))
    axes = figure.add_axes((0, 0, 1, 1))
    for left, bottom, width, height, name in PLATES:
        axes.add_patch(FancyBboxPatch((left, bottom), width, height, boxstyle="round,pad=0", fc="none", ec="#999999"))
        axes.text(left + 0.1, bottom + 0.08, name, fontsize=9, color="#666666", va="bottom")
    shapes = {name: node(axes, *of) for name, of in NODES.items()}
    for start, end in ARROWS:
        style = {"arrowstyle": "-|>", "color": "#444444", "patchA": shapes[start], "patchB": shapes[end]}
        axes.annotate("", NODES[end][:2], NODES[start][:2], arrowprops=style | {"shrinkA": 0, "shrinkB": 0})
    axes.set(xlim=(-0.2, 12.9), ylim=(-0.1, 6.7))
    axes.set_aspect("equal")
    axes.set_axis_off()
    return figure


if __name__ == "__main__":
    model_figure().savefig(FIGURE, dpi=110)
