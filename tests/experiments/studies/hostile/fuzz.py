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

from tests.experiments.studies.hostile.tables import Kind, Rows, frame, nine, number, written

READ, REFUSE, EITHER = "read", "refuse", "either"


@dataclass(frozen=True)
class Changed:
    """A changed table, as rows, bytes, a DataFrame, or what makes a path of it; and the tables that it may mean.

    A reading that is `told` needs a note that the table as it was does not have. Nothing to mean: it has to be refused.
    """

    fed: Rows | bytes | pd.DataFrame | Callable[[Path], Path]
    means: tuple[tuple[Rows, bool], ...] = ()
    must: str = EITHER
    settings: dict[str, Any] = field(default_factory=dict)
    name: str = "t.csv"


Change = Callable[[random.Random, Kind, Rows], Changed | None]
"""None where there is nothing to change."""


def copied(rows: Rows) -> Rows:
    return [list(row) for row in rows]


def of_column(rows: Rows, name: str, change: Callable[[str], str], at: range | list[int] | None = None) -> Rows:
    made, column = copied(rows), rows[0].index(name)
    for row in range(1, len(rows)) if at is None else at:
        made[row][column] = change(made[row][column])
    return made


def a_row(rng: random.Random, rows: Rows) -> list[int]:
    return [rng.randrange(1, len(rows))]


def as_text(fed: Rows, *means: tuple[Rows, bool], must: str = EITHER, **settings: Any) -> Changed:
    return Changed(fed, means, must, settings)


def plainly(fed: Rows) -> Changed:
    """Right is what the strict reader makes of the table, else it is refused."""
    return as_text(fed, (fed, False))


# ------------------------------------------------------------------------------------------------- cells

MARKS: dict[str, Callable[[str], str]] = {
    "space": lambda text: text + " ",
    "tab": lambda text: "\t" + text,
    "no-break space": lambda text: text + "\u00a0",
    "narrow space": lambda text: "\u202f" + text,
    "zero width": lambda text: text[:1] + "\u200b" + text[1:],
    "word joiner": lambda text: text[:1] + "\u2060" + text[1:],
    "soft hyphen": lambda text: text[:1] + "\u00ad" + text[1:],
    "byte order mark": lambda text: "\ufeff" + text,
    "direction": lambda text: "\u200e" + text + "\u202c",
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "line end": lambda text: text + "\n",
}


def marked(mark: Callable[[str], str], *, names: bool) -> Change:
    """A name, or a word, spelt so that nobody sees a difference; a word may stay another, a name not."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        columns = kind.ids if names else kind.words
        if not columns:
            return None
        fed = of_column(rows, rng.choice(columns), mark, a_row(rng, rows))
        if names:
            return as_text(fed, (rows, fed != rows))
        # tokens of language models are what they are
        told = kind.truth(fed) != kind.truth(rows) and kind.ids[0] not in ("item", "model")
        return as_text(fed, (rows, told), (fed, told))

    return change


def alike(spelt: Callable[[str], str], *, told: bool) -> Change:
    """Names that a reader can tell apart: they may be two, and case is told."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        name, at = rng.choice(kind.ids), a_row(rng, rows)
        fed, column = of_column(rows, name, spelt, at), rows[0].index(name)
        both = [row[column] for row in rows].count(rows[at[0]][column]) > 1
        return as_text(fed, (fed, told and both and fed != rows), (rows, True))

    return change


SPELT: dict[str, Callable[[str], str]] = {
    "minus": lambda text: text.replace("-", "\u2212"),
    "dash": lambda text: text.replace("-", "\u2013"),
    "full width": lambda text: "".join(chr(ord(one) + 0xFEE0) if one in "0123456789.-" else one for one in text),
    "Arabic digits": lambda text: "".join(chr(0x660 + int(one)) if one.isdigit() else one for one in text),
    "comma": lambda text: text.replace(".", ","),
    "exponent": lambda text: f"{float(text):.9e}",
    "plus": lambda text: text if text.startswith("-") else f"+{text}",
    "spaces": lambda text: f"  {text}\u00a0",
    "zeros": lambda text: f"{text}00" if "." in text else f"{text}.00",
    "three zeros": lambda text: f"{text}000" if "." in text else f"{text}.000",
    "no zero": lambda text: text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text,
    "apostrophe": lambda text: f"'{text}",
    "formula": lambda text: f'="{text}"',
    "currency": lambda text: f"${text}",
    "euro": lambda text: f"{text} \u20ac",
    "unit": lambda text: f"{text} chips",
    "brackets": lambda text: f"({text.removeprefix('-')})" if text.startswith("-") else f"({text})",
    "star": lambda text: f"{text}*",
    "zero width": lambda text: f"{text}\u200b",
}
NO_NUMBERS = (
    *("x", "0x1F", "1_0", "TRUE", "false", "2024-05-01", "5-May", "5.5.2024", "1/2", "\u00bd", "\u00b2", "nan", "NA"),
    *("inf", "-Infinity", "--1", "1 2", "12:30", "=1+1", "#REF!", "#N/A", "1e999", "1e", "e3", "1.2.3", "1,2,3", "0b1"),
    *("1..2", "..", "-", ".", "<1", "0-1", "1;2", "\u221e", "1e-3e2", "9" * 400, "\u4e94", "1\x002", "~1", "\ud83d"),
)


def numbers_of(kind: Kind) -> tuple[str, ...]:
    return (*kind.whole, *kind.real)


def spelt(how: Callable[[str], str], *, everywhere: bool) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        if not numbers_of(kind):
            return None
        fed = of_column(rows, rng.choice(numbers_of(kind)), how, None if everywhere else a_row(rng, rows))
        return as_text(fed, (rows, False))

    return change


def no_number(value: str) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        if not numbers_of(kind):
            return None
        return as_text(of_column(rows, rng.choice(numbers_of(kind)), lambda text: value, a_row(rng, rows)))

    return change


def thousands(sign: str, *, everywhere: bool) -> Change:
    """12 stands there as 12,345, or as 12.000: a thousand times as much, or as much."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        names = [name for name in kind.whole if name in ("count", "position", "context_length")]
        if not names:
            return None
        name, at = rng.choice(names), None if everywhere else a_row(rng, rows)
        large = of_column(rows, name, lambda text: f"{text}345", at)
        if rng.random() < 0.5:
            return as_text(of_column(rows, name, lambda text: f"{text}{sign}345", at), (large, True))
        fed = of_column(rows, name, lambda text: f"{text}{sign}000", at)
        return as_text(fed, (rows, not everywhere), (of_column(rows, name, lambda text: f"{text}000", at), True))

    return change


def scaled(factor: float, part: float, *, percent: bool | None = None) -> Change:
    """Part of the shares, or chips, on another scale; right only where all are, and the settings say so."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        if kind.scaled is None:
            return None
        chips = kind.scaled == "stake"
        times = 1 / factor if chips else factor
        # the rows of some people, contexts or answers, and not others: each has three
        n = round(part * (len(rows) - 1) / 3) * 3
        at = list(range(1, n + 1))
        fed = of_column(rows, kind.scaled, lambda text: nine(number(text) * times), at)
        settings: dict[str, Any] = {}
        if percent is not None:
            settings = {"total": 1 if percent else 100} if chips else {"percent": percent}
        right = factor == 100 and part == 1 and percent is True
        return as_text(fed, *([(rows, False)] if right else []), must=READ if right else REFUSE, **settings)

    return change


def percent_signs(part: float) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        if kind.scaled in (None, "stake"):
            return None
        at = rng.sample(range(1, len(rows)), max(1, round(part * (len(rows) - 1))))
        fed = of_column(rows, str(kind.scaled), lambda text: f"{nine(100 * number(text))} %", at)
        return as_text(fed, (rows, False))

    return change


def positive(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
    names = [name for name in kind.real if "logprob" in name]
    if not names:
        return None
    return as_text(of_column(rows, rng.choice(names), lambda text: nine(np.exp(number(text)))), must=REFUSE)


def emptied(value: str) -> Change:
    """A cell without its value: refused, or an answer left blank."""

    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        name = rng.choice(rows[0])
        return plainly(of_column(rows, name, lambda text: value, a_row(rng, rows)))

    return change


def dropped(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
    """The setting that leaves answers with an empty cell out."""
    name, answer = rng.choice(rows[0]), None
    fed, at = of_column(rows, name, lambda text: "", at := a_row(rng, rows)), at[0]
    kept = [row for number, row in enumerate(rows) if number != at]
    if rows[0][-1] == "report" and name in ("participant", "report"):
        return as_text(fed, (kept, True), must=READ, missing="drop")
    if rows[0][-1] == "guess":
        return as_text(fed, (kept, True), must=READ, missing="drop")
    if rows[0][-1] == "stake":
        answer = rows[at][:2]
        if name in ("participant", "item"):
            # whose answer the row was is not known: the rest of the answer stays
            return as_text(fed, (kept, True), missing="drop")
        return as_text(fed, ([row for row in rows if row[:2] != answer], True), must=READ, missing="drop")
    return None


def moved(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    """A value of one column in another."""
    fed, (at,) = copied(rows), a_row(rng, rows)
    here, there = rng.sample(range(len(rows[0])), 2)
    if rng.random() < 0.5:
        fed[at][here], fed[at][there] = fed[at][there], fed[at][here]
    else:
        fed[at][here] = fed[at][there]
    return plainly(fed)


def another(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    """A value of another row."""
    fed, column = copied(rows), rng.randrange(len(rows[0]))
    fed[a_row(rng, rows)[0]][column] = rows[a_row(rng, rows)[0]][column]
    return plainly(fed)


# ------------------------------------------------------------------------------------------------- rows and columns


def shuffled(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    return as_text([rows[0], *rng.sample(rows[1:], len(rows) - 1)], (rows, False), must=READ)


def turned(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    order = rng.sample(range(len(rows[0])), len(rows[0]))
    return as_text([[row[at] for at in order] for row in rows], (rows, False), must=READ)


def twice(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    # people answer alike: rows that name nobody may be there twice, and a note says so
    return as_text([*rows, *rows[1:]], must=REFUSE)


def partly_twice(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    n = rng.randint(1, len(rows) - 2)
    again = rng.sample(rows[1:], n)
    fed = [*rows, *again] if rng.random() < 0.5 else [rows[0], *again, *rows[1:]]
    return as_text(fed, (fed, True))


def header_within(spell: Callable[[str], str] = str) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        at = rng.randint(1, len(rows))
        fed = [*rows[:at], [spell(name) for name in rows[0]], *rows[at:]]
        return as_text(fed, (rows, True))

    return change


def renamed(rename: Callable[[str], str]) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        at = rng.randrange(len(rows[0]))
        fed = copied(rows)
        fed[0][at] = rename(fed[0][at])
        return as_text(fed, (rows, False), (fed, False))

    return change


def without_column(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
    if rows[0][0] == "who":
        return None
    at = rng.randrange(len(rows[0]))
    name = rows[0][at]
    if (name, rows[0][-1]) in {("participant", "participant"), ("count", "count"), ("proportion", "proportion")}:
        # a table of answers is one without them, and states other things
        return None
    return as_text([[cell for column, cell in enumerate(row) if column != at] for row in rows], must=REFUSE)


def with_column(name: str) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        at = rng.randint(0, len(rows[0]))
        made = (name, *(rng.choice(("", "x", "7", "nan")) for _ in rows[1:]))
        fed = [[*row[:at], cell, *row[at:]] for row, cell in zip(rows, made, strict=True)]
        return as_text(fed, (rows, False))

    return change


def column_twice(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    at = rng.randrange(len(rows[0]))
    return as_text([[*row, row[at]] for row in rows], must=REFUSE)


def empty_rows(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    at, n = rng.randint(1, len(rows)), rng.randint(1, 3)
    return as_text([*rows[:at], *[[""] * len(rows[0])] * n, *rows[at:]], (rows, False))


def only(n: int) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        fed = [rows[0], *rng.sample(rows[1:], n)]
        return as_text(fed, *([(fed, False)] if n else []), must=EITHER if n else REFUSE)

    return change


def shifted(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    """A cell is missing and those after it stand one to the left."""
    fed, (at,) = copied(rows), a_row(rng, rows)
    del fed[at][rng.randrange(len(rows[0]))]
    if rng.random() < 0.5:
        return as_text(fed, must=REFUSE)
    fed[at].append("")
    return plainly(fed)


# ------------------------------------------------------------------------------------------------- files


def of_bytes(change: Callable[[random.Random, bytes], bytes], *, told: bool = False, name: str = "t.csv") -> Change:
    """Bytes by chance: right is what stands there in UTF-8, or with a note in the encoding of Windows."""

    def make(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        fed = change(rng, written(rows).encode())
        return Changed(fed, tuple(readings(fed)), name=name)

    return make


def readings(content: bytes) -> Iterator[tuple[Rows, bool]]:
    for encoding in ("utf-8", "cp1252"):
        text = content.removeprefix(codecs.BOM_UTF8).decode(encoding, errors="replace")
        for strict in (True, False):
            try:
                rows = list(csv.reader(StringIO(text, newline=""), strict=strict))
            except csv.Error:
                continue
            rows, told = [row for row in rows if any(row)], encoding == "cp1252" or not strict
            yield rows, told
            yield [[cell.strip() for cell in row] for row in rows], True


def as_file(change: Callable[[Rows], bytes], *, must: str = READ, told: bool = False, name: str = "t.csv") -> Change:
    """The same table in other bytes."""
    return lambda rng, kind, rows: Changed(change(rows), ((rows, told),), must, name=name)


def at_a_place(change: Callable[[random.Random, bytes, int], bytes]) -> Callable[[random.Random, bytes], bytes]:
    return lambda rng, content: change(rng, content, rng.randrange(len(content)))


BYTES: dict[str, Change] = {
    "a bad byte": of_bytes(at_a_place(lambda rng, c, at: c[:at] + bytes([rng.randrange(128, 256)]) + c[at:])),
    "a changed byte": of_bytes(at_a_place(lambda rng, c, at: c[:at] + bytes([rng.randrange(256)]) + c[at + 1 :])),
    "a lost byte": of_bytes(at_a_place(lambda rng, c, at: c[:at] + c[at + 1 :])),
    "a null": of_bytes(at_a_place(lambda rng, c, at: c[:at] + b"\0" + c[at:])),
    "a quotation mark": of_bytes(at_a_place(lambda rng, c, at: c[:at] + b'"' + c[at:])),
    "a comma": of_bytes(at_a_place(lambda rng, c, at: c[:at] + b"," + c[at:])),
    "a line end": of_bytes(at_a_place(lambda rng, c, at: c[:at] + b"\n" + c[at:])),
    "cut off": of_bytes(at_a_place(lambda rng, c, at: c[:at])),
    "a lost stretch": of_bytes(at_a_place(lambda rng, c, at: c[:at] + c[at + rng.randint(2, 40) :])),
    "a stretch twice": of_bytes(at_a_place(lambda rng, c, at: c[:at] + c[max(0, at - rng.randint(2, 40)) :])),
    "another file after it": of_bytes(lambda rng, c: c + b"\x1a"),
    "quoted": as_file(lambda rows: written(rows, quoting=csv.QUOTE_ALL).encode()),
    "semicolons": as_file(lambda rows: written(rows, ";").encode()),
    "tabs": as_file(lambda rows: written(rows, "\t").encode()),
    "pipes": as_file(lambda rows: written(rows, "|").encode()),
    "Windows": as_file(lambda rows: written(rows, end="\r\n").encode()),
    "old Mac": as_file(lambda rows: written(rows, end="\r").encode()),
    "byte order mark": as_file(lambda rows: codecs.BOM_UTF8 + written(rows).encode()),
    "two marks": as_file(lambda rows: 2 * codecs.BOM_UTF8 + written(rows).encode(), must=EITHER),
    "UTF-16": as_file(lambda rows: written(rows).encode("utf-16")),
    "UTF-16 of Excel": as_file(lambda rows: codecs.BOM_UTF16_LE + written(rows, "\t").encode("utf-16-le")),
    "UTF-16 without mark": as_file(lambda rows: written(rows).encode("utf-16-le"), must=EITHER),
    "UTF-32": as_file(lambda rows: written(rows).encode("utf-32"), must=EITHER),
    "cp1252": as_file(lambda rows: written(rows).encode("cp1252"), must=EITHER),
    "no line end at the end": as_file(lambda rows: written(rows).encode().rstrip()),
    "lines of separators": as_file(
        lambda rows: written([[*row, "", ""] for row in rows]).encode() + b",,\n" * 3, must=EITHER
    ),
    "separators behind rows": as_file(
        lambda rows: written([rows[0], *([*row, ""] for row in rows[1:])]).encode(), must=EITHER
    ),
    "sep=": as_file(lambda rows: b"sep=;\r\n" + written(rows, ";", end="\r\n").encode(), must=EITHER),
    "a title": as_file(lambda rows: b"Study of words\n\n" + written(rows).encode(), must=EITHER),
    "a remark": as_file(lambda rows: b"# of words\n" + written(rows).encode(), must=EITHER),
    "row names": as_file(
        lambda rows: written([rows[0], *([str(n), *row] for n, row in enumerate(rows[1:]))]).encode(), must=EITHER
    ),
    "packed": as_file(lambda rows: gzip.compress(written(rows).encode()), name="t.csv.gz"),
    "packed, without saying": as_file(lambda rows: gzip.compress(written(rows).encode()), must=EITHER),
    "said to be packed": as_file(lambda rows: written(rows).encode(), must=EITHER, name="t.csv.gz"),
    "packed, damaged": as_file(
        lambda rows: (c := gzip.compress(written(rows).encode()))[:-9] + bytes([c[-9] ^ 1]) + c[-8:],
        must=REFUSE,
        name="t.csv.gz",
    ),
    "packed twice": as_file(lambda rows: 2 * gzip.compress(written(rows).encode()), must=REFUSE, name="t.csv.gz"),
    "Parquet of another name": as_file(lambda rows: written(rows).encode(), must=REFUSE, name="t.parquet"),
    "a workbook of text": as_file(lambda rows: written(rows).encode(), must=REFUSE, name="t.xlsx"),
    "no name": as_file(lambda rows: written(rows).encode(), must=EITHER, name="t"),
}


def decimal_commas(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
    fed = rows
    for name in kind.real:
        fed = of_column(fed, name, lambda text: text.replace(".", ","))
    return Changed(written(fed, ";").encode(), ((rows, fed != rows),), READ)


def at_path(make: Callable[[Path, bytes], Path]) -> Change:
    def change(rng: random.Random, kind: Kind, rows: Rows) -> Changed:
        return Changed(lambda folder: make(folder, written(rows).encode()), (), REFUSE)

    return change


def _loop(folder: Path) -> Path:
    (folder / "a.csv").symlink_to("b.csv")
    (folder / "b.csv").symlink_to("a.csv")
    return folder / "a.csv"


PATHS: dict[str, Change] = {
    "a folder": at_path(lambda folder, content: folder),
    "a long name": at_path(lambda folder, content: folder / f"{'x' * 300}.csv"),
    "a long path": at_path(lambda folder, content: folder / "/".join(["x" * 200] * 30) / "t.csv"),
    "a loop": at_path(lambda folder, content: _loop(folder)),
    "a file for a folder": at_path(lambda folder, content: Path("/dev/null/t.csv")),
    "nothing there": at_path(lambda folder, content: folder / "none.csv"),
    "a null character": at_path(lambda folder, content: folder / "a\0b.csv"),
    "an address": at_path(lambda folder, content: Path("https://example.org/t.csv")),
    "half a character": at_path(lambda folder, content: folder / "a\udcff.csv"),
    "nothing": at_path(lambda folder, content: Path()),
}

# ------------------------------------------------------------------------------------------------- DataFrames


def typed(kind: Kind, rows: Rows) -> pd.DataFrame:
    return frame(rows).astype(dict.fromkeys(kind.whole, int) | dict.fromkeys(kind.real, float))


def of_frame(change: Callable[[random.Random, Kind, pd.DataFrame], pd.DataFrame | None], must: str = READ) -> Change:
    """Other types of the same table; READ, or refused where it has to be."""

    def make(rng: random.Random, kind: Kind, rows: Rows) -> Changed | None:
        made = change(rng, kind, typed(kind, rows))
        return None if made is None else Changed(made, () if must == REFUSE else ((rows, False),), must)

    return make


def cell(value: Any, columns: Callable[[Kind], tuple[str, ...]], must: str = REFUSE) -> Change:
    """A value of another type in one cell."""

    def change(rng: random.Random, kind: Kind, rows: pd.DataFrame) -> pd.DataFrame | None:
        if not columns(kind):
            return None
        name, at = rng.choice(columns(kind)), rng.randrange(len(rows))
        cells = rows[name].astype(object).tolist()
        cells[at] = value(cells[at]) if callable(value) else value
        made = pd.Series([None] * len(cells), dtype=object)
        for row, each in enumerate(cells):
            made.at[row] = each
        return rows.assign(**{name: made})

    return of_frame(change, must)


def every(change: Callable[[pd.Series], pd.Series], of: Callable[[Kind], tuple[str, ...]]) -> Change:
    return of_frame(
        lambda rng, kind, rows: rows.assign(**{name: change(rows[name]) for name in of(kind)}) if of(kind) else None
    )


def texts_of(kind: Kind) -> tuple[str, ...]:
    return (*kind.ids, *kind.words)


FRAMES: dict[str, Change] = {
    "an index": of_frame(lambda rng, kind, rows: rows.set_axis([rng.choice("xyz") for _ in rows.index])),
    "indices": of_frame(
        lambda rng, kind, rows: rows.set_axis(pd.MultiIndex.from_arrays([[1] * len(rows), range(len(rows))]))
    ),
    "a part of another": of_frame(lambda rng, kind, rows: pd.concat([rows, rows])[len(rows) :]),
    "columns of two levels": of_frame(lambda rng, kind, rows: pd.concat({"a": rows}, axis=1), EITHER),
    "columns of numbers": of_frame(lambda rng, kind, rows: rows.set_axis(range(rows.shape[1]), axis=1), REFUSE),
    "a column twice": of_frame(lambda rng, kind, rows: pd.concat([rows, rows.iloc[:, :1]], axis=1), REFUSE),
    "nothing": of_frame(lambda rng, kind, rows: rows[:0], REFUSE),
    "no columns": of_frame(lambda rng, kind, rows: rows[[]], REFUSE),
    "categories": every(lambda column: column.astype("category"), texts_of),
    "ordered categories": every(lambda column: column.astype(pd.CategoricalDtype(column.unique(), True)), texts_of),
    "strings": every(lambda column: column.astype("string"), texts_of),
    "Arrow strings": every(lambda column: column.astype("string[pyarrow]"), texts_of),
    "objects": every(lambda column: column.astype(object), lambda kind: (*texts_of(kind), *numbers_of(kind))),
    "numbers as categories": every(lambda column: column.astype("category"), numbers_of),
    "numbers as text": every(lambda column: column.astype(str), numbers_of),
    "nullable": every(lambda column: column.convert_dtypes(), numbers_of),
    "Decimal": every(lambda column: column.map(lambda value: Decimal(repr(value))).astype(object), numbers_of),
    "Arrow numbers": every(lambda column: column.convert_dtypes(dtype_backend="pyarrow"), numbers_of),
    "sparse": every(lambda column: column.astype(pd.SparseDtype(float, np.nan)), lambda kind: kind.real),
    "small whole numbers": every(lambda column: column.astype("uint8"), lambda kind: kind.whole),
    "whole numbers as floats": every(lambda column: column.astype(float), lambda kind: kind.whole),
    **{
        f"{name} for a number": cell(value, numbers_of)
        for name, value in {
            **{"None": None, "NaN": np.nan, "NaT": pd.NaT, "NA": pd.NA, "infinity": np.inf, "true": True},
            **{"a day": pd.Timestamp(2024, 5, 1), "a while": pd.Timedelta(3, "s"), "complex": 1j, "a list": [1]},
            **{"bytes": b"1", "an array": np.array(1.0), "Decimal NaN": Decimal("NaN"), "numpy true": np.True_},
        }.items()
    },
    **{
        f"{name} for a name": cell(value, lambda kind: kind.ids)
        for name, value in {
            **{"None": None, "NaN": np.nan, "NaT": pd.NaT, "NA": pd.NA, "a list": ["bo"], "a mapping": {}, "empty": ""},
            **{"bytes": str.encode, "half a character": "\ud800", "a space": " ", "an array": np.array(["bo"])},
        }.items()
    },
    "a string of NumPy": cell(np.str_, texts_of, READ),
    "a number of NumPy": cell(np.float64, numbers_of, READ),
    "a number in text": cell(str, numbers_of, READ),
}

# ------------------------------------------------------------------------------------------------- all of them

CHANGES: dict[str, dict[str, Change]] = {
    "names": {
        **{f"a name with {what}": marked(how, names=True) for what, how in MARKS.items()},
        "upper case": alike(str.upper, told=True),
        "full width": alike(
            lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text), told=False
        ),
        "another letter": alike(lambda text: text.replace("o", "\u043e"), told=False),
    },
    "words": {f"a word with {what}": marked(how, names=False) for what, how in MARKS.items()},
    "numbers": {
        **{f"one with {what}": spelt(how, everywhere=False) for what, how in SPELT.items()},
        **{f"all with {what}": spelt(how, everywhere=True) for what, how in SPELT.items()},
        **{
            f"thousands of {sign!r}, all {all_}": thousands(sign, everywhere=all_) for sign in ",. '" for all_ in (0, 1)
        },
    },
    "no numbers": {f"number {number}": no_number(value) for number, value in enumerate(NO_NUMBERS)},
    "scales": {
        "all a hundredfold": scaled(100, 1),
        "half a hundredfold": scaled(100, 0.5),
        "half a hundredfold, percent": scaled(100, 0.5, percent=True),
        "a quarter fractions, percent": scaled(100, 0.75, percent=True),
        "none, percent": scaled(100, 0, percent=True),
        "all, percent": scaled(100, 1, percent=True),
        "ten thousandfold, percent": scaled(10_000, 1, percent=True),
        "half with a sign": percent_signs(0.5),
        "all with a sign": percent_signs(1),
        "probabilities for logarithms": positive,
    },
    "cells": {
        **{f"empty {number}": emptied(value) for number, value in enumerate(("", " ", "\u00a0", "\u200b"))},
        "dropped": dropped,
        "dropped again": dropped,
        "moved": moved,
        "moved again": moved,
        "moved a third time": moved,
        "of another row": another,
        "of another row again": another,
        "shifted": shifted,
        "shifted again": shifted,
    },
    "rows": {
        "shuffled": shuffled,
        "columns shuffled": turned,
        "twice": twice,
        "partly twice": partly_twice,
        "partly twice again": partly_twice,
        "a header": header_within(),
        "a header with spaces": header_within(lambda name: f" {name} "),
        "a header in upper case": header_within(str.upper),
        "empty": empty_rows,
        "none": only(0),
        "one": only(1),
        "two": only(2),
    },
    "columns": {
        "spaces around a name": renamed(lambda name: f" {name} "),
        "a mark before a name": renamed(lambda name: f"\ufeff{name}"),
        "a name in upper case": renamed(str.upper),
        "quotation marks around a name": renamed(lambda name: f"'{name}'"),
        "without one": without_column,
        "without another": without_column,
        "a further one": with_column("remark"),
        "one without a name": with_column(""),
        "Unnamed": with_column("Unnamed: 0"),
        "one twice": column_twice,
    },
    "files": BYTES | {"decimal commas": decimal_commas},
    "paths": PATHS,
    "DataFrames": FRAMES,
}
