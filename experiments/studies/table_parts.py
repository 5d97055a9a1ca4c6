"""Tables in parts: a folder with one file per participant, and the rows that a study is of."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies import workbooks
from shannon_game.experiments.studies.files import MissingFilesError
from shannon_game.experiments.studies.parsing import Note, objects, some_of
from shannon_game.experiments.studies.plain_table import Table

PARTICIPANT = "participant"
_TABLES = (".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson", ".parquet", ".pq", *workbooks.ENDINGS)
_WILD = set("*?[")


def table_files(path: Path) -> tuple[list[Path], list[Note]]:
    """Tables in a folder, or all files that a pattern such as ``data/*.csv`` is of; and what else is there."""
    try:
        inside = sorted(each for each in _matching(path) if not each.name.startswith((".", "~$")))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {getattr(error, 'strerror', None) or error}", source=path) from error
    if path.is_dir():
        files = [each for each in inside if ending_of(each) in _TABLES and each.is_file()]
        files = files or [each for each in inside if ending_of(each) == ".txt" and each.is_file()]
        endings = sorted({ending_of(each) for each in files})
        if len(endings) > 1:
            problem = f"is a folder with {' and '.join(endings)} files; {path}/*{endings[0]} takes those of one kind"
            raise InputError(problem, source=path)
        if not files:
            there = some_of([each.name for each in inside]) or "nothing"
            raise InputError(f"is a folder without a table (it has {there}); give the file", source=path)
        text = "files and folders in the folder that were not read: "
        others = [each.name for each in inside if each not in files]
        return files, [Note(text + some_of(others), len(others), "warning")] if others else []
    if not (files := [each for each in inside if each.is_file()]):
        raise MissingFilesError("there is no such file", source=path)
    return files, []


def _root(path: Path) -> Path:
    return path if path.is_dir() else next(parent for parent in path.parents if not _WILD & set(str(parent)))


def _matching(path: Path) -> Iterator[Path]:
    return path.iterdir() if path.is_dir() else _root(path).glob(str(path.relative_to(_root(path))))


def is_several(path: Path) -> bool:
    """Whether a path is a folder, or a pattern that no file is called by."""
    return path.is_dir() or (bool(_WILD & set(str(path))) and not path.exists())


def ending_of(path: Path) -> str:
    """Ending of a file's name, in small letters and without that of a packed one."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def together(path: Path, files: Sequence[Path], tables: Sequence[Table], notes: Sequence[Note]) -> Table:
    """One table of all files; where none of them has a column participant, it is the file's name."""
    every = list(dict.fromkeys(name for table in tables for name in table.names))
    short = [path.name for path, table in zip(files, tables, strict=True) if set(table.names) < set(every)]
    names = [each.name.split(".")[0] for each in files]
    if len(set(names)) < len(names):
        names = [str(each.relative_to(_root(path))) for each in files]
    parts = [table.cells.reindex(columns=every, fill_value="") for table in tables]
    cells = pd.concat(parts, ignore_index=True)
    found = [*notes, Note("files that are one table", len(files))]
    if short and len(short) < len(files):
        text = f"files without some of the columns that others have, which are empty there: {some_of(short)}"
        found.append(Note(text, len(short), "warning"))
    if PARTICIPANT not in every:
        cells[PARTICIPANT] = objects([name for name, part in zip(names, parts, strict=True) for _ in range(len(part))])
        found.append(Note("files without a column participant, which is read as the file's name", len(files)))
    counts = Counter[tuple[str, Literal["info", "warning"]]]()
    for note in (note for table in tables for note in table.notes):
        counts[note.text, note.level] += note.count or 0
    found += [Note(text, count or None, level) for (text, level), count in counts.items()]
    pairs = list(zip(files, tables, strict=True))
    place = objects([f"{table.unit} {at} of {file.name}" for file, table in pairs for at in table.place])
    digest = hashlib.sha256("".join(f"{file.name}\n{table.sha256}\n" for file, table in pairs).encode())
    labels = {name: label for table in tables for name, label in table.labels.items()}
    return Table(cells, path, digest.hexdigest(), place, "", tables[0].decimal, labels, found)


def chosen(
    table: Table, where: Mapping[str, Sequence[str]], where_not: Mapping[str, Sequence[str]], place: str = "study"
) -> Table:
    """Rows that hold some texts, and not some others; how many are left out is noted."""
    for asked, setting in ((where, "where"), (where_not, "where_not")):
        for column, values in asked.items():
            table.check_columns({column: column}, f"{Set(f'{place}.{setting}')} names it")
            cells = pd.Series(table.texts(column))
            # a program writes true as TRUE, True or true
            said = cells.where(~cells.str.lower().isin(("true", "false")), cells.str.lower())
            wanted = [value.lower() if value.lower() in ("true", "false") else value for value in values]
            unknown = [value for value in wanted if not (said == value).any()]
            if unknown:
                there = some_of([repr(value) for value in dict.fromkeys(said.tolist())], 10)
                raise table.error(f"is nowhere {unknown[0]!r}, as {place}.{setting} asks; it has {there}", column)
            kept = said.isin(wanted).to_numpy() ^ (setting == "where_not")
            if not kept.any():
                raise InputError(f"has no row left by {place}.{setting}={{{column}: ...}}", source=table.source)
            text = f"rows left out by {place}.{setting}: column {column} {'is not' if setting == 'where' else 'is'} "
            table.note(text + " or ".join(map(repr, wanted)), ~kept)
            table = table.take(np.flatnonzero(kept))
            table = replace(table, cells=table.cells.reset_index(drop=True))
    return table
