"""The Provo Corpus's own table of predictability norms: one row per context and answer."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

import numpy as np

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.cloze.rows import ClozeRows, Parsed
from shannon_game.experiments.studies.parsing import Note, shown, some_of

__all__ = ["NORMS_FILE", "parse_norms"]

NORMS_FILE = "Provo_Corpus-Predictability_Norms.csv"
_OFF_TOTAL = "contexts whose counts do not sum to Total_Response_Count; the counts are used"
_COLUMNS = ("Text_ID", "Text", "Word_Number", "Word", "Response", "Response_Count")


def parse_norms(content: bytes, where: str) -> Parsed:
    """Read ``Provo_Corpus-Predictability_Norms.csv`` (OSF ``sjefs``).

    Needs the columns Text_ID, Text (the whole passage), Word_Number (of the word asked for), Word, Response and
    Response_Count; Total_Response_Count, where it is there, has to be the sum of the counts or the difference is
    noted. The context is the first Word_Number - 1 space-separated tokens of the passage.
    """
    notes: list[Note] = []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        notes.append(Note("the table is not UTF-8; read as Windows-1252", 1))
    if "\0" in text:
        raise InputError(f"has {text.count(chr(0)):,} NUL bytes, which no table has; it is damaged", source=where)
    rows = ClozeRows()
    items: dict[tuple[str, int], int] = {}
    totals: dict[int, int] = {}
    sums: dict[int, int] = {}
    blank = mismatched = 0
    for line, row in _rows(text, where):
        key = (row["Text_ID"].strip(), _whole(row["Word_Number"], where, line, "Word_Number"))
        tokens = re.split(" +", row["Text"].strip())
        if key not in items:
            if not 2 <= key[1] <= len(tokens) + 1:
                problem = f"line {line}: is {key[1]}, but the passage has {len(tokens)} words"
                raise InputError(problem, source=where, field="Word_Number")
            items[key] = len(items)
            word = row["Word"].strip()
            printed = tokens[key[1] - 1] if key[1] <= len(tokens) else ""
            same = re.sub(r"\W", "", word).lower() == re.sub(r"\W", "", printed).lower()
            mismatched += not same
            for name, value in zip(
                ("text_id", "word_num", "context", "target_word"),
                (*key, " ".join(tokens[: key[1] - 1]), printed if same else word),
                strict=True,
            ):
                rows.column(name).append(value)
        item = items[key]
        answer = row["Response"]
        blank += not answer.strip()
        count = _whole(row["Response_Count"], where, line, "Response_Count")
        sums[item] = sums.get(item, 0) + count
        if row.get("Total_Response_Count"):
            totals[item] = _whole(row["Total_Response_Count"], where, line, "Total_Response_Count")
        for name, value in zip(
            ("response_item", "response_word", "response_count"), (item, rows.word(answer), count), strict=True
        ):
            rows.column(name).append(value)
    if not items:
        raise InputError("holds no row", source=where)
    notes.append(Note(f"contexts, from {len({text_id for text_id, _ in items})} passages", len(items)))
    if blank:
        notes.append(Note("blank answers, kept as blank strings that no analysis counts as a word", blank))
    off = sum(sums[item] != total for item, total in totals.items())
    if off:
        notes.append(Note(_OFF_TOTAL, off, "warning"))
    if mismatched:
        text = "contexts where Word is not the token of Text at Word_Number; Word is taken as the target"
        notes.append(Note(text, mismatched, "warning"))
    arrays = rows.arrays()
    arrays["item"] = np.arange(len(items))
    return Parsed(arrays, {}, notes)


def _rows(text: str, where: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Line and cells of every row."""
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        names = list(reader.fieldnames or ())
        wrong = [name for name in _COLUMNS if names.count(name) != 1]
        if wrong:
            problem = "there is more than one column" if wrong[0] in names else "has no column"
            raise InputError(f"{problem} {', '.join(wrong)}; found: {some_of(names, 20)}", source=where)
        for row in reader:
            if None in row or None in row.values():
                extra = len(row.get(None, ()))
                cells = len(names) + extra - list(row.values()).count(None)
                problem = f"line {reader.line_num}: has {cells} cells, the header has {len(names)}"
                raise InputError(problem, source=where)
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"line {reader.line_num + 1}: {error}", source=where) from None


def _whole(value: str, where: str, line: int, column: str) -> int:
    found = re.fullmatch(r"\s*(\d{1,9})(?:\.0*)?\s*", value, re.ASCII)
    if found is None:
        raise InputError(f"line {line}: is {shown(value)}, should be a whole number", source=where, field=column)
    return int(found[1])
