"""What a person checks before data are shared: ids of people, and whose texts they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from shannon_game.experiments.harness.given_keys import HIDDEN, holds_secret

_LIKE_AN_ID = {
    "an e-mail address": re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    "an id of Prolific": re.compile(r"(?<![0-9a-fA-F])[0-9a-f]{24}(?![0-9a-fA-F])"),
    "an id of MTurk": re.compile(r"(?<!\w)A[0-9A-Z]{12,14}(?!\w)"),
    "an address of a computer": re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"),
}
_PSEUDONYM = re.compile(r"[A-Za-z]{0,12}[-_ ]?\d{1,6}")
_ID_COLUMNS = ("participant", "person", "people")
_TEXT_COLUMNS = ("context", "text", "target", "modal_answer", "modal_guess")

_UNLICENSED = {
    "lm_game": "the answers and texts of the comparison and top-1 games have no licence",
    "provo": "the answers and models' words come without a licence, and the texts are of newspapers and books",
    "rank_perplexity": "the stories and rankings have no licence",
}
"""Beginning of a study's name -> why its texts and single answers must not be handed on."""


@dataclass(frozen=True)
class Check:
    """One line of CHECKS.md: what was looked at, and what was found or is to do."""

    name: str
    verdict: Literal["pass", "warn"]
    found: str


def like_an_id(text: str) -> str | None:
    """Say what a text looks like that would tell who somebody is; None for nothing."""
    found = next((meaning for meaning, pattern in _LIKE_AN_ID.items() if pattern.search(text)), None)
    return "a password or a key" if holds_secret(text) else found


def without_texts(study: str, tables: Mapping[str, pd.DataFrame]) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Leave columns with texts out where the study's owner has given no licence, and list them."""
    if _reason(study) is None:
        return dict(tables), []
    gone = {name: [column for column in _TEXT_COLUMNS if column in table] for name, table in tables.items()}
    kept = {name: table.drop(columns=gone[name]) for name, table in tables.items()}
    return kept, [f"{name}.csv: {column}" for name, columns in gone.items() for column in columns]


def check_bundle(
    study: str,
    tables: Mapping[str, pd.DataFrame],
    *,
    people: Sequence[str] = (),
    left_out: Sequence[str] = (),
    settings: str = "",
) -> list[Check]:
    """Check what is to be shared: `people` are the pseudonyms of the study, `left_out` the columns without."""
    return [_ids(tables, people), _cells(tables), _licence(study, tables, left_out), _secrets(settings)]


def _secrets(settings: str) -> Check:
    what = "passwords and keys in settings"
    if holds_secret(settings) or HIDDEN in settings:
        return Check(what, "warn", f"One was given, and is {HIDDEN} here.")
    return Check(what, "pass", "None was found.")


def _ids(tables: Mapping[str, pd.DataFrame], people: Sequence[str]) -> Check:
    name = "ids of participants"
    columns = [table[column] for table in tables.values() for column in _ID_COLUMNS if column in table]
    ids = {str(value) for column in columns if column.dtype.kind != "f" for value in column} - set(people)
    strange = [text for text in ids if not _PSEUDONYM.fullmatch(text)]
    if strange:
        # the ids themselves stay out of the page: they would be shared with it
        return Check(name, "warn", f"{len(strange)} ids in tables are none of the study and may be names. Are they?")
    if people:
        order = "in the order of their ids: who has the list of all ids can tell who is who"
        return Check(name, "pass", f"{len(people)} people are called {people[0]} to {people[-1]}, {order}.")
    return Check(name, "pass", "No study with people was read." if not ids else "All look like pseudonyms.")


def _cells(tables: Mapping[str, pd.DataFrame]) -> Check:
    # the id itself stays out of the page: it would be shared with it
    found = [
        f"{name}.csv, row {row}, {column}: {meaning}"
        for name, table in tables.items()
        for column, cells in table.select_dtypes(exclude="number").items()
        for row, value in enumerate(cells, start=1)
        if isinstance(value, str) and (meaning := like_an_id(value))
    ]
    what = "e-mail addresses, ids of platforms, passwords and keys in tables"
    if found:
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        return Check(what, "warn", f"{'; '.join(found[:10])}{more}. Take them out before you share.")
    return Check(what, "pass", "None was found.")


def _licence(study: str, tables: Mapping[str, pd.DataFrame], left_out: Sequence[str]) -> Check:
    name, reason = "licence of the data", _reason(study)
    if reason is not None:
        gone = f" Left out here: {', '.join(left_out)}." if left_out else ""
        return Check(name, "warn", f"Do not share the data of study {study} themselves: {reason}.{gone}")
    if study.startswith(("simulated", "cloze_simulated", "bets_simulated")):
        return Check(name, "pass", "The study is simulated: nobody's texts or answers are in it.")
    texts = [f"{table}.csv: {column}" for table, own in tables.items() for column in _TEXT_COLUMNS if column in own]
    if texts:
        return Check(name, "warn", f"May you hand on the texts? They are in {', '.join(texts)}.")
    return Check(name, "warn", "Say in the README under which licence you share these tables.")


def _reason(study: str) -> str | None:
    return next((reason for name, reason in _UNLICENSED.items() if study.startswith(name)), None)
