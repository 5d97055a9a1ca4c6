"""Changes of small tables by chance, each with what a right reading of it is; a case has a number that repeats it."""

from __future__ import annotations

import codecs
import csv
import gzip
import random
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.experiments.studies.hostile.tables import Kind, Rows, frame, nine, written

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


def texts_of(kind: Kind) -> tuple[str, ...]:
    return (*kind.ids, *kind.words)


# ------------------------------------------------------------------------------------------------- cells

MARKS: dict[str, Callable[[str], str]] = {
    "a space": lambda text: text + " ",
    "a tab": lambda text: "\t" + text,
    "a no-break space": lambda text: text + "\u00a0",
    "a narrow space": lambda text: "\u202f" + text,
    "a zero width": lambda text: text[:1] + "\u200b" + text[1:],
    "a word joiner": lambda text: text[:1] + "\u2060" + text[1:],
    "a soft hyphen": lambda text: text[:1] + "\u00ad" + text[1:],
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


def alike(spell: Callable[[str], str], *, told: bool) -> Change:
    """Names that a reader can tell apart: they may be two, and case is told."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        name, at = rng.choice(kind.ids), a_row(rng, rows)
        fed, column = of_column(rows, name, spell, at), rows[0].index(name)
        both = [row[column] for row in rows].count(rows[at[0]][column]) > 1
        return as_text(fed, (fed, told and both and fed != rows), (rows, True))

    return change


SPELT: dict[str, Callable[[str], str]] = {
    "minus": lambda text: text.replace("-", "\u2212"),
    "dash": lambda text: text.replace("-", "\u2013"),
    "full width": lambda text: "".join(chr(ord(one) + 0xFEE0) for one in text),
    "Arabic digits": lambda text: "".join(chr(0x660 + int(one)) if one.isdigit() else one for one in text),
    "comma": lambda text: text.replace(".", ","),
    "exponent": lambda text: f"{float(text):.9e}",
    "plus": lambda text: text if text.startswith("-") else f"+{text}",
    "spaces": lambda text: f"  {text}\u00a0",
    "zeros": lambda text: f"{text}00" if "." in text else f"{text}.00",
    "three zeros": lambda text: f"{text}000" if "." in text else f"{text}.000",
    "no zero": lambda text: text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text,
    "brackets": lambda text: f"({text.removeprefix('-')})",
    **{
        form.replace("{}", "1"): form.format
        for form in ("'{}", '="{}"', "${}", "{} \u20ac", "{} chips", "{}*", "{}\u200b")
    },
}
NO_NUMBERS = (
    *("x", "0x1F", "1_0", "TRUE", "false", "2024-05-01", "5-May", "5.5.2024", "1/2", "\u00bd", "\u00b2", "nan", "NA"),
    *("inf", "-Infinity", "--1", "1 2", "12:30", "=1+1", "#REF!", "#N/A", "1e999", "1e", "e3", "1.2.3", "1,2,3", "0b1"),
    *("1..2", "..", "-", ".", "<1", "0-1", "1;2", "\u221e", "1e-3e2", "9" * 400, "\u4e94", "1\x002", "~1", "\ud83d"),
)


def spelt(how: Callable[[str], str], *, everywhere: bool = False, right: bool = True) -> Change:
    """Numbers as people and programs write them; or what is none."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        if not numbers_of(kind):
            return None
        fed = of_column(rows, rng.choice(numbers_of(kind)), how, None if everywhere else a_row(rng, rows))
        return as_text(fed, *([(rows, False)] if right else []))

    return change


def thousands(sign: str, *, everywhere: bool) -> Change:
    """12 stands there as 12,345, or as 12.000: a thousand times as much, or as much."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        names = [name for name in kind.whole if name in ("count", "position", "context_length")]
        if not names:
            return None
        name, at, end = rng.choice(names), None if everywhere else a_row(rng, rows), rng.choice(("345", "000"))
        large = of_column(rows, name, lambda text: text + end, at)
        # 0 is 0 either way
        means = [(large, kind.truth(large) != kind.truth(rows))]
        means += [(rows, not everywhere and means[0][1])] if end == "000" else []
        return as_text(of_column(rows, name, lambda text: text + sign + end, at), *means)

    return change


def scaled(factor: float, part: float, *, percent: bool | None = None) -> Change:
    """Part of the shares, or chips, on another scale; right only where all are, and the settings say so."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        if kind.scaled is None:
            return None
        chips = kind.scaled == "stake"
        times = 1 / factor if chips else factor
        # the rows of some people, contexts or answers, and not others: each has three
        at = list(range(1, round(part * (len(rows) - 1) / 3) * 3 + 1))
        fed = of_column(rows, kind.scaled, lambda text: nine(float(text) * times), at)
        settings = {"total": 1 if percent else 100} if chips else {"percent": bool(percent)}
        right = factor == 100 and part == 1 and percent is True
        means = [(rows, False)] if right else []
        return as_text(fed, *means, must=READ if right else REFUSE, **({} if percent is None else settings))

    return change


def signed(part: float) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        if kind.scaled in (None, "stake"):
            return None
        at = rng.sample(range(1, len(rows)), round(part * (len(rows) - 1)))
        fed = of_column(rows, str(kind.scaled), lambda text: f"{nine(100 * float(text))} %", at)
        return as_text(fed, (rows, False))

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


def moved(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    """A value of one column in another, or of another row."""
    fed, (at,) = [list(row) for row in rows], a_row(rng, rows)
    here, there = rng.sample(range(len(rows[0])), 2)
    how = rng.randrange(3)
    if how == 0:
        fed[at][here], fed[at][there] = fed[at][there], fed[at][here]
    else:
        fed[at][here] = fed[at][there] if how == 1 else rng.choice(rows[1:])[here]
    return plainly(fed)


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


def header_within(spell: Callable[[str], str] = str) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        at = rng.randint(1, len(rows))
        return as_text([*rows[:at], [spell(name) for name in rows[0]], *rows[at:]], (rows, True))

    return change


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


def only(n: int) -> Change:
    return lambda rng, kind, rows: plainly([rows[0], *rng.sample(rows[1:], n)])


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
    "a lost byte": of_bytes(lambda rng, c, at: c[:at] + c[at + 1 :]),
    "a null": of_bytes(lambda rng, c, at: c[:at] + b"\0" + c[at:]),
    "a quotation mark": of_bytes(lambda rng, c, at: c[:at] + b'"' + c[at:]),
    "a comma": of_bytes(lambda rng, c, at: c[:at] + b"," + c[at:]),
    "a line end": of_bytes(lambda rng, c, at: c[:at] + b"\n" + c[at:]),
    "cut off": of_bytes(lambda rng, c, at: c[:at]),
    "a lost stretch": of_bytes(lambda rng, c, at: c[:at] + c[at + rng.randint(2, 40) :]),
    "a stretch twice": of_bytes(lambda rng, c, at: c[:at] + c[max(0, at - rng.randint(2, 40)) :]),
    "an end of DOS": of_bytes(lambda rng, c, at: c + b"\x1a"),
    "quoted": as_file(lambda rows: written(rows, quoting=csv.QUOTE_ALL), must=READ),
    **{f"separated by {sign!r}": as_file(lambda rows, sign=sign: written(rows, sign), must=READ) for sign in ";\t|"},
    "of Windows": as_file(lambda rows: written(rows, end="\r\n"), must=READ),
    "of old Macs": as_file(lambda rows: written(rows, end="\r"), must=READ),
    "with a mark": as_file(lambda rows: "\ufeff" + written(rows), must=READ),
    "with two marks": as_file(lambda rows: "\ufeff\ufeff" + written(rows)),
    "UTF-16": as_file(lambda rows: written(rows, "\t").encode("utf-16"), must=READ),
    "UTF-16 without mark": as_file(lambda rows: written(rows).encode("utf-16-le")),
    "UTF-32": as_file(lambda rows: written(rows).encode("utf-32")),
    "cp1252": as_file(lambda rows: written(rows).encode("cp1252")),
    "without a last line end": as_file(lambda rows: written(rows).rstrip(), must=READ),
    "lines of separators": as_file(lambda rows: written([[*row, "", ""] for row in rows]) + ",,\n" * 3),
    "separators behind rows": as_file(lambda rows: written([rows[0], *([*row, ""] for row in rows[1:])])),
    "sep=": as_file(lambda rows: "sep=;\r\n" + written(rows, ";", end="\r\n")),
    "a title": as_file(lambda rows: "Study of words\n\n" + written(rows)),
    "a remark": as_file(lambda rows: "# of words\n" + written(rows)),
    "names of rows": as_file(lambda rows: written([rows[0], *([str(n), *row] for n, row in enumerate(rows[1:]))])),
    "packed": as_file(packed, must=READ, name="t.csv.gz"),
    "packed without saying": as_file(packed),
    "said to be packed": as_file(written, name="t.csv.gz"),
    "packed and damaged": as_file(lambda rows: packed(rows)[:-9] + b"\xa5" + packed(rows)[-8:], name="t.csv.gz"),
    "packed twice": as_file(lambda rows: 2 * packed(rows), must=REFUSE, name="t.csv.gz"),
    "said to be Parquet": as_file(written, must=REFUSE, name="t.parquet"),
    "said to be a workbook": as_file(written, must=REFUSE, name="t.xlsx"),
    "without an ending": as_file(written, name="t"),
}


def decimal_commas(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    fed = rows
    for name in kind.real:
        fed = of_column(fed, name, SPELT["comma"])
    return Changed(written(fed, ";").encode(), ((rows, fed != rows),), READ)


def _loop(folder: Path) -> Path:
    (folder / "a.csv").symlink_to("b.csv")
    (folder / "b.csv").symlink_to("a.csv")
    return folder / "a.csv"


PATHS: dict[str, Callable[[Path], Path]] = {
    "a folder": lambda folder: folder,
    "a long name": lambda folder: folder / f"{'x' * 300}.csv",
    "a long path": lambda folder: folder / "/".join(["x" * 200] * 30) / "t.csv",
    "a loop": _loop,
    "a file for a folder": lambda folder: Path("/dev/null/t.csv"),
    "nothing there": lambda folder: folder / "none.csv",
    "a null character": lambda folder: folder / "a\0b.csv",
    "an address": lambda folder: Path("https://example.org/t.csv"),
    "half a character": lambda folder: folder / "a\udcff.csv",
    "nothing": lambda folder: Path(),
}

# ------------------------------------------------------------------------------------------------- DataFrames


def of_frame(change: Callable[[random.Random, Kind, pd.DataFrame], pd.DataFrame | None], must: str = READ) -> Change:
    """Other types of the same table; READ, or refused where it has to be."""

    def make(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        typed = frame(rows).astype(dict.fromkeys(kind.whole, int) | dict.fromkeys(kind.real, float))
        made = change(rng, kind, typed)
        return None if made is None else Changed(made, () if must == REFUSE else ((rows, False),), must)

    return make


def cell(value: Any, columns: Callable[[Kind], tuple[str, ...]], must: str = REFUSE) -> Change:
    """A value of another type in one cell."""

    def change(rng: random.Random, kind: Kind, rows: pd.DataFrame) -> pd.DataFrame | None:
        if not columns(kind):
            return None
        name, at = rng.choice(columns(kind)), rng.randrange(len(rows))
        cells = np.array([*rows[name], None], dtype=object)[:-1]
        cells[at] = value(cells[at]) if callable(value) else value
        return rows.assign(**{name: pd.Series(cells, dtype=object)})

    return of_frame(change, must)


def every(change: Callable[[Any], Any], of: Callable[[Kind], tuple[str, ...]]) -> Change:
    return of_frame(
        lambda _, kind, rows: rows.assign(**{name: change(rows[name]) for name in of(kind)}) if of(kind) else None
    )


NOTHING = {"None": None, "NaN": np.nan, "NaT": pd.NaT, "NA": pd.NA, "a list": [1], "an array": np.array(["bo"])}
NO_NUMBER = NOTHING | {"infinity": np.inf, "true": True, "numpy true": np.True_, "a day": pd.Timestamp(2024, 5, 1)}
NO_NUMBER |= {"a while": pd.Timedelta(3, "s"), "complex": 1j, "bytes": b"1", "Decimal NaN": Decimal("NaN")}
NO_NAME = NOTHING | {"a mapping": {}, "empty": "", "a space": " ", "bytes": str.encode, "half a character": "\ud800"}
TYPES = {"categories": "category", "strings": "string", "Arrow strings": "string[pyarrow]", "objects": object}

FRAMES: dict[str, Change] = {
    "an index": of_frame(lambda rng, kind, rows: rows.set_axis([rng.choice("xyz") for _ in rows.index])),
    "indices": of_frame(lambda rng, kind, rows: rows.set_axis(pd.MultiIndex.from_product([[1], rows.index]))),
    "a part of another": of_frame(lambda rng, kind, rows: pd.concat([rows, rows])[len(rows) :]),
    "columns of two levels": of_frame(lambda rng, kind, rows: pd.concat({"a": rows}, axis=1), EITHER),
    "columns of numbers": of_frame(lambda rng, kind, rows: rows.set_axis(range(rows.shape[1]), axis=1), REFUSE),
    "a column twice": of_frame(lambda rng, kind, rows: pd.concat([rows, rows.iloc[:, :1]], axis=1), REFUSE),
    "nothing": of_frame(lambda rng, kind, rows: rows[:0], REFUSE),
    "no columns": of_frame(lambda rng, kind, rows: rows[[]], REFUSE),
    **{name: every(lambda column, to=to: column.astype(to), texts_of) for name, to in TYPES.items()},
    "numbers as categories": every(lambda column: column.astype("category"), numbers_of),
    "numbers as text": every(lambda column: column.astype(str), numbers_of),
    "numbers as objects": every(lambda column: column.astype(object), numbers_of),
    "nullable": every(lambda column: column.convert_dtypes(), numbers_of),
    "Decimal": every(lambda column: column.map(lambda value: Decimal(repr(value))).astype(object), numbers_of),
    "Arrow numbers": every(lambda column: column.convert_dtypes(dtype_backend="pyarrow"), numbers_of),
    "sparse": every(lambda column: column.astype(pd.SparseDtype(float, np.nan)), lambda kind: kind.real),
    "small whole numbers": every(lambda column: column.astype("uint8"), lambda kind: kind.whole),
    "whole numbers as floats": every(lambda column: column.astype(float), lambda kind: kind.whole),
    **{f"{name} for a number": cell(value, numbers_of) for name, value in NO_NUMBER.items()},
    **{f"{name} for a name": cell(value, lambda kind: kind.ids) for name, value in NO_NAME.items()},
    "a string of NumPy": cell(np.str_, texts_of, READ),
    "a number of NumPy": cell(np.float64, numbers_of, READ),
    "a number in text": cell(str, numbers_of, READ),
}

# ------------------------------------------------------------------------------------------------- all of them

CHANGES: dict[str, dict[str, Change]] = {
    "names": {
        **{what: marked(how, names=True) for what, how in MARKS.items()},
        "upper case": alike(str.upper, told=True),
        "full width": alike(
            lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text), told=False
        ),
        "another letter": alike(lambda text: text.replace("o", "\u043e"), told=False),
    },
    "words": {what: marked(how, names=False) for what, how in MARKS.items()},
    "numbers": {
        **{
            f"{what}, all {every}": spelt(how, everywhere=bool(every))
            for what, how in SPELT.items()
            for every in (0, 1)
        },
        **{
            f"thousands {sign}, all {every}": thousands(sign, everywhere=bool(every))
            for sign in ",. '"
            for every in (0, 1)
        },
    },
    "no numbers": {value: spelt(lambda text, value=value: value, right=False) for value in NO_NUMBERS},
    "scales": {
        "all a hundredfold": scaled(100, 1),
        "half a hundredfold": scaled(100, 0.5),
        "half a hundredfold, percent": scaled(100, 0.5, percent=True),
        "a quarter fractions, percent": scaled(100, 0.75, percent=True),
        "none, percent": scaled(100, 0, percent=True),
        "all, percent": scaled(100, 1, percent=True),
        "ten thousandfold, percent": scaled(10_000, 1, percent=True),
        "half with a sign": signed(0.5),
        "all with a sign": signed(1),
    },
    "cells": {
        **{f"emptied by {value!r}": emptied(value) for value in ("", " ", "\u00a0", "\u200b")},
        **{
            f"{name} {number}": how
            for name, how in {"left out": dropped, "moved": moved, "shifted": shifted}.items()
            for number in range(4)
        },
    },
    "rows": {
        "shuffled": lambda rng, kind, rows: as_text(
            [rows[0], *rng.sample(rows[1:], len(rows) - 1)], (rows, False), must=READ
        ),
        "twice": lambda rng, kind, rows: as_text([*rows, *rows[1:]], must=REFUSE),
        "partly twice": partly_twice,
        "a header": header_within(),
        "a header with spaces": header_within(lambda name: f" {name} "),
        "a header in upper case": header_within(str.upper),
        "empty": empty_rows,
        **{f"only {n}": only(n) for n in range(3)},
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
    "paths": {name: lambda rng, kind, rows, path=path: Changed(path) for name, path in PATHS.items()},
    "DataFrames": FRAMES,
}
