"""Regions of interest of texts: between delimiters, the text in a column, or a span of characters."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

from shannon_game.estimators.messages import Set
from shannon_game.estimators.word_spans import has_unspaced
from shannon_game.experiments.studies.documents.tokens import Document
from shannon_game.experiments.studies.plain_table import Table

Spans = tuple[tuple[int, int], ...]


def is_delimiter(regions: object) -> bool:
    """Whether a setting is a mark between regions, and no name of a column."""
    return isinstance(regions, str) and not any(character.isalnum() or character.isspace() for character in regions)


def delimited(document: Document, mark: str, notes: Counter[str]) -> Document:
    """Take the delimiters out of a text, and keep what stands between them as its regions."""
    text, spans = "", []
    for part in document.text.split(mark):
        edge = text[-1:] + part[:1]
        if len(edge) == 2 and not any(map(str.isspace, edge)) and not has_unspaced(edge):
            text += " "
            notes[f"delimiters {mark!r} without white space beside them, made a space"] += 1
        start = len(text) + len(part) - len(part.lstrip())
        text += part
        if part.strip():
            spans.append((start, len(text.rstrip())))
    return replace(document, text=text, regions=tuple(spans) if mark in document.text else ())


def regions_of_columns(table: Table, texts: list[str], columns: str | tuple[str, str]) -> list[Spans]:
    """Regions that a table names: one per row, none where the cell is empty."""
    names = (columns,) if isinstance(columns, str) else columns
    for name in names:
        table.check_columns({name: name}, f"{Set('study.regions', 'NAME')} says which column it is")
    if isinstance(columns, str):
        wanted = table.texts(columns)
        return [
            _found(table, row, text, str(part), columns)
            for row, (text, part) in enumerate(zip(texts, wanted, strict=True))
        ]
    starts, stops = (table.numbers(name, empty=True, kind="whole") for name in columns)
    return [_span(table, row, text, (starts[row], stops[row]), columns) for row, text in enumerate(texts)]


def _found(table: Table, row: int, text: str, part: str, column: str) -> Spans:
    if not part:
        return ()
    pattern = re.escape(part) if has_unspaced(part) else rf"(?<!\w){re.escape(part)}(?!\w)"
    found = [one.span() for one in re.finditer(pattern, text)]
    if len(found) != 1:
        problem = f"is {part!r} in {table.where(row)}, which its text holds {len(found)} times, should hold once"
        raise table.error(
            f"{problem}; give {Set('study.regions', ['FIRST', 'STOP'])}, two columns of character numbers", column
        )
    return (found[0],)


def _span(table: Table, row: int, text: str, ends: tuple[float, float], columns: tuple[str, str]) -> Spans:
    start, stop = ends
    if math.isnan(start) and math.isnan(stop):
        return ()
    if not (0 <= start < stop <= len(text)) or not text[int(start) : int(stop)].strip():
        problem = f"is {start:g} with {columns[1]} {stop:g} in {table.where(row)}, should be characters of the text"
        raise table.error(f"{problem} (0 to {len(text)}) that are not all white space", columns[0])
    return ((int(start), int(stop)),)
