"""The page about the architecture names every room, and only rooms that are there."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import script
from tests.experiments.command import ROOT
from tests.test_imports import FLOORS

PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def rooms(floor: str) -> set[str]:
    """Folders and modules of a floor."""
    folder = ROOT / floor
    folders = {path.name for path in folder.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    return folders | {path.stem for path in folder.glob("*.py")} - {"__init__"}


def named(floor: str) -> set[str]:
    """Rooms in the first column of the floor's table."""
    section = PAGE.split(f"### {floor}:")[1].split("###")[0]
    cells = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
    return {name.strip("/") for cell in cells for name in re.findall(r"`([\w/]+)`", cell)}


@pytest.mark.parametrize("floor", FLOORS)
def test_every_room_is_on_the_page_and_no_other(floor: str) -> None:
    assert named(floor) == rooms(floor)


def test_every_path_on_a_page_is_there() -> None:
    path_in = re.compile(
        r"`(?:python |pytest -m slow |pytest )?((?:estimators|models|inference|experiments|conf|docs|tests)/[\w/.]+)"
    )
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    paths = {path.rstrip(".") for page in pages for path in path_in.findall(page.read_text(encoding="utf-8"))}
    # KIND and NAME stand for any; the reference is built
    paths = {path for path in paths if not re.search("KIND|NAME|_build", path)}
    assert len(paths) > 30
    assert {path for path in paths if not (ROOT / path).exists()} == set()


def test_the_picture_is_of_these_rooms() -> None:
    figure = script("draw_architecture").architecture_figure()
    drawn = "\n".join(text.get_text() for text in figure.axes[0].texts)
    assert {room for floor in FLOORS for room in rooms(floor) if room not in drawn} == set()
