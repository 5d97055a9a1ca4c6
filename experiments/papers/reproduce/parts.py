"""The parts of ``+exp=reproduce``: which experiments, with which settings, on which data, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True)
class DataSource:
    """Public files that parts need: `folder` lies below ``data.root``, with one of `any_of` in it."""

    study: str
    folder: str
    any_of: Sequence[str]
    downloads: bool
    """Whether the study can get the files itself."""
    what: str


@dataclass(frozen=True)
class PaperPart:
    """One experiment with fixed settings, run in a folder of its own like a job of a sweep."""

    name: str
    group: str
    """A key of :data:`DATA`."""
    experiment: str
    settings: Sequence[str] = ()
    bayes: bool = False
    """Samples from a posterior: minutes, and run only with ``experiment.bayes=true``."""
    drawn: bool = False
    """Only draws a figure of the paper: run with ``experiment.figures=true``."""
    seconds: float = 6.0
    """On one core; only the proportions count, to say how much of the work is left."""

    @property
    def paper(self) -> str:
        """The paper that it is of, a key of :data:`PAPERS`."""
        return DATA[self.group].folder


@dataclass(frozen=True)
class Display:
    """One published figure, table or section; `where` as in the tables of published values."""

    paper: str
    where: str
    title: str
    part: str = ""
    """The part that makes our figures; empty where nothing public allows one."""
    figures: Sequence[str] = ()
    text: str = ""
    folded: bool = False
    """Show only what is not reproduced, the whole table on demand."""


_READ: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))

DATA: Mapping[str, DataSource] = {name: DataSource(**row) for name, row in _READ["data"].items()}
"""Group of parts -> the data that they read. A group's name may stand in ``experiment.parts``."""
PARTS: Mapping[str, PaperPart] = {name: PaperPart(name, **row) for name, row in _READ["parts"].items()}
"""Every part by its name."""
PAPERS: Mapping[str, str] = {name: row["title"] for name, row in _READ["papers"].items()}
"""Short name of a paper in the tables of published values -> its title."""
PAPER_NOTES: Mapping[str, str] = {name: row["note"] for name, row in _READ["papers"].items()}
"""Short name of a paper -> what its published values are."""
DISPLAYS = tuple(Display(paper, **row) for paper, rows in _READ["displays"].items() for row in rows)
"""Published figures and tables, in the order of the report. Places that only the tables of values name follow them."""
PAPER_FIGURES: Mapping[str, Mapping[str, Mapping[str, str]]] = _READ["figures"]
"""Figures of each paper: the part that draws it, the name of ours there, and how it differs or why there is none."""
ADDED = tuple(Display("", "", **{"figures": ["*"], **row}) for row in _READ["added"])
"""What the toolkit adds: the second half of the report."""
