"""Words with their surprisal, joined to reading times by text and word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.experiments.studies.parsing import objects
from shannon_game.experiments.studies.plain_table import Table
from shannon_game.experiments.studies.table_file import read_table
from shannon_game.inference.settings import Settings, Text

_LETTERS = re.compile(r"\W")


class TimesColumns(Settings):
    """Names of the columns of the table of times."""

    text_id: Text = "text_id"
    """The text or sentence, as the study calls it."""
    word_num: Text | None = "word_num"
    """The word's number in it, as in the study; null: words are found by themselves (columns.word)."""
    word: Text | None = None
    """The word as it was shown; where it is another than the study's, its times are left out and counted."""
    context_id: Text | None = None
    """The context of a cloze study, by its own id, in place of text and number: for tables of single sentences."""
    time: Text = "time"
    """Reading time in milliseconds."""
    participant: Text | None = None
    """Who read: gives a mixed-effects regression; null: times are means over readers."""


@dataclass(frozen=True, eq=False)
class Words:
    """Words of texts, in the order in which they were read, with their surprisal by player."""

    text: NDArray[np.object_]
    number: NDArray[np.int64]
    word: NDArray[np.object_]
    surprisal: Mapping[str, FloatArray]

    def places(self) -> dict[tuple[str, int], int]:
        """Position of every word by text and number."""
        return {key: at for at, key in enumerate(zip(self.text.tolist(), self.number.tolist(), strict=True))}

    def before(self, values: FloatArray, n: int) -> FloatArray:
        """What stood `n` words before each word of the same text; NaN where no word is known there."""
        place = self.places()
        keys = zip(self.text.tolist(), self.number.tolist(), strict=True)
        at = np.array([place.get((text, number - n), -1) for text, number in keys], dtype=np.intp)
        return np.where(at >= 0, values[at], np.nan)

    def letters(self) -> FloatArray:
        """Letters of every word."""
        return np.array([len(word) for word in self.word.tolist()], dtype=float)


@dataclass(frozen=True, eq=False)
class Times:
    """Reading times of words."""

    word: NDArray[np.intp]
    """Position among the words."""
    value: FloatArray
    reader: NDArray[np.object_] | None
    controls: Mapping[str, FloatArray]
    """Numbers of the table; NaN for an empty cell."""
    left_out: Mapping[str, int]
    """Why rows were left out."""


def study_words(study: xr.Dataset, *, by_context: bool) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Text and number of every context of a cloze study; contexts that are alone are each a text of their own."""
    if by_context:
        if "item_id" not in study:
            problem = "names the contexts of the times, but the study has no ids (study.columns.context_id)"
            raise InputError(problem, field="experiment.columns.context_id")
        return study["item_id"].to_numpy().astype(str).astype(object), np.ones(study.sizes["item"], dtype=np.int64)
    return study["text_id"].to_numpy().astype(str).astype(object), study["word_num"].to_numpy().astype(np.int64)


def scored_words(path: Path, players: Sequence[str] | None) -> Words:
    """Words of ``words.csv`` of ``+exp=surprisal``, or of the folder of such a run."""
    path = path / "words.csv" if path.is_dir() else path
    names = {name: name for name in ("document", "model", "word_num", "word", "surprisal_nats")}
    table = read_table(path, of="word", wanted=names, once=False)
    table.check_columns(names, "experiment.surprisal is words.csv of +exp=surprisal, or the folder of its run")
    model, nats = table.filled("model"), table.numbers("surprisal_nats", empty=True)
    models = list(dict.fromkeys(model.tolist()))
    for name in players or ():
        if name not in models:
            raise unknown_choice("model", name, models, source=path)
    rows = pd.DataFrame({
        "text": table.filled("document"), "number": table.numbers("word_num", kind="whole").astype(int),
        "word": table.filled("word"), "model": model, "nats": nats,
    })  # fmt: skip
    again = rows.duplicated(["text", "number", "model"]).to_numpy()
    table.refuse(again, "word_num", "is there twice for one document and model")
    each = rows.drop_duplicates(["text", "number"])
    wide = rows.set_index(["text", "number"])
    index = pd.MultiIndex.from_frame(each[["text", "number"]])
    surprisal = {
        name: wide.loc[wide["model"] == name, "nats"].reindex(index).to_numpy(dtype=float)
        for name in models
        if players is None or name in players
    }
    return Words(objects(each["text"].tolist()), each["number"].to_numpy(), objects(each["word"].tolist()), surprisal)


def united(first: Words, second: Words) -> Words:
    """Words of both, each with what is known of its surprisal; where both have a word, the first says how it looks."""
    place = first.places()
    keys = list(zip(second.text.tolist(), second.number.tolist(), strict=True))
    new = np.array([key not in place for key in keys], dtype=bool)
    place |= {key: len(place) + at for at, key in enumerate(key for key, own in zip(keys, new, strict=True) if own)}
    n_first = len(first.text)
    surprisal = {
        name: np.concatenate([values, np.full(len(place) - n_first, np.nan)])
        for name, values in first.surprisal.items()
    }
    at = np.array([place[key] for key in keys], dtype=np.intp)
    for name, values in second.surprisal.items():
        surprisal[name] = np.full(len(place), np.nan)
        surprisal[name][at] = values
    return Words(
        np.concatenate([first.text, second.text[new]]),
        np.concatenate([first.number, second.number[new]]),
        np.concatenate([first.word, second.word[new]]),
        surprisal,
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of times before they are joined."""

    text: NDArray[np.object_]
    number: NDArray[np.int64] | None
    word: NDArray[np.object_] | None
    time: FloatArray
    reader: NDArray[np.object_] | None
    controls: Mapping[str, FloatArray]


def table_times(path: Path, columns: TimesColumns, controls: Sequence[str]) -> _Rows:
    """Rows of the user's table."""
    places = {"context_id": columns.context_id} if columns.context_id else {"text_id": columns.text_id}
    if not columns.context_id:
        places |= {"word_num": columns.word_num} if columns.word_num else {}
        if not columns.word_num and not columns.word:
            problem = "is null, and so is columns.word; one of them says which word of the text was read"
            raise InputError(problem, field="experiment.columns.word_num")
    named = {**places, **({"word": columns.word} if columns.word else {}), "time": columns.time}
    others = [*controls, *([columns.participant] if columns.participant else [])]
    table = read_table(path, of="reading time", wanted=[*filter(None, named.values()), *others], once=False)
    for what, name in named.items():
        table.check_columns({what: str(name)}, f"experiment.columns.{what}=NAME says which one it is")
    for name in others:
        table.check_columns({name: name}, "experiment.controls=[...] and experiment.columns.participant name columns")
    time = table.numbers(columns.time, empty=True)
    table.refuse(time < 0, columns.time, "should be above 0", objects([f"{value:g}" for value in time.tolist()]))
    return _Rows(
        text=table.filled(columns.context_id or columns.text_id),
        number=_numbers(table, None if columns.context_id else columns.word_num, len(time), columns.context_id),
        word=table.texts(columns.word) if columns.word else None,
        time=time,
        reader=table.filled(columns.participant) if columns.participant else None,
        controls={name: table.numbers(name, empty=True) for name in controls},
    )


def _numbers(table: Table, column: str | None, n: int, context_id: str | None) -> NDArray[np.int64] | None:
    if context_id:
        return np.ones(n, dtype=np.int64)
    return table.numbers(column, kind="whole").astype(np.int64) if column else None


def own_times(study: xr.Dataset) -> _Rows:
    """Times that came with a study of public norms."""
    return _Rows(
        text=study["reading_text"].to_numpy().astype(object),
        number=study["reading_word_num"].to_numpy().astype(np.int64),
        word=study["reading_word"].to_numpy().astype(object),
        time=study["reading_ms"].to_numpy(),
        reader=study["reading_participant"].to_numpy().astype(object) if "reading_participant" in study else None,
        controls={},
    )


def joined(words: Words, rows: _Rows, *, fastest: float | None, slowest: float | None, source: object) -> Times:
    """Times of the words; rows of no known word, of another word, and outside the range are left out and counted."""
    item, shown = _items(words, rows), np.array([_plain(word) for word in words.word.tolist()], dtype=object)
    known, read = item >= 0, np.isfinite(rows.time) & (rows.time != 0)
    same = np.ones(item.size, dtype=bool)
    if rows.word is not None and rows.number is not None:
        given = [_plain(word) for word in rows.word.tolist()]
        pairs = zip(given, shown[item].tolist(), strict=True)
        same = np.array([not own or not word or own == word for own, word in pairs], dtype=bool)
    inside = np.ones(item.size, dtype=bool)
    with np.errstate(invalid="ignore"):
        inside &= rows.time >= (fastest or 0)
        inside &= rows.time <= (np.inf if slowest is None else slowest)
    kept = known & read & same & inside
    if not kept.any():
        problem = f"has no time of a word of the study, such as text {words.text[0]}, word {words.number[0]}"
        number = "" if rows.number is None else f", word {int(rows.number[0])}"
        raise InputError(f"{problem}; its first row is text {rows.text[0]}{number}", source=source, field="word_num")
    return Times(
        word=item[kept],
        value=rows.time[kept],
        reader=None if rows.reader is None else rows.reader[kept],
        controls={name: values[kept] for name, values in rows.controls.items()},
        left_out={
            "times are of words that have no surprisal in the study": int((~known).sum()),
            "rows have no time or zero (words that were skipped)": int((known & ~read).sum()),
            "times are of a word that is another one in the study": int((known & read & ~same).sum()),
            "times are outside experiment.fastest and slowest": int((known & read & same & ~inside).sum()),
        },
    )


def _items(words: Words, rows: _Rows) -> NDArray[np.intp]:
    """Position of each row's word; -1 for none, and for a word that its text has twice where words have no number."""
    if rows.number is not None:
        place = words.places()
        keys = zip(map(str, rows.text.tolist()), rows.number.tolist(), strict=True)
        return np.array([place.get(key, -1) for key in keys], dtype=np.intp)
    own = list(zip(words.text.tolist(), map(_plain, words.word.tolist()), strict=True))
    count = Counter(own)
    by_word = {key: at for at, key in enumerate(own) if count[key] == 1}
    said = [] if rows.word is None else rows.word.tolist()
    pairs = zip(map(str, rows.text.tolist()), map(_plain, said), strict=True)
    return np.array([by_word.get(pair, -1) for pair in pairs], dtype=np.intp)


def _plain(word: str) -> str:
    return _LETTERS.sub("", word).casefold()
