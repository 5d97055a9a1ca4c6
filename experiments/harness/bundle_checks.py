"""What a person checks before data are shared: ids of people, and whose texts they are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from shannon_game.experiments.harness.tables import markdown_table

__all__ = ["Check", "check_bundle", "checks_page", "like_an_id", "without_texts"]

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
    return next((meaning for meaning, pattern in _LIKE_AN_ID.items() if pattern.search(text)), None)


def without_texts(study: str, tables: Mapping[str, pd.DataFrame]) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Leave columns with texts out where the study's owner has given no licence, and list them."""
    if _reason(study) is None:
        return dict(tables), []
    gone = {name: [column for column in _TEXT_COLUMNS if column in table] for name, table in tables.items()}
    kept = {name: table.drop(columns=gone[name]) for name, table in tables.items()}
    return kept, [f"{name}.csv: {column}" for name, columns in gone.items() for column in columns]


def check_bundle(
    study: str, tables: Mapping[str, pd.DataFrame], *, people: Sequence[str] = (), left_out: Sequence[str] = ()
) -> list[Check]:
    """Check tables that are to be shared: `people` are the pseudonyms of the study, `left_out` the columns without."""
    return [_ids(tables, people), _cells(tables), _licence(study, tables, left_out)]


def _ids(tables: Mapping[str, pd.DataFrame], people: Sequence[str]) -> Check:
    name = "ids of participants"
    ids = {text for table in tables.values() for text in _people(table)} - set(people)
    strange = [text for text in ids if not _PSEUDONYM.fullmatch(text)]
    if strange:
        # the ids themselves stay out of the page: they would be shared with it
        return Check(name, "warn", f"{len(strange)} ids in tables are none of the study and may be names. Are they?")
    if people:
        order = "in the order of their ids: who has the list of all ids can tell who is who"
        return Check(name, "pass", f"{len(people)} people are called {people[0]} to {people[-1]}, {order}.")
    return Check(name, "pass", "No study with people was read." if not ids else "All look like pseudonyms.")


def _cells(tables: Mapping[str, pd.DataFrame]) -> Check:
    found = []
    for name, table in tables.items():
        for column in table.columns:
            if pd.api.types.is_numeric_dtype(table[column]):
                continue
            for row, value in enumerate(table[column].tolist()):
                meaning = like_an_id(value) if isinstance(value, str) else None
                if meaning:
                    # the id itself stays out of the page: it would be shared with it
                    found.append(f"{name}.csv, row {row + 1}, {column}: {meaning}")
    what = "e-mail addresses and ids of platforms in tables"
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


def _id_columns(table: pd.DataFrame) -> list[str]:
    return [column for column in _ID_COLUMNS if column in table and not pd.api.types.is_float_dtype(table[column])]


def _people(table: pd.DataFrame) -> set[str]:
    return {str(value) for column in _id_columns(table) for value in table[column].tolist()}


def checks_page(checks: Sequence[Check]) -> str:
    """Write CHECKS.md."""
    n_warn = sum(check.verdict == "warn" for check in checks)
    said = f"{n_warn} of {len(checks)} need a person" if n_warn else "Nothing was found"
    table = pd.DataFrame([(check.verdict, check.name, check.found) for check in checks])
    return (
        f"# Checks before you share\n\n{said}. A program finds patterns, no meanings: read the tables once.\n\n"
        + markdown_table(table.set_axis(["verdict", "what", "found"], axis=1))
        + "\n"
    )
