"""Draw ``docs/figures/architecture.png``: floors, kinds of study and shared rooms, as the folders have them.

python docs/draw_architecture.py
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

ROOT = Path(__file__).parents[1]
KINDS = ("comparison", "cloze", "guesses", "rankings", "bets")
FLOORS = {
    "conf": "which settings differ",
    "experiments": "questions, figures, reports",
    "inference": "posteriors, language models",
    "models": "data in, PyMC model out",
    "estimators": "numbers from arrays",
}
COLOURS = {"kind": "#d9e8f5", "documents": "#d8efe3", "shared": "#f3ead3", "papers": "#f3dcd9", "conf": "#eeeeee"}
ABOVE = ("boards", "papers", "planning", "collect")
WIDTH, HEIGHT, LEFT, GAP = 1.35, 0.95, 2.9, 0.12
SHARED_LEFT = LEFT + (len(KINDS) + 1) * (WIDTH + GAP)
SHARED_WIDTH = 4.0


def rooms(floor: str) -> tuple[list[str], list[str]]:
    """List the folders of a floor that are kinds of study, and the other rooms: folders and public modules."""
    folder = ROOT / floor
    folders = {path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    kinds = [name for name in (*KINDS, "documents") if name in folders]
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return kinds, sorted(folders - set(kinds)) + sorted(modules)


def box(axes: Axes, left: float, bottom: float, width: float, text: str, *, colour: str) -> None:
    """Draw a room."""
    shape = FancyBboxPatch(
        (left, bottom), width, HEIGHT, boxstyle="round,pad=0,rounding_size=.08", fc=colour, ec="#666666"
    )
    axes.add_patch(shape)
    axes.text(left + width / 2, bottom + HEIGHT / 2, text, ha="center", va="center", fontsize=9, linespacing=1.35)


def wrapped(names: list[str], width: int) -> str:
    """Join names by commas, in lines of at most so many characters."""
    lines = [""]
    for name in names:
        piece = name if name == names[-1] else f"{name},"
        if lines[-1] and len(lines[-1]) + 1 + len(piece) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {piece}".strip()
    return "\n".join(lines)


def floor_of(axes: Axes, floor: str, bottom: float) -> None:
    """Draw a floor: its name, its kinds of study, its shared rooms."""
    axes.text(LEFT - 0.3, bottom + 0.62, floor, ha="right", va="center", fontsize=12, fontweight="bold")
    axes.text(LEFT - 0.3, bottom + 0.3, FLOORS[floor], ha="right", va="center", fontsize=8.5, color="#444444")
    if floor == "conf":
        folders = sorted(path.name for path in (ROOT / floor).iterdir() if path.is_dir() and any(path.glob("*.yaml")))
        width = SHARED_LEFT + SHARED_WIDTH - LEFT
        box(axes, LEFT, bottom, width, f"YAML without code: {', '.join(folders)}", colour=COLOURS["conf"])
        return
    kinds, shared = rooms(floor)
    if floor == "experiments":
        shared = ["studies (loaders, by kind)" if name == "studies" else name for name in shared if name not in ABOVE]
    for at, kind in enumerate((*KINDS, "documents")):
        if kind in kinds:
            colour = COLOURS["documents" if kind == "documents" else "kind"]
            box(axes, LEFT + at * (WIDTH + GAP), bottom, WIDTH, kind, colour=colour)
    box(axes, SHARED_LEFT, bottom, SHARED_WIDTH, wrapped(shared, 42), colour=COLOURS["shared"])


def architecture_figure() -> Figure:
    """Draw all floors, the rooms above the kinds above those of experiments."""
    figure = Figure(figsize=(11.4, 6.6), layout="constrained")
    axes = figure.add_subplot()
    levels = {"conf": 6.6, "experiments": 4.05, "inference": 2.7, "models": 1.35, "estimators": 0.0}
    for floor, bottom in levels.items():
        floor_of(axes, floor, bottom)
    above = (
        *("boards: models beside people", "papers: repeats three papers"),
        *("planning: which questions to ask", "collect: games in a browser"),
    )
    width = (SHARED_LEFT + SHARED_WIDTH - LEFT - (len(above) - 1) * GAP) / len(above)
    for at, what in enumerate(above):
        text = f"{what};\nmay import every kind"
        box(axes, LEFT + at * (width + GAP), 5.25, width, text, colour=COLOURS["papers"])
    for upper, lower in ((6.6, 5.0), (4.05, 3.65), (2.7, 2.3), (1.35, 0.95)):
        axes.annotate("", (0.35, lower), (0.35, upper), arrowprops={"arrowstyle": "-|>", "color": "#333333", "lw": 1.6})
    axes.text(0.12, 3.9, "imports", rotation=90, ha="center", va="center", fontsize=9)
    notes = (
        (LEFT + len(KINDS) * (WIDTH + GAP) / 2 - GAP / 2, "kinds of study: none imports another"),
        (LEFT + len(KINDS) * (WIDTH + GAP) + WIDTH / 2, "every kind may\nimport it"),
        (SHARED_LEFT + SHARED_WIDTH / 2, "shared rooms: they import no kind"),
    )
    for x, text in notes:
        axes.text(x, -0.3, text, ha="center", va="top", fontsize=9, style="italic")
    axes.set(xlim=(0, SHARED_LEFT + SHARED_WIDTH + 0.05), ylim=(-0.85, 7.65))
    axes.set_axis_off()
    return figure


if __name__ == "__main__":
    architecture_figure().savefig(ROOT / "docs/figures/architecture.png", dpi=130, metadata={"Software": None})
