"""Minimal pairs: a table with a better and a worse text in each row, as BLiMP has them, or a suite of SyntaxGym."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.content import file_sha256
from shannon_game.estimators.documents import validate_documents_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.result import loader, of_frames
from shannon_game.experiments.studies.documents.tokens import ALL, Document, documents_study
from shannon_game.experiments.studies.files import read_bytes
from shannon_game.experiments.studies.parsing import Note, add_notes, counting, objects, parse_json, some_of, utf8
from shannon_game.experiments.studies.plain_table import Table, table_of
from shannon_game.experiments.studies.table_file import TableFile, read_table
from shannon_game.inference.settings import Settings, Text, UserPath

# BLiMP's names come first
_USUAL = {"good": ("sentence_good", "good"), "bad": ("sentence_bad", "bad"), "phenomenon": ("UID", "phenomenon")}
_COMPARISON = re.compile(r"[\s(\[]*\((\d+);\s*%([^%]+)%\)\s*([<>])\s*\((\d+);\s*%([^%]+)%\)[\s)\]]*")


class PairsSettings(Settings):
    path: UserPath
    """A table (.csv, .tsv, .jsonl, .parquet), a folder of them as BLiMP's data, or a suite of SyntaxGym (.json)."""
    good: Text | None = None
    """Column with the better text, or the better continuation of a prefix; null: sentence_good, else good."""
    bad: Text | None = None
    """Column with the worse one; null: sentence_bad, else bad."""
    phenomenon: Text | None = None
    """Column with what a pair is of; null: UID, else phenomenon, else none."""
    prefix: Text | tuple[Text, Text] | None = None
    """Column with what stands before both texts and is not scored, or two, of the good and of the bad one."""
    id_field: Text | None = None
    """Column that names a pair; null: its row."""


@loader(PairsSettings)
def pairs(settings: PairsSettings) -> xr.Dataset:
    r"""Load minimal pairs as a documents study with two texts a pair.

    Of a suite of SyntaxGym, a prediction that compares one region under two conditions is a pair of continuations for
    each item: the regions before are the prefixes, and the better one is predicted to surprise less.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from shannon_game import pairs
    >>> with TemporaryDirectory() as folder:
    ...     length = (Path(folder) / "p.csv").write_text("good,bad\nRain fell.,Rain falled.\n")
    ...     pairs(path=Path(folder) / "p.csv")["is_good"].values.tolist()
    [True, False]
    """
    path = settings.path
    whole = parse_json(utf8(read_bytes(path), path), path) if path.suffix.lower() == ".json" else None
    if isinstance(whole, dict) and "predictions" in whole:
        suite, left_out = _suite(whole, path)
        table = replace(table_of(suite, str(path), of="pair", once=False), source=path, sha256=file_sha256(path))
        study = _study(table, settings.changed(prefix=("prefix_good", "prefix_bad"), id_field="pair"), path.stem)
        text = f"predictions that do not compare two regions with text, left out: {some_of(left_out)}"
        add_notes(study, counting(Note(text, len(left_out), "warning")))
        return study
    wanted = [name for names in _USUAL.values() for name in names]
    table = read_table(path, of="pair", how=TableFile(encoding="auto"), wanted=wanted, once=False)
    return _study(table, settings, path.stem)


@of_frames(PairsSettings, but=["path"])
def pair_study(given: pd.DataFrame, *, name: str = "pairs", **settings: Any) -> xr.Dataset:
    """Make a documents study of a DataFrame with a minimal pair in each row.

    Examples
    --------
    >>> import pandas as pd
    >>> from shannon_game import pair_study
    >>> pair_study(pd.DataFrame({"good": ["Rain fell."], "bad": ["Rain falled."]}))["text"].values.tolist()
    ['Rain fell.', 'Rain falled.']
    """
    read = PairsSettings(path=Path(name), **settings)
    return _study(table_of(given, name, of="pair", needed=["good", "bad"], once=False), read, name)


def _study(table: Table, settings: PairsSettings, name: str) -> xr.Dataset:
    usual = {what: [name for name in names if name in table.cells] for what, names in _USUAL.items()}
    usual |= {what: usual[what] or [what] for what in ("good", "bad")}
    columns = {what: getattr(settings, what) or next(iter(names), None) for what, names in usual.items()}
    prefix = settings.prefix if isinstance(settings.prefix, tuple) else (settings.prefix,) * 2
    columns |= {"id_field": settings.id_field, "prefix": prefix[0], "prefix of the bad text": prefix[1]}
    there = {what: column for what, column in columns.items() if column is not None}
    table.check_columns(there, f"{Set('study.good', 'NAME')} and the like say which column it is")
    texts = [table.filled(there[what]) for what in ("good", "bad")]
    for column, its in zip((there["good"], there["bad"]), texts, strict=True):
        table.refuse(np.array([not text.strip() for text in its]), column, "should be a text", its)
    before = [objects([""] * len(table)) if column is None else table.texts(column) for column in prefix]
    phenomenon = table.filled(there["phenomenon"]) if "phenomenon" in there else objects([ALL] * len(table))
    ids = table.ids(there["id_field"]) if "id_field" in there else objects([str(at + 1) for at in range(len(table))])
    are_same = (texts[0] == texts[1]) & (before[0] == before[1])
    table.refuse(are_same, there["bad"], "as the good text is: no pair")
    table.refuse(pd.Series(ids).duplicated().to_numpy(), there.get("id_field", ""), "as a pair before is called", ids)
    made = [
        Document(f"{pair} {what}", str(texts[number][at]), str(phenomenon[at]))
        for at, pair in enumerate(ids)
        for number, what in enumerate(("good", "bad"))
    ]
    study = documents_study(name, made, {name: table.sha256}, source=str(table.source), of_reader=table.notes)
    study["pair"] = "document", np.repeat(ids, 2)
    study["is_good"] = "document", np.tile([True, False], len(ids))
    if settings.prefix is not None:
        study["prefix"] = "document", np.column_stack(before).ravel()
    return validate_documents_study(study)


def _suite(whole: Mapping[str, Any], source: Path) -> tuple[pd.DataFrame, list[str]]:
    """Pairs of a suite, and the predictions that are none."""
    rows, left_out = list[dict[str, str]](), list[str]()
    try:
        name = str(whole.get("meta", {}).get("name", source.stem))
        for number, prediction in enumerate(whole["predictions"], start=1):
            found = _COMPARISON.fullmatch(prediction["formula"])
            if found is None:
                left_out.append(f"prediction {number}, {prediction['formula']}")
                continue
            sides = [(int(found[1]), found[2]), (int(found[4]), found[5])][:: 1 if found[3] == "<" else -1]
            for item in whole["items"]:
                contents = {one["condition_name"]: one["regions"] for one in item["conditions"]}
                parts = [_parts(contents[condition], region) for region, condition in sides]
                row = {"good": parts[0][1], "prefix_good": parts[0][0], "bad": parts[1][1], "prefix_bad": parts[1][0]}
                pair = f"{item['item_number']}, prediction {number}"
                if not (row["good"] and row["bad"]):
                    left_out.append(f"item {pair}")
                    continue
                rows.append(row | {"pair": pair, "phenomenon": f"{name}, prediction {number}"})
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"is no suite of SyntaxGym as it publishes them ({error!r})", source=source) from None
    if not rows:
        raise InputError(f"has no prediction that compares two regions ({some_of(left_out)})", source=source)
    return pd.DataFrame(rows, dtype=object), left_out


def _parts(regions: Sequence[Mapping[str, Any]], number: int) -> tuple[str, str]:
    """What stands before a region, and the region."""
    texts = {int(each["region_number"]): str(each["content"]).strip() for each in regions}
    return " ".join(text for at, text in sorted(texts.items()) if at < number and text), texts[number]
