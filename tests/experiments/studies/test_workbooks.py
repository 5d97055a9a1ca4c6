"""The reader of workbooks: what would make the parser ask for all memory, or panic, never reaches it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.workbooks import read_sheet
from tests.experiments.studies.rankings.tiny_ranks import workbook

SHEET = "xl/worksheets/sheet1.xml"
ROWS = [["a", "b"], ["c", 1.5]]


def changed(change: Callable[[dict[str, bytes]], object]) -> bytes:
    """A small workbook with its parts changed in place."""
    with zipfile.ZipFile(io.BytesIO(workbook(ROWS))) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def in_sheet(old: bytes, new: bytes, name: str = SHEET) -> bytes:
    def change(parts: dict[str, bytes]) -> None:
        assert old in parts[name]
        parts[name] = parts[name].replace(old, new)

    return changed(change)


def test_a_small_sheet() -> None:
    assert read_sheet(workbook(ROWS), "book") == ROWS


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (in_sheet(b'r="B2"', b'r="XFD1048576"'), r"has a cell in row 1,048,576, column 16,384"),
        (in_sheet(b'r="B2"', b'r="ZZZZZZZZ99999999999"'), r"has a cell called 'ZZZZZZZZ99999999999'"),
        (in_sheet(b'r="B2"', b'r="&#88;FD1048576"'), r"has a cell in row 1,048,576, column 16,384"),
        (in_sheet(b'r="B2"', b"r='XFD1048576'"), r"has a cell in row 1,048,576, column 16,384"),
        (in_sheet(b'<c r="B2"', b'<c t="n"\n r = "XFD1048576"'), r"has a cell in row 1,048,576"),
        (in_sheet(b'r="B2"', b'r="b2"'), r"has a cell called 'b2'"),
        (in_sheet(b'r="B2"', b'r=""'), r"has a cell called ''"),
        (in_sheet(b'r="B2"', b'r="B0"'), r"has a cell called 'B0'"),
        (in_sheet(b'<row r="2">', b'<row r="-1">'), r"has a row called '-1'"),
        (in_sheet(b'<row r="2">', b'<row r="99999999999999999999">'), r"has a row called"),
        (in_sheet(b'<row r="2"><c r="A2"', b'<row r="1048576"><c'), r"has a cell in row 1,048,576|B2"),
        (
            in_sheet(b"<sheetData>", b"<sheetData>" + b"<row/>" * 2**20 + b'<row><c r="B9"/></row>'),
            r"has a cell in row",
        ),
        (in_sheet(b"</worksheet>", b""), r"is not valid XML"),
        (in_sheet(b"<worksheet", b'<!DOCTYPE x [<!ENTITY e "e">]><worksheet'), r"defines entities"),
        (changed(lambda parts: parts.update({SHEET: parts[SHEET].decode().encode("utf-16")})), r"is no UTF-8"),
        (changed(lambda parts: parts.update({"content.bin": b""})), r"content\.bin: is a part that"),
        (changed(lambda parts: parts.update({"mimetype": b"application/ods"})), r"mimetype: is a part that"),
        (changed(lambda parts: parts.pop(SHEET)), r"is not a readable workbook"),
        (changed(lambda parts: parts.pop("xl/workbook.xml")), r"Cannot detect file format|has the sheets"),
        (in_sheet(b"</sheets>", b'<sheet name="B" sheetId="2" r:id="r1"/></sheets>', "xl/workbook.xml"), r"the sheets"),
        (b"PK\x05\x06" + b"\0" * 18, r"is not a readable workbook"),
        (workbook(ROWS)[:-9], r"is not a readable workbook"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + workbook(ROWS), r"is no \.xlsx workbook"),
        (b"", r"is no \.xlsx workbook"),
    ],
)
def test_a_workbook_that_is_none_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=rf"^book.*({problem})"):
        read_sheet(content, "book")


def test_a_dimension_that_lies_asks_for_no_memory() -> None:
    content = in_sheet(b"<sheetData>", b'<dimension ref="A1:XFD1048576"/><sheetData>')
    assert read_sheet(content, "book") == ROWS
