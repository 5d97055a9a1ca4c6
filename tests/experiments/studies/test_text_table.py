"""Delimited text: nothing is shifted, swallowed or filled up, and every mistake says its line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies import text_table
from shannon_game.experiments.studies.plain_table import MOST_COLUMNS, Table, table_of
from shannon_game.experiments.studies.table_file import read_table
from shannon_game.experiments.studies.table_settings import TableFile

ROWS = "who,said,n\nann,dog,1\nbo,cat,2\nce,cow,3\n"


def read(folder: Path, content: str | bytes, name: str = "t.csv", **how: Any) -> Table:
    path = folder / name
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return read_table(path, of="answer", how=TableFile(**how), wanted=["who", "said", "n"])


def noted(table: Table) -> list[tuple[str, int | None]]:
    return [(note.text, note.count) for note in table.notes]


@pytest.mark.parametrize(
    ("content", "name", "how"),
    [
        (ROWS, "t.csv", {}),
        (ROWS, "t.csv.gz", {}),
        (ROWS, "t.txt", {"separator": "comma"}),
        (ROWS.replace(",", "\t"), "t.tsv", {}),
        (ROWS.replace(",", "\t"), "t.csv", {}),
        (ROWS.replace(",", ";"), "t.csv", {}),
        (ROWS.replace(",", "|"), "t.csv", {}),
        (ROWS.replace(",", "~"), "t.csv", {"separator": "~"}),
        (ROWS.replace("\n", "\r\n"), "t.csv", {}),
        (ROWS.replace("\n", "\r"), "t.csv", {}),
        ("\ufeff" + ROWS, "t.csv", {}),
        ("\ufeff" + ROWS, "t.csv", {"encoding": "utf-8"}),
        (ROWS.encode("utf-16"), "t.csv", {}),
        (ROWS.encode("utf-16-le"), "t.csv", {"encoding": "utf-16-le"}),
        (" who , said,n \nann,dog,1\n\nbo,cat,2\n,,\nce,cow,3", "t.csv", {}),
        ('"who","said","n"\n"ann","dog","1"\n"bo","cat","2"\n"ce","cow","3"\n', "t.csv", {"quoting": "standard"}),
    ],
)
def test_the_same_table_in_many_dresses(tmp_path: Path, content: str | bytes, name: str, how: dict[str, Any]) -> None:
    table = read(tmp_path, content, name, **how)
    assert table.texts("who").tolist() == ["ann", "bo", "ce"]
    assert table.texts("said").tolist() == ["dog", "cat", "cow"]
    assert table.whole("n").tolist() == [1, 2, 3]


def test_cells_are_what_they_are(tmp_path: Path) -> None:
    table = read(tmp_path, 'who,said,n\nNA,null," a ""b"" "\nTRUE,1.0,"x\ny"\n')
    assert table.cells.to_numpy().tolist() == [["NA", "null", ' a "b" '], ["TRUE", "1.0", "x\ny"]]
    assert read(tmp_path, 'who,said,n\na,"b,c\n', quoting="none", separator=",").names == ["who", "said", "n"]
    blank = read(tmp_path, "who,said,n\na,NA,-99\n", empty=["NA", -99])
    assert blank.cells.to_numpy().tolist() == [["a", "", ""]]


def test_empty_lines_between_rows_are_nothing(tmp_path: Path) -> None:
    assert len(read(tmp_path, "who,said,n\n\n" + "".join(f"{row},b,1\n\n" for row in range(15_000))).cells) == 15_000


def test_lines_of_rows_that_go_over_several(tmp_path: Path) -> None:
    table = read(tmp_path, 'who,said,n\na,"x\ny",1\n\nb,z,bad\n')
    with pytest.raises(InputError, match=r"t\.csv, n: is 'bad' in line 5, should be a number"):
        table.numbers("n")


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


def test_the_export_of_a_survey_has_three_header_lines(tmp_path: Path) -> None:
    ids = ",".join(f'"{{""ImportId"":""{name}""}}"' for name in ("QID1", "QID2", "x"))
    text = f'who,said,n\nYour name?,"The cat, it",n\n{ids}\na,b,1\n'
    table = read(tmp_path, text)
    assert table.texts("who").tolist() == ["a"]
    assert table.labels["said"] == "The cat, it"
    assert noted(table)[0][1] == 2


@pytest.mark.parametrize(
    ("content", "how", "message"),
    [
        ("", {}, "t.csv: is empty"),
        ("who,said,n\n", {}, "holds no answer"),
        # pandas takes the first column for row names
        ("who,said,n\n1,ann,dog,1\n2,bo,cat,2\n", {}, r"line 2: has 4 fields, the header 3; .*row\.names = FALSE"),
        (ROWS + "di,a,b,4\n", {}, "line 5: has 4 fields, the header 3; quote fields that hold the separator"),
        # and fills a short one up
        (ROWS + "di,a\n", {}, "line 5: has 2 fields, the header 3"),
        ("who,said,n,said\na,b,1,c\n", {}, "said: is the name of more than one column"),
        # a stray quotation mark swallows rows until the next one
        (
            'who,said,n\nann,"dog,1\nbo,cat,2\nce,cow",3\n',
            {},
            "line 2: a quoted field goes over several lines, each of",
        ),
        ('who,said,n\nann,"dog,1\nbo,cat",2\n', {}, "line 2: .* stray quotation mark. study.quoting=none"),
        ('who,said,n\nann,"dog,1\nbo,cat,2\n', {}, "line 2: a quotation mark begins a field there that never ends"),
        ('who,said,n\nann,"my "dog" is",1\n', {}, "line 2: .*a quotation mark inside a quoted field is written twice"),
        ("who,said,n\na,b\0,1\n", {}, "line 2 has NUL bytes; no table"),
        (ROWS.encode("utf-16-le"), {}, "line 1 has NUL bytes; UTF-16 has them"),
        (b"who,said,n\na,\xff\x81,1\n", {}, "line 2: byte 0x81 is no cp1252; set study.encoding"),
        (b"who,said,n\na,\xff,1\n", {"encoding": "utf-8"}, "line 2: byte 0xff is no utf-8; set study.encoding"),
        (",".join(map(str, range(MOST_COLUMNS + 1))) + "\n1\n", {}, "has 10,001 columns, more than 10,000"),
        ("a\n" + "\n" * 20_000, {}, "has 10,001 empty lines among its first 10,002; it is no table"),
    ],
)
def test_no_table(tmp_path: Path, content: str | bytes, how: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, content, **how)


def test_a_text_may_look_like_rows_by_chance(tmp_path: Path) -> None:
    text = 'who,said,n\na,"x, y\nz",1\nb,"x\ny",1\nc,"x\ny",1\nd,"p,1\nq,r",2\n'
    assert noted(read(tmp_path, text))[0][1] == 1
    assert read(tmp_path, 'who,said,n\na,"p,1\nq,r",2\n', quoting="standard").texts("said").tolist() == ["p,1\nq,r"]


def test_files_that_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path, message in [
        (tmp_path / "absent.csv", "there is no such file"),
        (tmp_path, "is a folder, should be a regular file"),
        (tmp_path / "pipe.csv", "is a pipe, should be a regular file"),
        (Path("/dev/zero"), "is a device, should be a regular file"),
    ]:
        with pytest.raises(InputError, match=message):
            read_table(path, of="answer")


def test_packed_files_that_are_damaged_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv.gz"
    packed = gzip.compress(os.urandom(50_000).hex().encode())
    for damaged in (packed[:-9], packed[:1000] + b"x" * 50 + packed[1050:], b"who,said,n\n"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"t\.csv\.gz: cannot be read .*; the file is damaged or cut off"):
            read_table(path, of="answer")
    monkeypatch.setattr(text_table, "_UNPACKED_BYTES", 100_000)
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        read(tmp_path, "who,said,n\n" + "a,b,1\n" * 100_000, "t.csv.gz")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["0.5", "1_0"], "is '1_0' in row 2, should be a number"),
        (["0.5", "true"], "is 'true' in row 2"),
        ([0.5, True], "is 'True' in row 2"),
        ([True, False], "is 'True' in row 1"),
        (["0.5", "nan"], "is 'nan' in row 2"),
        (["0.5", "1e400"], "is '1e400' in row 2"),
        (["0.5", "0x10"], "is '0x10' in row 2"),
        (["0.5", "0,5"], "is '0,5' in row 2 and '0.5' in row 1; write all numbers with a point, or all"),
        (["1,5", "1,5,5"], "is '1,5,5' in row 2, should be a number"),
        (["0.5", ""], "is '' in row 2, should be a number"),
        (["0.5", b"1"], "is b'1' in row 2, should be a text or a number"),
        (["0.5", [1]], r"is \[1\] in row 2, should be a text or a number"),
    ],
)
def test_no_numbers(cells: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"mine, x: {message}"):
        table_of(pd.DataFrame({"x": pd.Series(cells, dtype=object)}), "mine", of="answer").numbers("x")


def test_decimal_says_which(tmp_path: Path) -> None:
    text = "who;said;n\na;b;1,5\nc;d;2\n"
    assert read(tmp_path, text, decimal="comma").numbers("n").tolist() == [1.5, 2]
    with pytest.raises(InputError, match=r"n: is '1,5' in line 2, has a comma, but study\.decimal is point"):
        read(tmp_path, text, decimal="point").numbers("n")
    with pytest.raises(InputError, match=r"n: is '1\.5' in line 2, has a point, but study.decimal is comma"):
        read(tmp_path, text.replace("1,5", "1.5"), decimal="comma").numbers("n")


@pytest.mark.parametrize("count", ["3000000000", "2.7", "-1", "1" + "0" * 400])
def test_counts_that_no_study_holds(tmp_path: Path, count: str) -> None:
    with pytest.raises(InputError, match=r"n: is '.* in line 2, should be a "):
        read(tmp_path, f"who,said,n\na,b,{count}\n").whole("n")


def test_shares() -> None:
    def shares(cells: list[Any], percent: bool) -> list[float]:
        return table_of(pd.DataFrame({"x": cells}), "mine", of="answer").shares("x", percent=percent).tolist()

    assert shares([0.25, 1.0], percent=False) == [0.25, 1]
    assert shares(["25%", "0.5"], percent=False) == [0.25, 0.5]
    assert shares([25, 100], percent=True) == [0.25, 1]
    with pytest.raises(InputError, match=r"x: is at most 0\.9, but study.percent=true says that these are percentages"):
        shares([0.25, 0.9], percent=True)


@pytest.mark.parametrize("name", ["zlib", "rot13", "base64", "undefined", "hex", "no-such"])
def test_encodings_that_are_none(name: str) -> None:
    with pytest.raises(InputError, match=f"encoding: is '{name}', should be auto, or an encoding of text"):
        TableFile(encoding=name)


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    large = 2**53 + 1
    frame = pd.DataFrame({"who": ["a", None], "n": pd.array([large, None], dtype="Int64"), "x": [0.5, np.nan]})
    frame.to_parquet(path)
    table = read_table(path, of="answer")
    assert table.texts("n").tolist() == [str(large), ""]
    assert table.texts("who").tolist() == ["a", ""]
    with pytest.raises(InputError, match="x: is '' in row 2, should be a number"):
        table.numbers("x")
    frame.iloc[:0].to_parquet(path)
    with pytest.raises(InputError, match="holds no answer"):
        read_table(path, of="answer")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="is no parquet file that can be read"):
        read_table(path, of="answer")
