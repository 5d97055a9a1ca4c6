"""Workbooks of the thesis on rank-based perplexity, as they lie in four published zip archives."""

from __future__ import annotations

import ast
import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from shannon_game.estimators.errors import InputError, require_packages, unknown_choice
from shannon_game.experiments.studies.files import checked_members, open_archive, unpacked_member
from shannon_game.experiments.studies.parsing import Real, Text, checked, shown


@dataclass(frozen=True)
class Archive:
    """One published archive: its file name, the part of the thesis it belongs to, its text and its hash."""

    name: str
    part: str
    text: str
    sha256: str


_HASHES = (
    "cad3abeff8d1a7a68858068a7f0e25bf23b690d14fde81e00d626c212170a368",
    "c317a4c2459f82950f1e2eb6f2a8cf70a6da6a591f3b1ad2e7fbca8690745ae0",
    "3d05c40ea06193e20ba58a125ee47a6001d79da5d1cb7f13d6ef306b3fae9027",
    "7a1335c6f1b44df2e6658f06f2fc8ed96896ee0f07a71b53254e3243e469dd6d",
)
ARCHIVES = (
    Archive("n = 30 reftext1.zip", "main", "text 1", _HASHES[0]),
    Archive("n = 30 reftext2.zip", "main", "text 2", _HASHES[1]),
    Archive("128 5 reps n=30 text 1.zip", "repeats", "text 1", _HASHES[2]),
    Archive("128 5 reps n=30 text 2.zip", "repeats", "text 2", _HASHES[3]),
)

_COLUMNS = (
    *("Reference token", "Generated token", "Token ranking", "Token logprobs", "Linear Score", "Recipr. Score"),
    *("Perplexity", "NL Score a=0.1", "NL Score a=0.3"),
)
_Filled = Annotated[Text, Field(min_length=1)]
# as Excel numbers its rows
_ROWS = TypeAdapter(dict[int, tuple[_Filled, _Filled, _Filled, _Filled, Real, Real, Real, Real, Real]])
_TOKENS = TypeAdapter(Annotated[list[Text], Field(min_length=1)])
_LOGPROBS = TypeAdapter(Annotated[list[Real], Field(min_length=1)])
_NAME = re.compile(
    r"Saved Data (?:(?P<start>\d+) )?reftext(?P<text>2?) (?:(?P<model>\S+) (?P<length>\d+)|(?P<of>\d+) AVERAGES)\.xlsx",
    re.ASCII,
)
_MODEL_NAMES = ("gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4o")


@dataclass(frozen=True)
class Workbook:
    """Cells of one workbook's only sheet, and the fields of its name."""

    archive: Archive
    place: str
    """For messages."""
    is_averages: bool
    start: int | None
    """Of a repeat: index of the first scored token (data), or number of the repeat (averages)."""
    model: str
    """Empty for averages."""
    length: int
    rows: list[list[Any]]


def read_workbooks(archive: Archive, content: bytes, path: Path) -> Iterator[Workbook]:
    """Read every workbook of one archive, checked as a whole before its first member is read."""
    require_packages(("python_calamine",), "data", source="study rank_perplexity", field="workbooks")
    with open_archive(io.BytesIO(content), path) as outer:
        for name, member in checked_members(outer, path).items():
            if not name.endswith("/"):
                place = f"{path}, member {name}"
                yield _workbook(archive, name.rpartition("/")[2], place, unpacked_member(outer, member, place))


def _workbook(archive: Archive, name: str, place: str, content: bytes) -> Workbook:
    found = _NAME.fullmatch(name)
    if found is None:
        raise InputError(
            "has a name that is not 'Saved Data [START ]reftext[2] MODEL LENGTH.xlsx' nor "
            "'Saved Data [K ]reftext[2] LENGTH AVERAGES.xlsx'",
            source=place,
        )
    text = "text 2" if found["text"] else "text 1"
    number = found["start"]
    if text != archive.text or (number is None) != (archive.part == "main"):
        raise InputError(f"is not of the {archive.part} run of {archive.text}, as its archive is", source=place)
    return Workbook(
        archive=archive,
        place=place,
        is_averages=found["model"] is None,
        start=None if number is None else int(number),
        model=found["model"] or "",
        length=int(found["length"] or found["of"]),
        rows=_read_sheet(content, place),
    )


def check_sheet(book: Workbook) -> None:
    """Refuse a sheet of a window that has other columns or cells of another type; InputError names the place."""
    header = tuple(book.rows[0]) if book.rows else ()
    if header != _COLUMNS:
        raise InputError(f"has the columns {shown(header)}, should have {_COLUMNS}", source=book.place)
    if len(book.rows) == 1:
        raise InputError("has a header and no row", source=book.place)
    if book.model not in _MODEL_NAMES:
        raise unknown_choice("model", book.model, _MODEL_NAMES, source=book.place)
    checked(_ROWS.validate_python, dict(enumerate(book.rows[1:], start=2)), book.place, _COLUMNS)


def ranked_tokens(books: list[Workbook]) -> tuple[list[list[str]], list[list[float]]]:
    """Tokens and log-probabilities of every row, most probable first; InputError names the place of what is no list."""
    tokens: list[list[str]] = []
    logprobs: list[list[float]] = []
    for book in books:
        for number, row in enumerate(book.rows[1:], start=2):
            place = f"{book.place}, row {number}"
            names = checked(_TOKENS.validate_python, _literal(row[2]), f"{place}, {_COLUMNS[2]}")
            values = checked(_LOGPROBS.validate_python, _literal(row[3]), f"{place}, {_COLUMNS[3]}")
            if len(names) != len(values):
                problem = f"ranks {len(names)} tokens and has {len(values)} log-probabilities"
                raise InputError(problem, source=place, field=_COLUMNS[3])
            tokens.append(names)
            logprobs.append(values)
    return tokens, logprobs


def _literal(text: str) -> Any:
    """Parse what Python writes of a list; nothing in it is executed, and a text that is none stays one."""
    try:
        with warnings.catch_warnings():
            # Python warns of a backslash that means nothing, as if the text were a program of ours
            warnings.simplefilter("error")
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, Warning):
        return text


def _read_sheet(content: bytes, place: str) -> list[list[Any]]:
    from python_calamine import CalamineWorkbook  # noqa: PLC0415 - few studies need it

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(content))
        names = book.sheet_names
        rows: list[list[Any]] = book.get_sheet_by_index(0).to_python(skip_empty_area=False) if len(names) == 1 else []
    except BaseException as error:
        # a panic of the parser is no Exception
        if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        raise InputError(f"is not a readable workbook ({error})", source=place) from None
    if len(names) != 1:
        raise InputError(f"has the sheets {shown(names)}, should have one", source=place)
    return rows
