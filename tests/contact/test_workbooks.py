"""Tables that people keep in Excel: sheets, typed cells, wide layouts; what has no value is refused by its name."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.table_file import TableFile, read_table

ROWS: list[list[Any]] = [["participant", "item", "word"], [1, "S1", "ham"], [2, "S1", "bread"], ["3", "S2", 7]]


def saved(path: Path, change: Callable[[Workbook], None] = lambda book: None) -> Path:
    book = Workbook()
    book.active.title = "answers"
    for row in ROWS:
        book.active.append(row)
    change(book)
    book.save(path)
    return path


def texts(path: Path, **how: Any) -> dict[str, list[str]]:
    table = read_table(path, of="answer", how=TableFile(**how))
    return {name: list(table.texts(name)) for name in table.names}


def test_a_sheet_is_what_its_export_is(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n".join(",".join(map(str, row)) for row in ROWS))
    assert texts(saved(tmp_path / "a.xlsx")) == texts(tmp_path / "a.csv")
    assert texts(tmp_path / "a.xlsx", empty=[7])["word"] == ["ham", "bread", ""]

    def beside(book: Workbook) -> None:
        book.create_sheet("codes").append(["code", "meaning"])
        book["answers"].insert_rows(1, 2)
        book["answers"]["A1"] = "exported in May"
        book["answers"]["F9"] = ""

    assert texts(saved(tmp_path / "two.xlsx", beside), sheet="answers", skip=1) == texts(tmp_path / "a.csv")


def test_a_wide_sheet_is_a_cloze_study(tmp_path: Path) -> None:
    from shannon_game import cloze_table

    def wide(book: Workbook) -> None:
        book.remove(book["answers"])
        sheet = book.create_sheet("wide")
        sheet.append(["id", "S1", "S2"])
        sheet.append([11, "ham", "tea"])
        sheet.append([12, "bread", None])

    study = cloze_table(path=saved(tmp_path / "wide.xlsx", wide), wide={"items": "S*"}, columns={"participant": "id"})
    assert study["item_id"].to_numpy().tolist() == ["S1", "S2"]
    assert sorted(map(str, study["word_text"].to_numpy())) == ["bread", "ham", "tea"]


def _set(cell: str, value: object) -> Callable[[Workbook], None]:
    def change(book: Workbook) -> None:
        book["answers"][cell] = value
        if value == "#N/A":
            book["answers"][cell].data_type = "e"

    return change


@pytest.mark.parametrize(
    ("change", "how", "message"),
    [
        (_set("C3", "=A3&B3"), {}, "sheet answers: has a formula without a value in C3"),
        (_set("C3", "#N/A"), {}, "sheet answers: has the error #N/A in C3"),
        (lambda book: book["answers"].merge_cells("A1:B1"), {}, "has the merged cells A1:B1"),
        (lambda book: book.create_sheet("more").append(["x"]), {}, "has the sheets answers, more; .*takes the first"),
        (lambda book: None, {"sheet": "other"}, "is 'other'; the workbook has answers"),
        (lambda book: book["answers"].delete_rows(1, 9), {}, "is empty"),
        (_set("C1", "item"), {}, "is the name of more than one column"),
    ],
)
def test_what_is_no_table_is_refused(
    change: Callable[[Workbook], None], how: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        texts(saved(tmp_path / "a.xlsx", change), **how)


def test_files_that_are_no_workbooks(tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    path.write_bytes(b"participant,word\n1,ham\n")
    with pytest.raises(InputError, match="is no workbook that can be read; has it a password"):
        texts(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", "<a/>")
    with pytest.raises(InputError, match="is no workbook that can be read"):
        texts(path)
    with pytest.raises(InputError, match=r"is a workbook; save it as \.xlsx"):
        texts(path.rename(tmp_path / "a.ods"))


def test_dates_that_excel_makes_of_words_are_noted(tmp_path: Path) -> None:
    table = read_table(saved(tmp_path / "a.xlsx", _set("C2", dt.datetime(2024, 3, 1))), of="answer")
    assert table.texts("word")[0] == "2024-03-01"
    assert any(note.level == "warning" and "word" in note.text for note in table.notes)
