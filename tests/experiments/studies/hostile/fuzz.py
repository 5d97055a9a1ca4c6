"""Changes of small tables by chance, each with what a right reading of it is; a case has a number that repeats it."""

from __future__ import annotations

import codecs
import csv
import gzip
import random
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

from tests.experiments.studies.hostile.tables import Kind, Rows, written

READ, REFUSE, EITHER = "read", "refuse", "either"


@dataclass(frozen=True)
class Changed:
    """A changed table, as rows, bytes, a DataFrame, or what makes a path of it; and the tables that it may mean.

    A reading that is told needs a note that the table as it was does not have. Nothing to mean: it has to be refused.
    """

    fed: Rows | bytes | pd.DataFrame | Callable[[Path], Path]
    means: tuple[tuple[Rows, bool], ...] = ()
    must: str = EITHER
    settings: dict[str, Any] = field(default_factory=dict)
    name: str = "t.csv"


Change = Callable[[random.Random, Kind, Rows], Changed | None]
"""None where there is nothing to change."""


def as_text(fed: Rows, *means: tuple[Rows, bool], must: str = EITHER, **settings: Any) -> Changed:
    return Changed(fed, means, must, settings)


def plainly(fed: Rows) -> Changed:
    """Right is what the strict reader makes of the table."""
    return as_text(fed, (fed, False))


def of_column(rows: Rows, name: str, change: Callable[[str], str], at: range | list[int] | None = None) -> Rows:
    made, column = [list(row) for row in rows], rows[0].index(name)
    for row in range(1, len(rows)) if at is None else at:
        made[row][column] = change(made[row][column])
    return made


def a_row(rng: random.Random, rows: Rows) -> list[int]:
    return [rng.randrange(1, len(rows))]


def numbers_of(kind: Kind) -> tuple[str, ...]:
    return (*kind.whole, *kind.real)


# ------------------------------------------------------------------------------------------------- cells

MARKS: dict[str, Callable[[str], str]] = {
    "a space": lambda text: text + " ",
    "a no-break space": lambda text: text + "\u00a0",
    "a zero width": lambda text: text[:1] + "\u200b" + text[1:],
    "a byte order mark": lambda text: "\ufeff" + text,
    "a direction": lambda text: "\u200e" + text + "\u202c",
    "letters apart": lambda text: unicodedata.normalize("NFD", text),
    "a line end": lambda text: text + "\n",
}


def marked(mark: Callable[[str], str], *, names: bool) -> Change:
    """A name, or a word, spelt so that nobody sees a difference; a word may stay another, a name not."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        if not names and not kind.words:
            return None
        fed = of_column(rows, rng.choice(kind.ids if names else kind.words), mark, a_row(rng, rows))
        if names:
            return as_text(fed, (rows, fed != rows))
        # tokens of language models are what they are
        told = kind.truth(fed) != kind.truth(rows) and kind.ids[0] not in ("item", "model")
        return as_text(fed, (rows, told), (fed, told))

    return change


def emptied(value: str) -> Change:
    return lambda rng, kind, rows: plainly(of_column(rows, rng.choice(rows[0]), lambda text: value, a_row(rng, rows)))


def dropped(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
    """The setting that leaves answers with an empty cell out."""
    name, (at,) = rng.choice(rows[0]), a_row(rng, rows)
    fed, kept = of_column(rows, name, lambda text: "", [at]), [*rows[:at], *rows[at + 1 :]]
    if rows[0][-1] == "guess" or (rows[0][-1] == "report" and name in ("participant", "report")):
        return as_text(fed, (kept, True), must=READ, missing="drop")
    if rows[0][-1] == "stake" and name not in ("participant", "item"):
        # the whole answer goes
        return as_text(fed, ([row for row in rows if row[:2] != rows[at][:2]], True), must=READ, missing="drop")
    return None


def shifted(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    """A cell is missing and those after it stand one to the left."""
    fed, (at,) = [list(row) for row in rows], a_row(rng, rows)
    del fed[at][rng.randrange(len(rows[0]))]
    fed[at] += rng.choice(([], [""]))
    return plainly(fed)


# ------------------------------------------------------------------------------------------------- rows and columns


def turned(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    order = rng.sample(range(len(rows[0])), len(rows[0]))
    return as_text([[row[at] for at in order] for row in rows], (rows, False), must=READ)


def partly_twice(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    again = rng.sample(rows[1:], rng.randint(1, len(rows) - 2))
    fed = rng.choice(([*rows, *again], [rows[0], *again, *rows[1:]]))
    return as_text(fed, (fed, True))


def renamed(rename: Callable[[str], str]) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        fed, at = [list(row) for row in rows], rng.randrange(len(rows[0]))
        fed[0][at] = rename(fed[0][at])
        return as_text(fed, (rows, False), (fed, False))

    return change


def without_column(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
    at = rng.randrange(len(rows[0]))
    # a table of answers is one without these, and states other things
    if rows[0][0] == "who" or (at == len(rows[0]) - 1 and rows[0][at] in ("participant", "count", "proportion")):
        return None
    return as_text([[*row[:at], *row[at + 1 :]] for row in rows])


def with_column(name: str) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        at = rng.randint(0, len(rows[0]))
        made = (name, *(rng.choice(("", "x", "7", "nan")) for _ in rows[1:]))
        return as_text([[*row[:at], cell, *row[at:]] for row, cell in zip(rows, made, strict=True)], (rows, False))

    return change


def empty_rows(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    at = rng.randint(1, len(rows))
    return as_text([*rows[:at], *[[""] * len(rows[0])] * rng.randint(1, 3), *rows[at:]], (rows, False))


# ------------------------------------------------------------------------------------------------- files


def of_bytes(change: Callable[[random.Random, bytes, int], bytes]) -> Change:
    """Bytes by chance at a place: right is what stands there in UTF-8, or with a note in the encoding of Windows."""

    def make(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        content = written(rows).encode()
        fed = change(rng, content, rng.randrange(len(content)))
        return Changed(fed, tuple(readings(fed)))

    return make


def readings(content: bytes) -> Iterator[tuple[Rows, bool]]:
    for encoding, strict in ((encoding, strict) for encoding in ("utf-8", "cp1252") for strict in (True, False)):
        text = content.removeprefix(codecs.BOM_UTF8).decode(encoding, errors="replace")
        try:
            rows = [row for row in csv.reader(StringIO(text, newline=""), strict=strict) if any(row)]
        except csv.Error:
            continue
        yield rows, encoding == "cp1252" or not strict
        yield [[cell.strip() for cell in row] for row in rows], True


def as_file(change: Callable[[Rows], bytes | str], *, must: str = EITHER, name: str = "t.csv") -> Change:
    """The same table in other bytes."""

    def make(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        fed = change(rows)
        return Changed(fed.encode() if isinstance(fed, str) else fed, ((rows, False),), must, name=name)

    return make


def packed(rows: Rows) -> bytes:
    return gzip.compress(written(rows).encode())


BYTES: dict[str, Change] = {
    "a bad byte": of_bytes(lambda rng, c, at: c[:at] + bytes([rng.randrange(128, 256)]) + c[at:]),
    "a changed byte": of_bytes(lambda rng, c, at: c[:at] + bytes([rng.randrange(256)]) + c[at + 1 :]),
    "a null": of_bytes(lambda rng, c, at: c[:at] + b"\0" + c[at:]),
    "a quotation mark": of_bytes(lambda rng, c, at: c[:at] + b'"' + c[at:]),
    "a comma": of_bytes(lambda rng, c, at: c[:at] + b"," + c[at:]),
    "a line end": of_bytes(lambda rng, c, at: c[:at] + b"\n" + c[at:]),
    "cut off": of_bytes(lambda rng, c, at: c[:at]),
    "a stretch twice": of_bytes(lambda rng, c, at: c[:at] + c[max(0, at - rng.randint(2, 40)) :]),
    "quoted": as_file(lambda rows: written(rows, quoting=csv.QUOTE_ALL), must=READ),
    **{f"separated by {sign!r}": as_file(lambda rows, sign=sign: written(rows, sign), must=READ) for sign in ";\t|"},
    "of Windows": as_file(lambda rows: written(rows, end="\r\n"), must=READ),
    "with a mark": as_file(lambda rows: "\ufeff" + written(rows), must=READ),
    "UTF-16": as_file(lambda rows: written(rows, "\t").encode("utf-16"), must=READ),
    "UTF-16 without mark": as_file(lambda rows: written(rows).encode("utf-16-le")),
    "cp1252": as_file(lambda rows: written(rows).encode("cp1252")),
    "lines of separators": as_file(lambda rows: written([[*row, "", ""] for row in rows]) + ",,\n" * 3),
    "a title": as_file(lambda rows: "Study of words\n\n" + written(rows)),
    "names of rows": as_file(lambda rows: written([rows[0], *([str(n), *row] for n, row in enumerate(rows[1:]))])),
    "packed": as_file(packed, must=READ, name="t.csv.gz"),
    "packed and damaged": as_file(lambda rows: packed(rows)[:-9] + b"\xa5" + packed(rows)[-8:], name="t.csv.gz"),
    "said to be Parquet": as_file(written, must=REFUSE, name="t.parquet"),
}


def decimal_commas(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    fed = rows
    for name in kind.real:
        fed = of_column(fed, name, lambda text: text.replace(".", ","))
    return Changed(written(fed, ";").encode(), ((rows, fed != rows),), READ)


# ------------------------------------------------------------------------------------------------- all of them

CHANGES: dict[str, dict[str, Change]] = {
    "names": {what: marked(how, names=True) for what, how in MARKS.items()},
    "words": {what: marked(how, names=False) for what, how in MARKS.items()},
    "cells": {
        **{f"emptied by {value!r}": emptied(value) for value in ("", " ", "\u00a0", "\u200b")},
        "left out": dropped,
        "shifted": shifted,
    },
    "rows": {
        "shuffled": lambda rng, kind, rows: as_text(
            [rows[0], *rng.sample(rows[1:], len(rows) - 1)], (rows, False), must=READ
        ),
        "twice": lambda rng, kind, rows: as_text([*rows, *rows[1:]], must=REFUSE),
        "partly twice": partly_twice,
        "empty": empty_rows,
    },
    "columns": {
        "shuffled": turned,
        **{form: renamed(form.format) for form in (" {} ", "\ufeff{}", "'{}'", "{}s")},
        "upper case": renamed(str.upper),
        "without one": without_column,
        **{f"with {name!r}": with_column(name) for name in ("remark", "", "Unnamed: 0")},
        "one twice": lambda rng, kind, rows: as_text([[*row, row[0]] for row in rows]),
    },
    "files": BYTES | {"decimal commas": decimal_commas},
}
