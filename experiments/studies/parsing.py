"""What parsers of public files share: notes, JSON, strings, and how a value is shown in a message."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from reprlib import Repr
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import AllowInfNan, ConfigDict, Field, Strict, ValidationError

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note

T = TypeVar("T")
Real = Annotated[float, Strict(), AllowInfNan(False)]
Whole = Annotated[int, Strict(), Field(ge=-(2**63), le=2**63 - 1)]
Text = Annotated[str, Strict()]
Name = Annotated[int, Strict()] | Annotated[str, Strict(), Field(min_length=1)]
"""Types of JSON: a finite number, a 64-bit integer, a string, and a number or a name; true is no number."""

_SHOWN = 80
# a value of a file may be nested a thousand deep or have a million digits
_BRIEF = Repr()
_BRIEF.maxlevel = 6
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxdict = _BRIEF.maxset = _BRIEF.maxfrozenset = _SHOWN
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 2 * _SHOWN
# the name before a number that is none; a quotation mark inside a string has a backslash before it
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_PYTHONS_LIMIT = 1000
_CONSTANT = re.compile(r'"([^"\\]*)"\s*:[^"{}:]*?\b(?:NaN|Infinity)\b')


@dataclass(frozen=True)
class Note:
    """A note for the study, see :func:`shannon_game.estimators.layout.add_note`."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    text: Text
    count: Whole | None = None
    level: Literal["info", "warning"] = "info"


def counting(*notes: Note) -> list[Note]:
    """Those of some notes that count anything."""
    return [note for note in notes if note.count]


def add_notes(study: xr.Dataset, notes: Iterable[Note]) -> None:
    """Append notes to those of the study."""
    for note in notes:
        add_note(study, note.text, count=note.count, level=note.level)


def decoded(
    content: bytes, source: object, encoding: str = "utf-8", *, field: object = None, hint: str = "convert the file"
) -> str:
    """Decode a text, UTF-8 with or without its byte order mark; InputError names the first byte that is none."""
    try:
        return content.decode("utf-8-sig" if encoding == "utf-8" else encoding)
    except UnicodeError as error:
        where = ""
        if isinstance(error, UnicodeDecodeError) and not encoding.startswith(("utf-16", "utf-32")):
            line = content.count(b"\n", 0, error.start) + 1
            where = f": byte {content[error.start]:#04x} in line {line}"
        name = "UTF-8" if encoding == "utf-8" else encoding
        raise InputError(f"is not {name}{where}; {hint}", source=source, field=field) from None


def utf8(content: bytes, source: object, field: object = None) -> str:
    """Decode UTF-8 without null characters."""
    text = decoded(content, source, field=field)
    if "\0" in text:
        problem = f"has {text.count(chr(0)):,} NUL bytes, which no text has; it is damaged, or another kind of file"
        raise InputError(problem, source=source, field=field)
    return text


def json_records(content: bytes | str, source: object) -> Iterator[tuple[str, Any]]:
    """Place ("line 3", "record 2") and value of each record: JSON lines, lists of objects in them, or one list."""
    text = content if isinstance(content, str) else utf8(content, source)
    # not splitlines: a token may be a line separator of Unicode
    lines = [(f"line {number}", line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    whole = bool(lines) and lines[0][1].lstrip()[0] == "[" and any(line.lstrip()[0] != "[" for _, line in lines)
    for where, line in [("", text)] if whole else lines:
        value = parse_json(line, f"{source}, {where}" if where else source)
        several = isinstance(value, list) and value and (whole or all(isinstance(each, dict) for each in value))
        # pairs of one context are a list of lists, pairs of all one more
        if several or (len(lines) == 1 and _nested(value, 3)):
            before = "" if len(lines) == 1 or whole else f"{where}, "
            yield from ((f"{before}record {number}", each) for number, each in enumerate(value, start=1))
        else:
            yield where, value


def _nested(value: Any, depth: int) -> bool:
    return depth == 0 or (isinstance(value, list) and len(value) > 0 and _nested(value[0], depth - 1))


def parse_json(content: bytes | str, source: object, field: object = None, *, nan: str | None = None) -> Any:
    """Parse JSON as the standard has it: UTF-8, every key once, no number that is none (`nan` stands for a NaN)."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for at, name in enumerate(names) if name in names[:at])
            raise InputError("is there twice in one object; which of the two holds is not known", **place(twice))
        return found

    def constant(name: str) -> str:
        if nan is not None and name == "NaN":
            return nan
        before = _CONSTANT.search(text)
        raise InputError(f"holds {name}, which is no number of JSON", **place(before[1] if before else None))

    def place(name: str | None) -> dict[str, object]:
        parts = [str(part) for part in (field, name) if part is not None]
        return {"source": source, "field": ", ".join(parts) or None}

    text = content if isinstance(content, str) else utf8(content, source, field)
    too_deep = InputError("is nested too deeply for data", source=source, field=field)
    # where a library has lifted the recursion limit, the json module overflows the stack
    if sys.getrecursionlimit() > _PYTHONS_LIMIT and _depth(text) > _PYTHONS_LIMIT:
        raise too_deep
    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=constant)
    except InputError:
        raise
    except RecursionError:
        raise too_deep from None
    except ValueError as error:
        # beyond some thousand digits Python's own message tells a programmer which limit to lift
        if not isinstance(error, json.JSONDecodeError):
            raise InputError("holds a number of thousands of digits", source=source, field=field) from None
        problem = f"is not valid JSON ({error}); it has {len(content)} bytes and may be truncated"
        raise InputError(problem, source=source, field=field) from None


def _depth(text: str) -> int:
    """Most brackets that are open at once, outside of strings."""
    step = np.zeros(256, dtype=np.int8)
    step[list(b"[{")], step[list(b"]}")] = 1, -1
    bare = np.frombuffer(_STRING.sub("", text).encode("utf-8", "surrogatepass"), dtype=np.uint8)
    return int(step[bare].cumsum(dtype=np.int64).max(initial=0))


def checked(read: Callable[[Any], T], data: Any, source: object, columns: Sequence[str] = ()) -> T:
    """Read parsed JSON as a type of pydantic; InputError names the field, or the row and its column, and the value."""
    try:
        return read(data)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
    place, field = list(found["loc"]), None
    at = "".join(f"[{part}]" for part in place if isinstance(part, int))
    if columns and place:
        field = columns[int(place[1])] if len(place) > 1 and int(place[1]) < len(columns) else None
        at = f"in row {place[0]}"
    elif names := [str(part) for part in place if isinstance(part, str) and part != "[key]"]:
        field = ", ".join(names)
    where = f" {at if at.startswith('in') else f'at {at}'}" if at else ""
    said = "is missing" if found["type"] == "missing" else f"is {shown(found['input'])}"
    should = found["msg"].removeprefix("Input ")
    raise InputError(said + where + ("" if said == "is missing" else f"; {should}"), source=source, field=field)


def is_number(value: object) -> bool:
    """Whether a value of JSON is a number that a float can hold: no boolean, text, NaN, or integer beyond 1e308."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def objects(strings: Sequence[str]) -> NDArray[np.object_]:
    """Array of ``str`` objects, which lose nothing: NumPy's own strings drop null characters at the end."""
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array


def whole_characters(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON can hold and UTF-8 cannot, by U+FFFD; two that fit are joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown(value: object) -> str:
    """Show a value in a message, cut short where it is long."""
    text = _BRIEF.repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def some_of(names: Sequence[str], listed: int = 5) -> str:
    """List the first names in a message, and how many more there are."""
    names = [name if len(name) <= _SHOWN else name[: _SHOWN - 3] + "..." for name in names[:listed]] + [*names[listed:]]
    return ", ".join(names[:listed]) + (f" and {len(names) - listed} more" if len(names) > listed else "")
