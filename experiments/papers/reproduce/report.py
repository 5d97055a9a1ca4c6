"""The report of ``+exp=reproduce`` in Markdown; ``html_page`` makes the page of it."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from shannon_game.experiments.harness.report import fill
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import markdown_plain, markdown_table
from shannon_game.experiments.papers.published_study import (
    DIFFERS,
    EXPLAINED,
    NOT_AVAILABLE,
    NOT_RUN,
    ORIGINS,
    PRINTED,
    READ,
    REPRODUCED,
    VERDICTS,
    WITHIN_TOLERANCE,
    decimals,
)
from shannon_game.experiments.papers.reproduce.parts import ADDED, DISPLAYS, PAPER_NOTES, PAPERS, PARTS, Display
from shannon_game.experiments.papers.reproduce.run import Outcome

# a longer table of values is folded, and what is not reproduced stands before it
_OPEN_ROWS = 45
_ALIKE_ROWS = 16

_COMPUTED = (REPRODUCED, WITHIN_TOLERANCE)
_AGREE = (*_COMPUTED, READ)
_SECTION = re.compile(r"^## ", re.MULTILINE)


def summary(table: pd.DataFrame, outcomes: Sequence[Outcome]) -> str:
    """Say how many of the values asked for were computed, read or not to be had, and what was not run."""
    asked = table[table["verdict"] != NOT_RUN]
    printed, counted, again = (asked[asked["origin"] == origin] for origin in ORIGINS)
    states = pd.Series([outcome.state for outcome in outcomes]).value_counts()
    differ = _n_with(printed, EXPLAINED, DIFFERS)
    without = len(printed) - _n_with(printed, *_AGREE, NOT_AVAILABLE) - differ
    said = [
        f"**Of {len(printed):,} values that the papers print, {_n_with(printed, *_COMPUTED):,} are computed from "
        f"responses or models and agree**, {_n_with(printed, READ):,} are read from the authors' stored results, "
        f"{_n_with(printed, NOT_AVAILABLE):,} are not available, and {differ:,} differ."
        + (f" {without:,} others have no value of ours." if without else ""),
        f"Printed twice, and counted once: {len(again):,}." if len(again) else "",
        f"Of {len(counted):,} that stand in the authors' files alone, {_n_with(counted, *_COMPUTED):,} are computed "
        f"and agree, and {_n_with(counted, READ):,} are read."
        if len(counted)
        else "",
        f"Not asked for: {len(table) - len(asked):,}." if len(asked) < len(table) else "",
        f"Parts: {', '.join(f'{number} {state}' for state, number in states.items())}.",
    ]
    return " ".join(filter(None, said))


def _n_with(values: pd.DataFrame, *verdicts: str) -> int:
    return int(values["verdict"].isin(verdicts).sum())


def report_body(table: pd.DataFrame, outcomes: Mapping[str, Outcome]) -> str:
    """Write everything between the summary and the settings."""
    present = list(dict.fromkeys(table["paper"]))
    unused: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        if not outcome.has_outputs:
            # one reason of several parts stands once
            reason = f"{outcome.state}: {outcome.message}".replace(f"[{name}]", "[NAME]")
            unused.setdefault(reason, []).append(f"`{name}`")
    return fill(
        "report",
        Path(__file__).parent,
        counts=_counts(table),
        papers=sorted(present, key=lambda name: [*PAPERS, name].index(name)),
        titles=PAPERS,
        notes=PAPER_NOTES,
        displays=partial(_displays, table),
        outcomes=defaultdict(lambda: None, outcomes),
        figures=_figures,
        additions=[each for each in ADDED if PARTS[each.part].paper in present],
        said=_summary_of,
        n_parts=len(PARTS),
        parts=_parts(outcomes),
        unused=unused,
    ).strip()


def _counts(table: pd.DataFrame) -> str:
    by_paper = pd.crosstab(table["verdict"], table["paper"], margins=True, margins_name="all")
    by_origin = pd.crosstab(table["verdict"], table["origin"], margins=True, margins_name="all")
    found = by_paper.join(by_origin.drop(columns="all").reindex(columns=ORIGINS, fill_value=0))
    rows = [name for name in (*VERDICTS, "all") if name in found.index]
    return markdown_table(found.loc[rows, [*dict.fromkeys(table["paper"]), *ORIGINS, "all"]].reset_index())


def _displays(table: pd.DataFrame, paper: str) -> list[tuple[Display, str]]:
    """Places of a paper with their values: those that the report describes, then all others of the table."""
    values = table[table["paper"] == paper]
    displays = {display.where: display for display in DISPLAYS if display.paper == paper}
    places = [*displays, *(where for where in dict.fromkeys(values["where"]) if where not in displays)]
    found = [displays.get(where) or Display(paper, where, where) for where in places]
    return [(one, "\n\n".join(_values(values[values["where"] == one.where], folded=one.folded))) for one in found]


def _figures(outcome: Outcome | None, names: Sequence[str]) -> list[tuple[str, str]]:
    if outcome is None or not outcome.has_outputs:
        return []
    folder = outcome.planned.folder
    place, pages = f"{folder.parent.name}/{folder.name}/figures", folder / "figures"
    found = [path for name in names for path in sorted(pages.glob(f"{name}.png"), key=lambda at: at.stat().st_mtime_ns)]
    return [(path.stem.replace("_", " "), f"{place}/{path.name}") for path in found]


def _values(values: pd.DataFrame, *, folded: bool) -> list[str]:
    if values.empty or (len(values) <= _OPEN_ROWS and not folded):
        return _table(values) if len(values) else []
    other = values[~values["verdict"].isin(_AGREE)]
    # of many values with one verdict and reason, one stands for all
    alike = other.drop_duplicates(["verdict", "reason"]) if len(other) > _ALIKE_ROWS else other
    said = f"{len(values)} values, {len(other)} of them without agreement" + (
        ", one of each kind:" if len(alike) else "."
    )
    everything = [f"<details><summary>All {len(values)} values</summary>", *_table(values), "</details>"]
    return [said, *(_table(alike) if len(alike) else []), *everything]


def _table(values: pd.DataFrame) -> list[str]:
    """Values for a reader, ours with two digits more than are printed; reasons stand once, below."""
    reasons = [text for text in dict.fromkeys(values["reason"]) if text]
    rows = [
        {
            "quantity": row.quantity if row.unit in row.quantity else f"{row.quantity} [{row.unit}]",
            "published": row.published,
            "ours": _number(row.ours, row.published),
            "difference": _difference(row.difference),
            "verdict": row.verdict,
            "origin": row.source if row.origin == PRINTED else row.origin,
            "note": str(reasons.index(row.reason) + 1) if row.reason else "",
        }
        for row in rows_of(values)
    ]
    shown = pd.DataFrame(rows)
    # columns that say nothing about any of these values
    empty = [name for name in ("ours", "difference", "note") if not shown[name].any()]
    numbered = [f"{number}. {markdown_plain(text)}." for number, text in enumerate(reasons, start=1)]
    laid_out = markdown_table(shown.drop(columns=empty), right=("published", "ours", "difference"))
    return [laid_out, *(["\n".join(numbered)] if numbered else [])]


def _difference(value: float) -> str:
    if np.isnan(value) or value == 0:
        return "0" if value == 0 else ""
    return f"{value:+.6g}" if abs(value) >= 1 else f"{value:+.1e}"


def _number(ours: float, printed: str) -> str:
    if np.isnan(ours):
        return ""
    places = decimals(printed)
    return f"{ours:.0f}" if places == 0 and ours == round(ours) else f"{ours:.{places + 2}f}"


def _summary_of(outcome: Outcome) -> str:
    """What a part says in its own report before its first section; its headings would get in the way of ours."""
    report = (outcome.planned.folder / "report.md").read_text(encoding="utf-8")
    said = _SECTION.split(report, maxsplit=1)[0].partition("\n")[2].strip()
    return re.sub(r"^#+ (.*)$", r"**\1**", said, flags=re.MULTILINE)


def _parts(outcomes: Mapping[str, Outcome]) -> str:
    rows = [
        {
            "part": f"`{name}`",
            "state": outcome.state + (", did not converge" if outcome.gate_failed else ""),
            "seconds": "" if np.isnan(outcome.seconds) else f"{outcome.seconds:.1f}",
            "command": f"`shannon-game {shlex.join(outcome.planned.overrides)}`",
        }
        for name, outcome in outcomes.items()
    ]
    return markdown_table(pd.DataFrame(rows), plain=False)
