"""Plain texts as documents: a folder of ``.txt`` files, one ``.txt`` file, JSON lines, or a table with a text a row."""

from __future__ import annotations

import codecs
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
import xarray as xr
from pydantic import AfterValidator, Field

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.result import loader, of_frames
from shannon_game.experiments.studies.documents.regions import Spans, delimited, is_delimiter, regions_of_columns
from shannon_game.experiments.studies.documents.tokens import ALL, Document, documents_study
from shannon_game.experiments.studies.files import read_bytes
from shannon_game.experiments.studies.parsing import Note, decoded, json_records, shown
from shannon_game.experiments.studies.plain_table import Table, table_of
from shannon_game.experiments.studies.table_file import TableFile, known_encoding, read_table
from shannon_game.experiments.studies.workbooks import ENDINGS
from shannon_game.inference.settings import Settings, UserPath

_JSON_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv", ".json", ".parquet", ".gz", *ENDINGS)
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


_FIELDS = ("text", "id", "split", "group")
FieldName = Annotated[str, Field(min_length=1)]
"""Name of a field of JSON lines."""


class TextsSettings(Settings):
    path: UserPath
    """Folder of .txt files (subfolders are splits), one .txt file, JSON lines (.jsonl, .ndjson), or a table with a text
    in each row (.csv, .tsv, .json, .parquet, .xlsx)."""
    sheet: str | None = None
    """Sheet of a workbook; null: the only one with entries."""
    encoding: Annotated[str, AfterValidator(known_encoding)] = "utf-8"
    """Encoding of the files; a file in another one is refused."""
    duplicates: Literal["keep", "drop", "error"] = "keep"
    """What to do with a document that has the same text as another; kept and dropped ones are counted."""
    text_field: FieldName = "text"
    """Field of JSON lines, or column of a table, that holds the text."""
    id_field: FieldName | tuple[FieldName, ...] | None = None
    """Field or column that names the text, or columns of a table that name it together, such as [item, condition];
    null: file and line, or the row of a table."""
    split_field: FieldName | None = None
    """Field or column that names the text's split; null: none."""
    group_field: FieldName | None = None
    """Field or column that names the longer text of which rows are the sentences, in order; null: none."""
    regions: FieldName | tuple[FieldName, FieldName] | None = None
    """Regions of interest: a delimiter in the texts such as '|', a column with the region's words, or two columns with
    its first character (from 0) and the one after its last."""


@loader(TextsSettings)
def texts(settings: TextsSettings) -> xr.Dataset:
    """Load texts as a documents study.

    A folder gives one document a ``.txt`` file at any depth, named by its path in the folder; the first subfolder on
    that path is its split. JSON lines (``.jsonl``, ``.ndjson``) give one document per line, tables one per row.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from shannon_game import texts
    >>> with TemporaryDirectory() as folder:
    ...     length = Path(folder, "moby.txt").write_text("Call me Ishmael.")
    ...     texts(path=folder)["document"].values.tolist()
    ['moby.txt']
    """
    path = settings.path
    if not path.name.isprintable():
        problem = "has a name that is no printable UTF-8, and the study is called by it; rename it"
        raise InputError(problem, source=path, field=Set("study.path"))
    of_reader: list[Note] = []
    if path.is_dir():
        documents, digests, notes = _folder(path, settings)
    else:
        content = read_bytes(path)
        digests = {path.name: hashlib.sha256(content).hexdigest()}
        notes = Counter[str]()
        if path.suffix.lower() in _JSON_LINES:
            documents = _json_lines(content, path, settings, notes)
        elif path.suffix.lower() in _TABLES:
            encoding = "auto" if settings.encoding == "utf-8" else settings.encoding
            how = TableFile(encoding=encoding, sheet=settings.sheet)
            table = read_table(path, of="text", how=how, wanted=[settings.text_field], once=False)
            documents, of_reader = _rows(table, settings), table.notes
        elif path.suffix.lower() == ".txt":
            documents = [Document(path.name, _text(content, path, settings, notes))]
        else:
            problem = f"is no .txt, {', '.join((*_JSON_LINES, *_TABLES))} file and no folder of .txt files"
            raise InputError(problem, source=path, field="path")
    return documents_study(
        path.resolve().name,
        _with_regions(documents, settings, notes, source=path),
        digests,
        source=str(path),
        duplicates=settings.duplicates,
        notes=list(notes.items()),
        of_reader=of_reader,
    )


@of_frames(TextsSettings, but=["path"])
def text_study(given: pd.DataFrame | Sequence[str] | str, *, name: str = "texts", **settings: Any) -> xr.Dataset:
    """Make a documents study of texts, or of a DataFrame with a text in each row.

    Parameters
    ----------
    given : pandas.DataFrame, sequence of str, or str
        Texts, or a table with a column ``text``.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        ``text`` and ``split`` by ``document``.

    Examples
    --------
    >>> from shannon_game import text_study
    >>> text_study(["Rain fell.", "The old clock struck nine."])["document"].values.tolist()
    ['1', '2']
    """
    if not isinstance(given, pd.DataFrame):
        given = [given] if isinstance(given, str) else list(given)
        for number, text in enumerate(given, start=1):
            if not isinstance(text, str):
                raise InputError(f"is {text!r}, should be a string", source=name, field=f"text {number}")
    frame = given if isinstance(given, pd.DataFrame) else pd.DataFrame({"text": given}, dtype=object)
    read, notes = TextsSettings(path=Path(name), **settings), Counter[str]()
    table = table_of(frame, "texts", of="text", needed=[read.text_field], once=False)
    documents = _with_regions(_rows(table, read), read, notes, source=name)
    digest = hashlib.sha256("\0".join(document.text for document in documents).encode()).hexdigest()
    return documents_study(
        name,
        documents,
        {name: digest},
        source=name,
        duplicates=read.duplicates,
        notes=list(notes.items()),
        of_reader=table.notes,
    )


def _rows(table: Table, settings: TextsSettings) -> list[Document]:
    """Texts of a table, one per row."""
    given = {name: getattr(settings, f"{name}_field") for name in _FIELDS}
    ids = (given.pop("id"),) if isinstance(settings.id_field, str | None) else given.pop("id")
    for what, field in [*given.items(), *(("id", name) for name in ids)]:
        if field:
            table.check_columns({what: field}, f"study.{what}_field=NAME says which column it is")
    found = {name: table.filled(field) for name, field in given.items() if field}
    if settings.id_field:
        found["id"] = table.filled(ids[0]) if len(ids) == 1 else table.joined_ids(ids)
    texts = [str(text) for text in found["text"]]
    names = found.get("id", [str(at) for at in range(1, len(texts) + 1)])
    spans: list[Spans] = [()] * len(texts)
    if settings.regions is not None and not is_delimiter(settings.regions):
        spans = regions_of_columns(table, texts, settings.regions)
    return [
        Document(str(name), text, str(split), group=None if group is None else str(group), regions=regions)
        for name, text, split, group, regions in zip(
            names,
            texts,
            found.get("split", [ALL] * len(texts)),
            found.get("group", [None] * len(texts)),
            spans,
            strict=True,
        )
    ]


def _with_regions(
    documents: list[Document], settings: TextsSettings, notes: Counter[str], *, source: object
) -> list[Document]:
    mark = settings.regions
    if mark is None or isinstance(mark, tuple) or not is_delimiter(mark):
        if mark is not None and not any(document.regions for document in documents):
            problem = f"is {mark!r}, and no text has a region by it: columns are those of a table"
            raise InputError(problem, source=source, field=Set("study.regions"))
        return documents
    if not any(mark in document.text for document in documents):
        raise InputError(f"is {mark!r}, which no text holds", source=source, field=Set("study.regions"))
    return [delimited(document, mark, notes) for document in documents]


def _folder(root: Path, settings: TextsSettings) -> tuple[list[Document], dict[str, str], Counter[str]]:
    paths = sorted(
        path
        for path in root.rglob("*")
        if path.suffix.lower() == ".txt"
        and not path.is_dir()
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
    )
    if not paths:
        hint = next((path.name for path in sorted(root.rglob("*")) if path.suffix.lower() in _JSON_LINES), None)
        raise InputError(
            f"has no .txt file{f'; name the file {hint} itself to read it' if hint else ''}", source=root, field="path"
        )
    documents: list[Document] = []
    digests: dict[str, str] = {}
    notes = Counter[str]()
    for path in paths:
        content = read_bytes(path)
        place = path.relative_to(root)
        name = place.as_posix()
        if not name.isprintable():
            problem = "has a name that is no printable UTF-8, and documents are called by their files; rename it"
            raise InputError(problem, source=path)
        digests[name] = hashlib.sha256(content).hexdigest()
        split = place.parts[0] if len(place.parts) > 1 else ALL
        documents.append(Document(name, _text(content, path, settings, notes), split))
    return documents, digests, notes


def _text(content: bytes, path: Path, settings: TextsSettings, notes: Counter[str]) -> str:
    encoding = codecs.lookup(settings.encoding).name
    is_utf8 = encoding == "utf-8"
    mark = next((name for bom, name in _MARKS.items() if content.startswith(bom)), None)
    if is_utf8 and mark is not None:
        raise InputError(f"begins with the mark of {mark}; set {Set('study.encoding', mark)}", source=path)
    if is_utf8 and content.startswith(codecs.BOM_UTF8):
        notes["files with a UTF-8 byte order mark, which is no part of the text; removed"] += 1
    text = decoded(content, path, encoding, hint=f"set {Set('study.encoding')}, cp1252 for one, or convert the file")
    if "\0" in text:
        raise InputError(
            f"holds {text.count(chr(0))} null characters; it is no text file, or in another encoding "
            f"({Set('study.encoding', 'utf-16-le')} for one)",
            source=path,
        )
    return text


def _json_lines(content: bytes, path: Path, settings: TextsSettings, notes: Counter[str]) -> list[Document]:
    # the line ends of the file itself are no part of any text
    text = re.sub("\r\n?", "\n", _text(content, path, settings, Counter()))
    # the last line ends with a line end as all do; other empty lines are worth a word
    if empty := sum(not line.strip() for line in text.split("\n")[:-1]):
        notes["empty lines, skipped"] = empty
    documents = []
    for place, record in json_records(text, path):
        where = f"{path}, {place}"
        if not isinstance(record, dict):
            raise InputError(f"is {shown(record)}, should be an object with a text", source=where)
        given = {name: getattr(settings, f"{name}_field") for name in _FIELDS}
        if isinstance(settings.id_field, tuple):
            problem = "are columns of a table; a line has one field that names it"
            raise InputError(problem, source=where, field=Set("study.id_field"))
        found = {name: _field(record, field, f"{name}_field", where) for name, field in given.items() if field}
        name = found.get("id", f"{path.name}:{place.removeprefix('line ')}")
        documents.append(Document(name, found["text"], found.get("split", ALL), group=found.get("group")))
    return documents


def _field(record: Mapping[str, Any], field: str, setting: str, where: str) -> str:
    if field not in record:
        raise InputError(
            f"is missing; the line has {', '.join(sorted(record)) or 'no fields'} (study.{setting} names the field)",
            source=where,
            field=field,
        )
    value = record[field]
    if setting != "text_field" and type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise InputError(f"is {shown(value)}, should be a string", source=where, field=field)
    return value
