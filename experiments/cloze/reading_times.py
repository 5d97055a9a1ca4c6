"""``+exp=reading_times``: how much longer a word is read, the less people and models expect it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze import StudyWords, target_surprisal
from shannon_game.estimators.cloze.study import context_labels, entry_positions
from shannon_game.estimators.documents import ClusteredRegression, clustered_regression
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions
from shannon_game.experiments.cloze.figures import colours, label
from shannon_game.experiments.cloze.settings import ClozeSettings, chosen_models, words_of
from shannon_game.experiments.harness.figures import Series
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.questions import bullets
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.experiments.studies.table_file import read_table
from shannon_game.inference.settings import Names, Probability, Settings, Text, UserPath

PEOPLE = "people"
_UNITS = {"ms": "ms per nat", "log": "ln ms per nat"}
_LENGTH, _PLACE, _OWN, _BEFORE = "letters", "place in the text", "surprisal", "surprisal of the word before"


class TimesColumns(Settings):
    """Names of the columns of the table of times."""

    text_id: Text = "text_id"
    """The text, as the study calls it."""
    word_num: Text = "word_num"
    """The word's number in it, as in the study."""
    time: Text = "time"
    """Reading time in milliseconds."""
    participant: Text | None = None
    """Who read; null: times are means over readers."""


class ReadingTimesSettings(ClozeSettings):
    """Settings of :func:`reading_times`."""

    times: UserPath | None = None
    """Table (CSV, TSV, Parquet) with a row per reading time, or a row per word."""
    columns: TimesColumns = TimesColumns()
    """Names of its columns."""
    controls: Names = ()
    """Columns of it that are numbers and enter the regression, such as [log_frequency]."""
    scale: Literal["ms", "log"] = "ms"
    """Times as they are, or their natural logarithms."""
    spillover: bool = True
    """Let the surprisal of the word before have a slope, too; words without one are then left out."""
    interval: Probability = 0.9
    """Probability inside the intervals."""


@dataclass(frozen=True, eq=False)
class _Times:
    item: NDArray[np.intp]
    value: FloatArray
    reader: NDArray[np.object_] | None
    controls: dict[str, FloatArray]
    n_without_context: int
    n_without_time: int


@experiment(ReadingTimesSettings)
def reading_times(study: xr.Dataset, settings: ReadingTimesSettings) -> ExperimentResult:
    """Regress reading times on the surprisal of people and of models, beside the word's length and place.

    A row per player: ``slope`` is what a nat of the word's own surprisal adds to its time (ms, or ln ms),
    ``spillover`` what a nat of the word before adds, ``loglik_gain_nats`` what both add to the log-likelihood of a
    time. ``beside_people`` and ``people_beside`` are the slopes of the player and of people in one regression.
    ``items.csv`` has the surprisal and the mean time of every word.
    """
    if settings.times is None:
        raise InputError("is needed: a table with text_id, word_num and time", field="experiment.times")
    models = chosen_models(settings, study, needed=False)
    words = words_of(settings, study, models)
    surprisal = {PEOPLE: target_surprisal(words.answers(), words.target)}
    surprisal |= {name: _of_model(study, words, name) for name in models}
    times = _read(study, settings, settings.times)
    rows = [_row(study, settings, name, surprisal, times) for name in surprisal]
    table = pd.DataFrame(rows)
    items = _items(study, surprisal, times)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(table_variables(table, "row") | table_variables(items.add_prefix("word_"), "word")),
        figures={"reading_times": reading_times_figure(table, settings.scale, str(study.attrs.get("name", "")))},
        text=_summary(table, settings),
        warnings=(*answer_warnings(words), *_warnings(times)),
        tables={"items": items},
    )


def _of_model(study: xr.Dataset, words: StudyWords, name: str) -> FloatArray:
    """Exact where the study has the log-probability of the word that came, else from the model's samples."""
    found = np.full(study.sizes["item"], np.nan)
    model = words.models[name]
    found[model.item] = target_surprisal(model.counts, words.target[model.item])
    sources = study["source"].to_numpy().astype(str).tolist()
    if "corpus" in sources and "sample_logprob" in study:
        entries = entry_positions(study, name)
        mine = np.isin(study["sample_entry"].to_numpy(), entries)
        mine &= study["sample_source"].to_numpy() == sources.index("corpus")
        mine &= np.isfinite(study["sample_logprob"].to_numpy())
        entry = study["sample_entry"].to_numpy()[mine]
        found[item_positions(study, "entry_item")[entry]] = -study["sample_logprob"].to_numpy()[mine]
    return found


def _read(study: xr.Dataset, settings: ReadingTimesSettings, path: Path) -> _Times:
    columns = settings.columns
    named = {name: getattr(columns, name) for name in ("text_id", "word_num", "time")}
    others = [*settings.controls, *([columns.participant] if columns.participant else [])]
    table = read_table(path, of="reading time", wanted=[*named.values(), *others])
    for what, name in named.items():
        table.check_columns({what: name}, f"experiment.columns.{what}=NAME says which one it is")
    for name in others:
        table.check_columns({name: name}, "experiment.controls=[...] and experiment.columns.participant name columns")
    time = table.numbers(columns.time, empty=True)
    # a skipped word has no time, or zero
    read = np.isfinite(time) & (time != 0)
    for row in np.flatnonzero(time < 0)[:1].tolist():
        raise table.error(f"is {time[row]:g} in {table.where(row)}, should be above 0", columns.time)
    text, number = table.filled(columns.text_id), table.numbers(columns.word_num, kind="whole")
    place = {key: at for at, key in enumerate(_keys(study))}
    item = np.array([place.get((str(of), int(at)), -1) for of, at in zip(text, number, strict=True)], dtype=np.intp)
    kept = read & (item >= 0)
    if not kept.any():
        first = next(iter(place))
        problem = f"has no time of a context of the study, such as text {first[0]}, word {first[1]}"
        its = f"its first row is text {text[0]}, word {int(number[0])}"
        raise InputError(f"{problem}; {its}", source=path, field=columns.word_num)
    return _Times(
        item=item[kept],
        value=np.log(time[kept]) if settings.scale == "log" else time[kept],
        reader=table.filled(columns.participant)[kept] if columns.participant else None,
        controls={name: table.numbers(name)[kept] for name in settings.controls},
        n_without_context=int((item < 0).sum()),
        n_without_time=int((~read & (item >= 0)).sum()),
    )


def _keys(study: xr.Dataset) -> list[tuple[str, int]]:
    """Text of every word, and its number there."""
    texts, numbers = study["text_id"].to_numpy().tolist(), study["word_num"].to_numpy().tolist()
    return [(str(text), int(number)) for text, number in zip(texts, numbers, strict=True)]


def _before(study: xr.Dataset, values: FloatArray) -> FloatArray:
    keys = _keys(study)
    place = {key: at for at, key in enumerate(keys)}
    before = [place.get((text, number - 1), -1) for text, number in keys]
    return np.where(np.array(before) >= 0, values[before], np.nan)


def _row(
    study: xr.Dataset, settings: ReadingTimesSettings, name: str, surprisal: dict[str, FloatArray], times: _Times
) -> dict[str, Any]:
    players = list(dict.fromkeys([name, PEOPLE]))
    columns = {player: surprisal[player][times.item] for player in players}
    before = {player: _before(study, surprisal[player])[times.item] for player in players if settings.spillover}
    known = np.isfinite([*columns.values(), *before.values()]).all(axis=0)
    if known.sum() < 3:
        before_too = " and one of the word before; experiment.spillover=false asks for none" * settings.spillover
        problem = f"has {int(known.sum())} times of words with a surprisal of {name}{before_too}"
        raise InputError(problem, source=settings.times, field=settings.columns.time)
    item = times.item[known]
    text = study["text_id"].to_numpy()[item].astype(str)
    reader = None if times.reader is None else times.reader[known]
    controls = {
        _LENGTH: np.array([len(str(word)) for word in study["target_word"].to_numpy()], dtype=float)[item],
        _PLACE: study["word_num"].to_numpy()[item].astype(float),
        **{column: values[known] for column, values in times.controls.items()},
    }
    # what does not vary has no slope
    controls = {column: values for column, values in controls.items() if np.ptp(values) > 0}

    def fit(*of: str) -> ClusteredRegression:
        own = {f"{_OWN}, {player}": columns[player][known] for player in of}
        own |= {f"{_BEFORE}, {player}": before[player][known] for player in of if settings.spillover}
        return clustered_regression(
            times.value[known], {**controls, **own}, text, reader, probability=settings.interval
        )

    base, alone = fit(), fit(name)
    nothing = {"coefficient": np.nan, "se": np.nan}
    slope = alone.of(f"{_OWN}, {name}")
    both = fit(name, PEOPLE) if name != PEOPLE else None
    spill = alone.of(f"{_BEFORE}, {name}") if settings.spillover else nothing
    others = {
        "beside_people": nothing if both is None else both.of(f"{_OWN}, {name}"),
        "people_beside": nothing if both is None else both.of(f"{_OWN}, {PEOPLE}"),
    }
    counts: dict[str, Any] = {"n_words": item, "n_texts": text, "n_readers": [] if reader is None else reader}
    row: dict[str, Any] = {"player": name, "n_times": int(known.sum())}
    row |= {each: len(np.unique(of)) for each, of in counts.items()}
    row |= {"slope": slope["coefficient"], **{f"slope_{end}": slope[end] for end in ("se", "lower", "upper")}}
    row |= {"spillover": spill["coefficient"], "spillover_se": spill["se"]}
    row |= {"loglik_gain_nats": (alone.loglik_nats - base.loglik_nats) / alone.n}
    for each, found in others.items():
        row |= {each: found["coefficient"], f"{each}_se": found["se"]}
    return row


def _items(study: xr.Dataset, surprisal: dict[str, FloatArray], times: _Times) -> pd.DataFrame:
    n = study.sizes["item"]
    count = np.bincount(times.item, minlength=n)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(times.item, weights=times.value, minlength=n) / count
    table = {"item": context_labels(study), "word": study["target_word"].to_numpy().astype(str)}
    table |= {f"surprisal_nats_{name}": values for name, values in surprisal.items()}
    return pd.DataFrame({**table, "n_times": count, "mean_time": mean})


def _warnings(times: _Times) -> tuple[str, ...]:
    why = {
        "times are of words that are no contexts of the study": times.n_without_context,
        "rows have no time or zero (words that were skipped)": times.n_without_time,
    }
    return tuple(f"{n:,} {text}; left out" for text, n in why.items() if n)


def _summary(table: pd.DataFrame, settings: ReadingTimesSettings) -> str:
    number = ".1f" if settings.scale == "ms" else ".4f"
    line = (
        f"**{{label}}**: {{slope:{number}}} {_UNITS[settings.scale]} [{{slope_lower:{number}}}, "
        f"{{slope_upper:{number}}}] of the word's own surprisal; {{n_times:,}} times of {{n_words:,}} words"
    )
    controls = ", ".join(["the word's length", "its place in the text", *settings.controls])
    clustered = "texts and readers" if settings.columns.participant else "texts"
    return (
        f"{bullets(table.assign(label=table['player'].map(label)), line)}\n\nThe regression has {controls} beside "
        f"surprisal; {settings.interval:.0%} intervals, errors clustered by {clustered}. Gains of two players compare "
        "where both have the same words."
    )


def reading_times_figure(table: pd.DataFrame, scale: str, study_name: str = "") -> Figure:
    """Slope of reading times on every player's surprisal, with its interval."""
    palette = colours([name for name in table["player"] if name != PEOPLE]) | {PEOPLE: "black"}
    rows = table.assign(label=table["player"].map(label), colour=table["player"].map(palette))
    xlabel = f"slope of reading time on surprisal ({_UNITS[scale]})"
    series = [Series("slope", "slope_lower", "slope_upper")]
    return forest_figure(rows, series, xlabel, "Whose surprise is read in the times?", study_name)
