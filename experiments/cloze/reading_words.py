"""Words with their surprisal, joined to reading times by text and word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import InstanceOf

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Ask, Load, Set, word
from shannon_game.experiments.studies.parsing import objects, some_of
from shannon_game.experiments.studies.plain_table import Table, table_of
from shannon_game.experiments.studies.table_file import TableFile, read_table
from shannon_game.inference.settings import Settings, Text, UserPath

# single precision writes 0 as a hair below it
_ROUNDED = 1e-5

GivenTable = UserPath | InstanceOf[pd.DataFrame]
"""A file, or in Python a DataFrame."""


class TimesFile(TableFile):
    """How the table of times stands in its file."""

    place: ClassVar[str] = "experiment.file"


class TimesColumns(Settings):
    """Names of the columns of the table of times."""

    text_id: Text | tuple[Text, ...] = "text_id"
    """The text or sentence, as the study calls it; several columns, such as [item, condition], name it together."""
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
    condition: Text | None = None
    """Condition of the experiment: adds ``regions.csv`` and a figure of times and surprisal by region and condition."""
    region: Text | None = None
    """Region of the sentence; null: the word's number."""


@dataclass(frozen=True, eq=False)
class TextWords:
    """Words by text and number (the index of both), and their surprisal in nats, a column per player."""

    word: pd.Series[str]
    surprisal: pd.DataFrame

    def before(self, values: pd.Series[Any], n: int) -> FloatArray:
        """What stood `n` words before each word of the same text; NaN where no word is known there."""
        text, number = (self.word.index.get_level_values(level) for level in (0, 1))
        found: FloatArray = values.reindex(pd.MultiIndex.from_arrays([text, number - n])).to_numpy(dtype=float)
        return found


@dataclass(frozen=True, eq=False)
class Times:
    """Reading times of words: columns ``at`` (position among the words), ``time`` and perhaps ``reader``."""

    rows: pd.DataFrame
    controls: pd.DataFrame
    """Numbers of the table, a column per control; NaN for an empty cell."""
    left_out: Mapping[str, int]
    """Why rows were left out, and how many."""


def place_index(text: NDArray[Any], number: NDArray[Any]) -> pd.MultiIndex:
    """Texts as strings, and whole numbers."""
    return pd.MultiIndex.from_arrays([objects([str(name) for name in text.tolist()]), number.astype(np.int64)])


def study_index(study: xr.Dataset, *, by_context: bool) -> pd.MultiIndex:
    """Text and number of every context of a cloze study; contexts that are alone are each a text of their own."""
    if not by_context:
        return place_index(study["text_id"].to_numpy(), study["word_num"].to_numpy())
    if "item_id" not in study:
        problem = f"names the contexts of the times, but the study has no ids ({Set('study.columns.context_id')})"
        raise InputError(problem, field=Set("experiment.columns.context_id"))
    return place_index(study["item_id"].to_numpy(), np.ones(study.sizes["item"]))


def _read(
    given: Path | pd.DataFrame,
    name: str,
    of: str,
    wanted: Sequence[str],
    how: TableFile | None = None,
    *,
    once: bool = False,
) -> Table:
    if isinstance(given, pd.DataFrame):
        return table_of(given, name, of=of, once=once)
    return read_table(given, of=of, how=how, wanted=wanted, once=once)


def scored_words(given: Path | pd.DataFrame, players: Sequence[str] | None, column: str) -> TextWords:
    """Words of ``words.csv`` of ``+exp=surprisal``, or of the folder of such a run; `column` has their surprisal."""
    if isinstance(given, Path) and given.is_dir():
        given /= "words.csv"
    path = given if isinstance(given, Path) else "surprisal"
    names = {name: name for name in ("document", "model", "word_num", "word", column)}
    table = _read(given, "surprisal", "word", list(names))
    table.check_columns(
        names, f"{Set('experiment.surprisal')} is words.csv of {Ask('surprisal')}, or the folder of its run"
    )
    model = table.filled("model")
    models = list(dict.fromkeys(model.tolist()))
    for name in players or ():
        if name not in models:
            raise unknown_choice("model", name, models, source=path)
    index = place_index(table.ids("document"), table.numbers("word_num", kind="whole"))
    rows = pd.DataFrame({"word": table.filled("word"), "nats": table.numbers(column, empty=True)}, index)
    cure = "should be 0 or more; are these log-probabilities? surprisal is minus their value"
    low = (rows["nats"] < -_ROUNDED).to_numpy() & ~(rows["nats"] > _ROUNDED).any()
    table.refuse(low, column, cure, rows["nats"].map("{:g}".format).to_numpy())
    rows["nats"] *= np.log(2) if column.endswith("bits") else 1
    again = rows.assign(model=model).set_index("model", append=True).index.duplicated()
    table.refuse(again, "word_num", "is there twice for a model")
    word = rows["word"][~index.duplicated()]
    kept = models if players is None else list(players)
    nats = {name: rows["nats"][model == name].reindex(word.index) for name in kept}
    for name, values in nats.items():
        if values.isna().all():
            cure = f"; {Set('experiment.surprisal_column', 'sum_bits')} takes the plain sum of its tokens" * (
                column != "sum_bits"
            )
            raise InputError(f"is empty for {name}{cure}", source=path, field=column)
    return TextWords(word, pd.DataFrame(nats))


def united(study: TextWords, scored: TextWords) -> TextWords:
    """Words of both; a model that both have is taken from the scored words."""
    own = study.surprisal.drop(columns=scored.surprisal.columns, errors="ignore")
    word = pd.concat([study.word, scored.word[~scored.word.index.isin(study.word.index)]])
    return TextWords(word, pd.concat([own.reindex(word.index), scored.surprisal.reindex(word.index)], axis=1))


def _by_context() -> str:
    setting = Set("experiment.columns.context_id", "NAME")
    return f"; times of single sentences: {setting} is the column with the study's own ids"


def table_times(
    given: Path | pd.DataFrame,
    columns: TimesColumns,
    controls: Sequence[str],
    *,
    has_ids: bool = False,
    how: TableFile | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Rows of the user's table, its controls and its notes; `has_ids`: the study names its contexts."""
    ids = (columns.text_id,) if isinstance(columns.text_id, str) else columns.text_id
    given_names = ("word_num", "word", "time", "condition", "region")
    named = {"text_id": ids[0], **{name: getattr(columns, name) for name in given_names}}
    if columns.context_id:
        named = {"context_id": columns.context_id, "time": columns.time, "word": columns.word}
    elif not columns.word_num and not columns.word:
        problem = f"is {word(None)}, and so is columns.word; one of them says which word of the text was read"
        raise InputError(problem, field=Set("experiment.columns.word_num"))
    named = {what: name for what, name in named.items() if name}
    others = [*controls, *([columns.participant] if columns.participant else []), *ids[1:]]
    # means over readers may be the same in two places
    once = columns.participant is not None
    table = _read(given, "times", "reading time", [*named.values(), *others], how, once=once)
    for what, name in named.items():
        other = _by_context() * (has_ids and what in ("text_id", "word_num"))
        table.check_columns({what: name}, f"{Set(f'experiment.columns.{what}', 'NAME')} says which one it is{other}")
    for name in others:
        table.check_columns(
            {name: name},
            f"{Set('experiment.controls', [...])} and {Set('experiment.columns.participant')} name columns",
        )
    time = table.numbers(columns.time, empty=True)
    table.refuse(time < 0, columns.time, "should be above 0", objects([f"{value:g}" for value in time.tolist()]))
    rows = pd.DataFrame({"time": time, "text": table.joined_ids([columns.context_id] if columns.context_id else ids)})
    if columns.context_id:
        rows["number"] = 1
    elif columns.word_num:
        rows["number"] = table.numbers(columns.word_num, kind="whole").astype(np.int64)
    if columns.word:
        rows["word"] = table.texts(columns.word)
    if columns.participant:
        rows["reader"] = table.ids(columns.participant)
    if columns.condition:
        rows["condition"] = table.filled(columns.condition)
    if columns.region:
        rows["region"] = table.filled(columns.region)
    values = pd.DataFrame({name: table.numbers(name, empty=True) for name in controls}, rows.index)
    if columns.participant:
        there = (time > 0) & ~rows["reader"].isna()
        copy = there & table.cells.duplicated().to_numpy()
        table.note("rows that are copies of others (exported twice?), left out", copy)
        again = rows[there & ~copy].duplicated([name for name in rows if name in ("reader", "text", "number", "word")])
        table.note("further times of a reader of the same word, all kept", again)
        rows, values = rows[~copy].reset_index(drop=True), values[~copy].reset_index(drop=True)
    return rows, values, tuple(f"{note.text}: {note.count:,}" if note.count else note.text for note in table.notes)


_READING = {
    "text": "reading_text",
    "number": "reading_word_num",
    "word": "reading_word",
    "time": "reading_ms",
    "reader": "reading_participant",
}
"""Columns of times -> variables of a study."""


def with_times(study: xr.Dataset, path: Path, columns: TimesColumns) -> xr.Dataset:
    """Study with the times of a table, as those of norms stand in theirs."""
    rows, _, _ = table_times(path, columns, ())
    return study.assign({_READING[str(name)]: ("reading", values.to_numpy()) for name, values in rows.items()})


def own_times(study: xr.Dataset) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, ...]]:
    """Rows of times that came with a study of public norms."""
    if "reading_ms" not in study:
        needed = f"is needed: {Set('experiment.times', 'FILE')}, with text_id, word_num, time"
        raise InputError(f"{needed}; {Load('norms')} has times", field=Set("experiment.times"))
    if (low := study["reading_ms"].to_numpy() < 0).any():
        at = int(np.argmax(low))
        problem = f"is {study['reading_ms'].to_numpy()[at]:g} at reading {at}, should be 0 or more"
        raise InputError(problem, source="study", field="reading_ms")
    there = {name: study[of].to_numpy() for name, of in _READING.items() if of in study}
    rows = pd.DataFrame(there)
    return rows, pd.DataFrame(index=rows.index), ()


def joined(
    words: TextWords,
    rows: pd.DataFrame,
    controls: pd.DataFrame,
    *,
    limits: tuple[float | None, float | None],
    source: object,
    has_ids: bool = False,
) -> Times:
    """Times of the words; rows of no known word, of another word, and outside the limits are left out and counted."""
    shown = plain_words(words.word)
    if "number" in rows:
        at = words.word.index.get_indexer(place_index(rows["text"].to_numpy(), rows["number"].to_numpy()))
    else:
        # a word that its text has twice is not told apart
        own = pd.MultiIndex.from_arrays([words.word.index.get_level_values(0), shown])
        once = np.flatnonzero(~own.duplicated(keep=False))
        found = own[once].get_indexer(pd.MultiIndex.from_arrays([rows["text"].astype(str), plain_words(rows["word"])]))
        at = np.where(found >= 0, once[found], -1)
    known, time = at >= 0, rows["time"].to_numpy()
    read = np.isfinite(time) & (time != 0)
    same = np.ones(at.size, dtype=bool)
    if "word" in rows:
        given, expected = plain_words(rows["word"]).to_numpy(), shown.to_numpy()[at]
        same = (given == "") | (expected == "") | (given == expected)
    fastest, slowest = limits
    with np.errstate(invalid="ignore"):
        inside = (time >= (fastest or 0)) & (time <= (slowest or np.inf))
    kept = known & read & same & inside
    there = set(words.word.index.get_level_values(0))
    strange = [text for text in dict.fromkeys(map(str, rows["text"][~known])) if text not in there]
    lacking = f" (it has no {some_of(strange, 3)})" if strange else ""
    if not kept.any():
        text, number = words.word.index[0]
        its = f"its first row is text {rows['text'].iloc[0]}" + f", word {rows['number'].iloc[0]}" * ("number" in rows)
        problem = f"has no time of a word of the study, such as text {text}, word {number}; {its}"
        raise InputError(problem + _by_context() * has_ids, source=source, field="word_num")
    return Times(
        rows.assign(at=at)[kept],
        controls[kept],
        {
            f"times are of words that have no surprisal in the study{lacking}": int((~known).sum()),
            "rows have no time or zero (words that were skipped)": int((known & ~read).sum()),
            "times are of a word that is another one in the study": int((known & read & ~same).sum()),
            f"times are outside {Set('experiment.fastest')} and slowest": int((known & read & same & ~inside).sum()),
        },
    )


def plain_words(words: pd.Series[str]) -> pd.Series[str]:
    """Letters and digits alone, without case."""
    plain = {word: "".join(filter(str.isalnum, word)).casefold() for word in set(words.tolist())}
    return words.map(plain)
