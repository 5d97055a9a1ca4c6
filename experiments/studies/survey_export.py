"""Rows of exports that are no answers: what Qualtrics, SurveyMonkey and SoSci write below the header, Gorilla's last.

Qualtrics has a row of questions and one of ``{"ImportId": ...}``; older exports, with columns V1 to V10, only the
questions; researchers delete either. The row of questions is told without the other by the platform's own columns:
under StartDate stands "Start Date".
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from shannon_game.experiments.studies.plain_table import Table, cell_text

_ID = re.compile(r"\s*\{[\s'\"]*ImportId\b")
# the platform's columns, but for letters' case and signs
_OWN = re.compile(
    r"(start|end|recorded)date|status|ipaddress|progress|durationinseconds|finished|responseid|responseset|userlanguage|"
    r"recipient(last|first)name|recipientemail|emailaddress|external(data)?reference|location(lat|long)itude|"
    r"distributionchannel"
)
_LABELS = {"status": "responsetype", "externalreference": "externaldatareference"}
_LEGACY = re.compile(r"v(?:[1-9]|10)")
# as text, or as the sum of 1 (preview), 2 (test), 4 (imported), 8 (spam) and 16 (offline)
_NOT_PEOPLE = {"surveypreview", "surveytest", "spam", "previewspam", "preview", "1", "2", "8", "9", "12", "17"}
_UNFINISHED = {"false", "0"}


def without_survey_headers(table: Table) -> Table:
    """Take the two rows below the header of a survey's export as what they are; other tables stay as they are."""
    first = [[cell_text(value) for value in table.cells.iloc[row]] for row in range(min(2, len(table.cells)))]
    if "Event Index" in table.cells and (ends := table.cells["Event Index"] == "END OF FILE").any():
        table.note("lines of Gorilla at the end of a file, left out", int(ends.sum()))
        kept = table.take(np.flatnonzero(~ends))
        return replace(kept, cells=kept.cells.reset_index(drop=True))
    if first and (own := _other_labels(table.names, first[0])):
        table.note(f"further header lines of {own}, not taken for answers", 1)
        labels = dict(zip(table.names, first[0] if own == "SoSci Survey" else table.names, strict=True))
        cells = table.cells.iloc[1:].reset_index(drop=True)
        return replace(table, cells=cells, place=table.place[1:], labels=labels)
    has_ids = [_is_ids(row) for row in first]
    if any(has_ids):
        n = has_ids.index(True) + 1
        questions = None if n == 1 else first[0]
    elif first and _is_questions(table.names, first[0]):
        n, questions = 1, first[0]
    else:
        return table
    labels = {} if questions is None else dict(zip(table.names, questions, strict=True))
    table.note("further header lines of a Qualtrics export, not taken for answers", n)
    kept = replace(table, cells=table.cells.iloc[n:].reset_index(drop=True), place=table.place[n:], labels=labels)
    for what, values, text in (
        ("status", _NOT_PEOPLE, "rows that Qualtrics marks as preview, test or spam (Status), kept; delete them"),
        ("distributionchannel", {"preview", "test"}, "rows of a preview (DistributionChannel), kept; delete them"),
        ("finished", _UNFINISHED, "rows of people who did not finish the survey (Finished), kept"),
    ):
        column = _column(kept, what)
        number = 0 if column is None else sum(_folded(cell) in values for cell in kept.texts(column).tolist())
        kept.note(text, number, "warning")
    return kept


def _other_labels(names: list[str], row: list[str]) -> str | None:
    """The platform whose second header line a row is: it names nobody, where every answer has a number."""
    if {"Respondent ID", "Collector ID"} <= set(names) and not row[names.index("Respondent ID")].strip():
        return "SurveyMonkey"
    if {"CASE", "QUESTNNR"} <= set(names) and not row[names.index("CASE")].strip().isdecimal():
        return "SoSci Survey"
    return None


def is_own_column(name: str) -> bool:
    """Whether the platform calls a column of its own so."""
    return _OWN.fullmatch(_folded(name)) is not None


def respondent_column(table: Table) -> str | None:
    """Name of the column in which the platform says who filled the survey in."""
    others = (name for name in ("Respondent ID", "CASE") if name in table.labels)
    return _column(table, "responseid") or next(others, None)


def _column(table: Table, what: str) -> str | None:
    for name in table.names:
        if _folded(name) == what or (_LEGACY.fullmatch(_folded(name)) and _folded(table.labels.get(name, "")) == what):
            return name
    return None


def _is_ids(row: list[str]) -> bool:
    filled = [cell for cell in row if cell.strip()]
    return 2 * sum(_ID.match(cell) is not None for cell in filled) > len(filled)


def _is_questions(names: list[str], row: list[str]) -> bool:
    """Whether every column of the platform holds its label; a second copy of the header is none."""
    own = [(_folded(name), _folded(cell)) for name, cell in zip(names, row, strict=True)]
    said = [
        _OWN.fullmatch(cell) is not None if _LEGACY.fullmatch(name) else cell in (name, _LABELS.get(name))
        for name, cell in own
        if _OWN.fullmatch(name) or (_LEGACY.fullmatch(name) and cell != "name")
    ]
    return row != names and bool(said) and all(said)


def _folded(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
