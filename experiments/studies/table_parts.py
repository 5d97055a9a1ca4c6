"""Tables in parts: a folder with one file per participant, and the rows that a study is of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.files import MissingFilesError
from shannon_game.experiments.studies.parsing import Note, objects, some_of
from shannon_game.experiments.studies.plain_table import Table

PARTICIPANT = "participant"
_TABLES = (".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson", ".parquet", ".pq")
_WILD = set("*?[")


def table_files(path: Path) -> tuple[list[Path], list[Note]]:
    """Tables in a folder, or all files that a pattern such as ``data/*.csv`` is of; and what else is there."""
    if path.is_dir():
        inside = sorted(each for each in path.iterdir() if not each.name.startswith((".", "~$")))
        files = [each for each in inside if _ending(each) in _TABLES and each.is_file()]
        files = files or [each for each in inside if _ending(each) == ".txt" and each.is_file()]
        endings = sorted({_ending(each) for each in files})
        if len(endings) > 1:
            problem = f"is a folder with {' and '.join(endings)} files; {path}/*{endings[0]} takes those of one kind"
            raise InputError(problem, source=path)
        if not files:
            there = some_of([each.name for each in inside]) or "nothing"
            raise InputError(f"is a folder without a table (it has {there}); give the file", source=path)
        text = "files and folders in the folder that were not read: "
        others = [each.name for each in inside if each not in files]
        return files, [Note(text + some_of(others), len(others), "warning")] if others else []
    root = next(parent for parent in path.parents if not _WILD & set(str(parent)))
    files = sorted(each for each in root.glob(str(path.relative_to(root))) if each.is_file() and each.name[0] != ".")
    if not files:
        raise MissingFilesError("there is no such file", source=path)
    return files, []


def is_several(path: Path) -> bool:
    """Whether a path is a folder, or a pattern that no file is called by."""
    return path.is_dir() or (bool(_WILD & set(str(path))) and not path.exists())


def _ending(path: Path) -> str:
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix


def together(path: Path, files: Sequence[Path], tables: Sequence[Table], notes: Sequence[Note]) -> Table:
    """One table of all files; where none of them has a column participant, it is the file's name."""
    every = list(dict.fromkeys(name for table in tables for name in table.names))
    short = [path.name for path, table in zip(files, tables, strict=True) if set(table.names) < set(every)]
    root = path if path.is_dir() else next(parent for parent in path.parents if not _WILD & set(str(parent)))
    names = [each.name.split(".")[0] for each in files]
    if len(set(names)) < len(names):
        names = [str(each.relative_to(root)) for each in files]
    parts = [table.cells.reindex(columns=every, fill_value="") for table in tables]
    cells = pd.concat(parts, ignore_index=True)
    found = [*notes, Note("files that are one table", len(files))]
    if short and len(short) < len(files):
        text = f"files without some of the columns that others have, which are empty there: {some_of(short)}"
        found.append(Note(text, len(short), "warning"))
    if PARTICIPANT not in every:
        cells[PARTICIPANT] = objects([name for name, part in zip(names, parts, strict=True) for _ in range(len(part))])
        found.append(
            Note("files by whose name the participant is called, as they have no column participant", len(files))
        )
    counts: dict[tuple[str, str], int] = {}
    for note in (note for table in tables for note in table.notes):
        counts[note.text, note.level] = counts.get((note.text, note.level), 0) + (note.count or 0)
    found += [
        Note(text, count or None, "warning" if level == "warning" else "info")
        for (text, level), count in counts.items()
    ]
    place = objects(
        [f"{table.unit} {at} of {name.name}" for table, name in zip(tables, files, strict=True) for at in table.place]
    )
    digest = hashlib.sha256(
        "".join(f"{name}\n{table.sha256}\n" for name, table in zip(names, tables, strict=True)).encode()
    )
    labels = {name: label for table in tables for name, label in table.labels.items()}
    return Table(cells, path, digest.hexdigest(), place, "", tables[0].decimal, labels, found)


def chosen(table: Table, where: Mapping[str, Sequence[str]], where_not: Mapping[str, Sequence[str]]) -> Table:
    """Rows that hold some texts, and not some others; how many are left out is noted."""
    for asked, setting in ((where, "where"), (where_not, "where_not")):
        for column, values in asked.items():
            table.check_columns({column: column}, f"study.{setting} names it")
            cells = pd.Series(table.texts(column))
            # a program writes true as TRUE, True or true
            said = cells.where(~cells.str.lower().isin(("true", "false")), cells.str.lower())
            wanted = [value.lower() if value.lower() in ("true", "false") else value for value in values]
            unknown = [value for value in wanted if not (said == value).any()]
            if unknown:
                there = some_of([repr(value) for value in dict.fromkeys(said.tolist())], 10)
                raise table.error(
                    f"is {unknown[0]!r} in no row, which study.{setting} asks for; it has {there}", column
                )
            kept = said.isin(wanted).to_numpy() ^ (setting == "where_not")
            if not kept.any():
                raise InputError(f"has no row left by study.{setting}={{{column}: ...}}", source=table.source)
            text = f"rows left out by study.{setting}: column {column} {'is not' if setting == 'where' else 'is'} "
            table.note(text + " or ".join(map(repr, wanted)), ~kept)
            table = table.take(np.flatnonzero(kept))
            table = replace(table, cells=table.cells.reset_index(drop=True))
    return table
