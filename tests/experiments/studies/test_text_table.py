"""Delimited text: nothing is shifted, swallowed or filled up, and every mistake says its line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies import table_file
from shannon_game.experiments.studies.plain_table import MOST_COLUMNS, Table
from shannon_game.experiments.studies.table_file import TableFile, read_table

ROWS = "who,said,n\nann,dog,1\nbo,cat,2\nce,cow,3\n"


def read(folder: Path, content: str | bytes, name: str = "t.csv", **how: Any) -> Table:
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return read_table(path, of="answer", how=TableFile(**how), wanted=["who", "said", "n"])


def noted(table: Table) -> list[tuple[str, int | None]]:
    return [(note.text, note.count) for note in table.notes]


def test_cells_are_what_they_are(tmp_path: Path) -> None:
    table = read(tmp_path, 'who,said,n\nNA,null," a ""b"" "\nTRUE,1.0,"x\ny"\n')
    assert table.cells.to_numpy().tolist() == [["NA", "null", ' a "b" '], ["TRUE", "1.0", "x\ny"]]
    assert read(tmp_path, 'who,said,n\na,"b,c\n', quoting="none", separator=",").names == ["who", "said", "n"]
    blank = read(tmp_path, "who,said,n\na,NULL,-99\n", empty=[None, -99])
    assert blank.cells.to_numpy().tolist() == [["a", "", ""]]


def test_what_is_repaired_is_noted(tmp_path: Path) -> None:
    assert noted(read(tmp_path, ROWS + ",,\n;;\n".replace(";", ","))) == [("rows without any entry, left out", 2)]
    (cp1252,) = noted(read(tmp_path, ROWS.replace("dog", "caf\u00e9").encode("cp1252")))
    assert "read as Windows-1252" in cp1252[0]
    assert read(tmp_path, "who\ta\tn\nx\t\u00e9\t1\n".encode("mac-roman"), encoding="mac-roman").texts("a") == [
        "\u00e9"
    ]
    table = read(tmp_path, "who;said;n\na;b;0,25\nc;d;1\n")
    assert table.numbers("n").tolist() == [0.25, 1]
    assert table.numbers("n").tolist() == [0.25, 1]
    assert noted(table) == [("numbers with a decimal comma in column n", 1)]


@pytest.mark.parametrize(
    ("content", "how", "message"),
    [
        ("who,said,n\n", {}, "holds no answer"),
        # pandas takes the first column for row names
        ("who,said,n\n1,ann,dog,1\n2,bo,cat,2\n", {}, r"line 2: has 4 fields, the header 3; .*row\.names = FALSE"),
        # and fills a short one up
        (ROWS + "di,a\n", {}, "line 5: has 2 fields, the header 3"),
        ("who,said,n,said\na,b,1,c\n", {}, "said: is the name of more than one column"),
        # a stray quotation mark swallows rows until the next one
        (
            'who,said,n\nann,"dog,1\nbo,cat,2\nce,cow",3\n',
            {},
            "line 2: a quoted field goes over several lines, each of",
        ),
        ('who,said,n\nann,"dog,1\nbo,cat,2\n', {}, "line 2: a quotation mark begins a field there that never ends"),
        ("who,said,n\na,b\0,1\n", {}, "line 2 has NUL bytes; no table"),
        (b"who,said,n\na,\xff\x81,1\n", {}, "is not cp1252: byte 0x81 in line 2; set encoding"),
        (b"who,said,n\na,\xff,1\n", {"encoding": "utf-8"}, "is not UTF-8: byte 0xff in line 2; set encoding"),
        (",".join(map(str, range(MOST_COLUMNS + 1))) + "\n1\n", {}, "has 10,001 columns, more than 10,000"),
        ("a\n" + "\n" * 20_000, {}, "has 10,001 empty lines among its first 10,002; it is no table"),
    ],
)
def test_no_table(tmp_path: Path, content: str | bytes, how: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, content, **how)


def test_packed_files_that_are_damaged_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv.gz"
    packed = gzip.compress(os.urandom(50_000).hex().encode())
    for damaged in (packed[:-9], packed[:1000] + b"x" * 50 + packed[1050:], b"who,said,n\n"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"t\.csv\.gz: cannot be read .*; the file is damaged or cut off"):
            read_table(path, of="answer")
    monkeypatch.setattr(table_file, "_UNPACKED_BYTES", 100_000)
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        read(tmp_path, "who,said,n\n" + "a,b,1\n" * 100_000, "t.csv.gz")
