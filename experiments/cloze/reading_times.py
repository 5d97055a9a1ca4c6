"""``+exp=reading_times``: how much longer a word is read, the less people and models expect it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze import StudyWords, target_surprisal
from shannon_game.estimators.cloze.study import context_labels, entry_positions
from shannon_game.estimators.documents import (
    ClusteredRegression,
    MixedRegression,
    clustered_regression,
    crossed_mean,
    mixed_regression,
)
from shannon_game.estimators.documents.clusters import t_half_width
from shannon_game.estimators.documents.reading_gain import held_out_densities, reader_slope, text_folds
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import item_positions
from shannon_game.estimators.messages import Ask, Set
from shannon_game.estimators.schema import KIND
from shannon_game.experiments.cloze.figures import label
from shannon_game.experiments.cloze.reading_regions import region_means, regions_figure
from shannon_game.experiments.cloze.reading_words import (
    GivenTable,
    TextWords,
    Times,
    TimesColumns,
    TimesFile,
    joined,
    own_times,
    scored_words,
    study_index,
    table_times,
    united,
)
from shannon_game.experiments.cloze.settings import ClozeSettings, chosen_models, cluster_se, words_of
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import player_colours
from shannon_game.experiments.harness.marks import mark, named
from shannon_game.experiments.harness.plots import bars
from shannon_game.experiments.harness.questions import bullets, one_panel
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.settings import Names, Positive, Probability

PEOPLE = "people"
CONTROLS = "controls alone"
_TIMES = {"ms": "ms", "log": "ln ms"}
_UNITS = {scale: f"{unit} per nat" for scale, unit in _TIMES.items()}
_LENGTH, _PLACE = "letters", "place in the text"
_ENDS = "se", "lower", "upper"
# pairs of players that the report compares in words
_PAIRS = 3


class ReadingTimesRow(column.Row):
    """One player, under the setting scale: times in ms, or ln ms."""

    player: str = column.key("people, or a model", players=True)
    n_times: int = column.context("times")
    n_words: int = column.context("words")
    n_texts: int = column.context("texts")
    n_readers: int = column.context("readers; 0 where times are means over them")
    slope: float = column.headline("what a nat adds to a word's time", se="slope_se", interval="slope_{}")
    spillover_1: float | None = column.estimate(
        "that of the word before", se="spillover_1_se", interval="spillover_1_{}"
    )
    spillover_2: float | None = column.estimate(
        "that of the word two before", se="spillover_2_se", interval="spillover_2_{}"
    )
    spillover_3: float | None = column.estimate(
        "that of the word three before", se="spillover_3_se", interval="spillover_3_{}"
    )
    gain_nats: float = column.estimate("log-density that it adds to a time held out", unit="nats", interval="gain_{}")
    sd_reader: float | None = column.detail("standard deviation of readers' intercepts")
    sd_slope: float | None = column.detail("that of readers' slopes")
    sd_word: float | None = column.detail("that of words' intercepts")
    sd_residual: float | None = column.detail("that of what is left")
    beside_people: float | None = column.estimate(
        "slope beside that of people", se="beside_people_se", interval="beside_people_{}"
    )
    people_beside: float | None = column.estimate(
        "people's slope beside it", se="people_beside_se", interval="people_beside_{}"
    )


class ReadingTimesSettings(ClozeSettings):
    surprisal: GivenTable | None = None
    """words.csv of surprisal, or the folder of its run: models' surprisal, by document and word number."""
    surprisal_column: Literal["surprisal_nats", "sum_bits"] = "surprisal_nats"
    """Surprisal of the word as a word, or the plain sum of its tokens, which endpoints give too."""
    times: GivenTable | None = None
    """Table (CSV, TSV, Parquet, JSON, results of PCIbex, or a folder with one file per participant) with a row per
    reading time, or a row per word; null: the times that came with the study (of norms)."""
    file: TimesFile = TimesFile()
    """How it stands in its file, and which rows of it are read, such as {where: {Controller name: DashedSentence}}."""
    columns: TimesColumns = TimesColumns()
    """Names of its columns."""
    controls: Names = ()
    """Columns of it that are numbers and enter the regression, such as [log_frequency]."""
    baseline: Names = ()
    """Models whose surprisal is a control too, such as a unigram model for log frequency."""
    scale: Literal["ms", "log"] = "ms"
    """Times as they are, or their natural logarithms."""
    fastest: Positive | None = None
    """Leave shorter times out (ms), such as 100."""
    slowest: Positive | None = None
    """Leave longer times out (ms), such as 3000."""
    spillover: Annotated[int, Field(ge=0, le=3)] = 1
    """Previous words of the same text whose surprisal and length have slopes, too; words without them are left out."""
    interval: Probability = 0.9
    """Probability inside the intervals."""


@dataclass(frozen=True, eq=False)
class RegressionData:
    """What every regression takes: the same times for all players."""

    value: FloatArray
    word: NDArray[np.intp]
    text: NDArray[np.object_]
    reader: NDArray[np.intp] | None
    controls: Mapping[str, FloatArray]
    own: Mapping[str, Mapping[str, FloatArray]]
    """Columns of each player, the word's own surprisal first."""
    left_out: Mapping[str, int]

    def slope(self, *players: str) -> str | None:
        """Column with a slope of every reader's own, where there are times enough."""
        return reader_slope(self.surprisal(*players), self.reader)

    def surprisal(self, *players: str) -> dict[str, FloatArray]:
        """Columns of the players."""
        return {name: its for player in players for name, its in self.own[player].items()}

    def fit(self, *players: str, probability: float = 0.9) -> ClusteredRegression | MixedRegression:
        """Mixed-effects regression, or of means least squares."""
        its = {**self.controls, **self.surprisal(*players)}
        if self.reader is None:
            return clustered_regression(self.value, its, self.text, probability=probability)
        slope = self.slope(*players)
        return mixed_regression(self.value, its, self.reader, self.word, slope=slope, probability=probability)

    def held_out(self, *players: str) -> FloatArray:
        """Log-density of every time under regressions on the other texts, in nats."""
        of = pd.factorize(self.text)[0], self.reader, self.word
        return held_out_densities(self.value, self.controls, self.surprisal(*players), *of)


@experiment(ReadingTimesSettings, row=ReadingTimesRow)
def reading_times(study: xr.Dataset, settings: ReadingTimesSettings) -> ExperimentResult:
    """Regress reading times on the surprisal of people and of models, beside the word's length and place.

    With participants it is a mixed-effects regression (:func:`~shannon_game.estimators.documents.mixed_regression`):
    intercepts of readers and words, and every reader's own slope of the word's surprisal. Means over readers have least
    squares with errors clustered by text. A row per player. ``slopes.csv`` has every slope with its interval,
    ``gains.csv`` every pair of players, ``items.csv`` every word.
    """
    words, warnings = _words(study, settings)
    has_ids = "item_id" in study and settings.columns.context_id is None
    rows, controls, notes = (
        own_times(study)
        if settings.times is None
        else table_times(settings.times, settings.columns, settings.controls, has_ids=has_ids, how=settings.file)
    )
    source = study.attrs.get("name") if settings.times is None else _source(settings)
    limits = settings.fastest, settings.slowest
    times = joined(words, rows, controls, limits=limits, source=source, has_ids=has_ids)
    data = regression_data(words, times, settings)
    density = {CONTROLS: data.held_out(), **{name: data.held_out(name) for name in data.own}}
    gains = pd.DataFrame([
        _gain(data, density, *pair, settings.interval) for pair in combinations(reversed(density), 2)
    ])  # fmt: skip
    fits = {name: data.fit(name, probability=settings.interval) for name in data.own}
    slopes = pd.DataFrame([row for name, fit in fits.items() for row in _slopes(name, fit, settings.spillover)])
    table = pd.DataFrame([_row(data, name, fits[name], slopes, gains) for name in fits])
    items = _items(words, times)
    if study.attrs[KIND] == "cloze":
        # words of the study come first
        items.insert(0, "item", [*context_labels(study), *[""] * (len(items) - study.sizes["item"])])
    title = str(study.attrs.get("name", ""))
    by_region = {"regions": region_means(words, times, settings.interval)} if "condition" in times.rows else {}
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(
            ReadingTimesRow.variables(table, "row") | table_variables(items.add_prefix("word_"), "word")
        ),
        figures={
            "reading_times": reading_times_figure(slopes, settings.scale, title, settings.interval),
            **{name: regions_figure(its, list(data.own), title, settings.interval) for name, its in by_region.items()},
        },
        text=_summary(table, gains, settings, data),
        warnings=(
            *warnings,
            *notes,
            *(f"{n:,} {text}; left out" for text, n in data.left_out.items() if n),
            *_doubts(data, fits),
        ),
        tables={"items": items, "slopes": slopes, "gains": gains, **by_region},
    )


def _source(settings: ReadingTimesSettings) -> object:
    return "times" if isinstance(settings.times, pd.DataFrame) else settings.times


def _words(study: xr.Dataset, settings: ReadingTimesSettings) -> tuple[TextWords, tuple[str, ...]]:
    if study.attrs[KIND] != "cloze":
        if settings.surprisal is None:
            problem = f"is needed for a study of texts: words.csv of {Ask('surprisal')}, or the folder of its run"
            raise InputError(problem, field=Set("experiment.surprisal"))
        return scored_words(settings.surprisal, settings.players, settings.surprisal_column), ()
    # models of the table of words are no models of the study
    mine = settings if settings.surprisal is None else settings.model_copy(update={"players": None})
    models = chosen_models(mine, study, needed=False, scored=True)
    found = words_of(settings, study, models)
    surprisal = {PEOPLE: target_surprisal(found.answers(), found.target)}
    surprisal |= {name: _of_model(study, found, name) for name in models}
    index = study_index(study, by_context=settings.columns.context_id is not None)
    target = pd.Series(study["target_word"].to_numpy().astype(str), index, dtype=object)
    words = TextWords(target, pd.DataFrame(surprisal, index))
    if settings.surprisal is not None:
        words = united(words, scored_words(settings.surprisal, settings.players, settings.surprisal_column))
    return words, tuple(answer_warnings(found))


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


def regression_data(words: TextWords, times: Times, settings: ReadingTimesSettings) -> RegressionData:
    """Times that have every player's surprisal and every control, with both."""
    lags, at = range(settings.spillover + 1), times.rows["at"].to_numpy()
    own = {
        str(player): {_column(str(player), n): words.before(values, n)[at] for n in lags}
        for player, values in words.surprisal.items()
    }
    for name in settings.baseline:
        if name not in own:
            raise unknown_choice("model", name, own, source=Set("experiment.baseline"))
    given = {column: values for name in settings.baseline for column, values in own.pop(name).items()}
    letters = words.word.str.len()
    controls = {f"{_LENGTH}{_ago(n)}": words.before(letters, n)[at] for n in lags}
    text, number = (words.word.index.get_level_values(level).to_numpy()[at] for level in (0, 1))
    controls |= {_PLACE: number.astype(float), **given}
    everything = [*controls.values(), *(column for its in own.values() for column in its.values())]
    known = np.isfinite(everything).all(axis=0)
    filled = np.isfinite(times.controls.to_numpy()).all(axis=1)
    kept = known & filled
    if kept.sum() < 3:
        players = ", ".join(own)
        before = f" and of the words before ({Set('experiment.spillover', 0)} asks for none)" * (settings.spillover > 0)
        problem = f"has {int(kept.sum())} times of words with a surprisal of {players}{before}"
        raise InputError(problem, source=_source(settings), field=settings.columns.time)
    controls |= {str(name): values.to_numpy() for name, values in times.controls.items()}
    value, text = times.rows["time"].to_numpy()[kept], text[kept]
    if len(set(text.tolist())) == 1:
        problem = f"has times of one text, {text[0]!r}; two are needed, for errors and to hold one out"
        raise InputError(problem, source=_source(settings), field=settings.columns.text_id)
    return RegressionData(
        value=np.log(value) if settings.scale == "log" else value,
        word=at[kept],
        text=text,
        reader=pd.factorize(times.rows["reader"].to_numpy()[kept])[0] if "reader" in times.rows else None,
        # what does not vary has no slope
        controls={name: values[kept] for name, values in controls.items() if np.ptp(values[kept]) > 0},
        own={player: {name: values[kept] for name, values in its.items()} for player, its in own.items()},
        left_out={
            **times.left_out,
            "times are of words without a surprisal of every player, or without previous words": int((~known).sum()),
            "times have an empty cell of a control": int((known & ~filled).sum()),
        },
    )


def _ago(n: int) -> str:
    return "" if n == 0 else f" {n} before"


def _column(player: str, n: int) -> str:
    return f"surprisal{_ago(n)} ({player})"


def _slopes(name: str, fit: ClusteredRegression | MixedRegression, spillover: int) -> list[dict[str, Any]]:
    found = [fit.of(_column(name, n)) for n in range(spillover + 1)]
    return [
        {"player": name, "words_before": n, "slope": its["coefficient"], **{end: its[end] for end in _ENDS}}
        for n, its in enumerate(found)
    ]


def _gain(
    data: RegressionData, density: Mapping[str, FloatArray], player: str, other: str, interval: float
) -> dict[str, Any]:
    gain = density[player] - density[other]
    if data.reader is None:
        mean, se = float(gain.mean()), cluster_se(gain, data.text)
        half = t_half_width(se, len(set(data.text.tolist())) - 1, interval)
    else:
        found = crossed_mean(gain, data.reader, data.text, probability=interval)
        mean, se, half = found.mean, found.se, found.upper - found.mean
    return {"player": player, "other": other, "gain_nats": mean, "se": se, "lower": mean - half, "upper": mean + half}


def _row(
    data: RegressionData,
    name: str,
    fit: ClusteredRegression | MixedRegression,
    slopes: pd.DataFrame,
    gains: pd.DataFrame,
) -> dict[str, Any]:
    its = slopes[slopes["player"] == name].set_index("words_before")
    counts: dict[str, Any] = {"n_words": data.word, "n_texts": data.text}
    counts["n_readers"] = [] if data.reader is None else data.reader
    row: dict[str, Any] = {"player": name, "n_times": data.value.size}
    row |= {each: len(set(np.asarray(of).tolist())) for each, of in counts.items()}
    for n in its.index:
        name_of = f"spillover_{n}" if n else "slope"
        row |= {name_of: its.loc[n, "slope"], **{f"{name_of}_{end}": its.loc[n, end] for end in _ENDS}}
    gain = gains[(gains["player"] == name) & (gains["other"] == CONTROLS)].iloc[0]
    row |= {"gain_nats": gain["gain_nats"], "gain_lower": gain["lower"], "gain_upper": gain["upper"]}
    if isinstance(fit, MixedRegression):
        row |= {each: getattr(fit, each) for each in ("sd_reader", "sd_slope", "sd_word", "sd_residual")}
    if PEOPLE in data.own:
        both = None if name == PEOPLE else data.fit(name, PEOPLE)
        for each, of in (("beside_people", name), ("people_beside", PEOPLE)):
            found = {} if both is None else both.of(_column(of, 0))
            row |= {each: found.get("coefficient", np.nan)}
            row |= {f"{each}_{end}": found.get(end, np.nan) for end in _ENDS}
    return row


def _items(words: TextWords, times: Times) -> pd.DataFrame:
    text, number = (words.word.index.get_level_values(level) for level in (0, 1))
    by_word = times.rows.groupby("at")["time"].agg(["size", "mean"]).reindex(range(len(text)))
    table = {"text_id": text.astype(str), "word_num": number, "word": words.word.to_numpy().astype(str)}
    table |= {f"surprisal_nats_{name}": values.to_numpy() for name, values in words.surprisal.items()}
    n_times = by_word["size"].fillna(0).to_numpy(dtype=int)
    return pd.DataFrame({**table, "n_times": n_times, "mean_ms": by_word["mean"].to_numpy()})


def _doubts(data: RegressionData, fits: Mapping[str, ClusteredRegression | MixedRegression]) -> list[str]:
    n_again = int((np.bincount(data.word) > 1).sum())
    if data.reader is None and n_again:
        return [
            f"{n_again:,} words have several times, which count as means over readers; "
            f"{Set('experiment.columns.participant', 'NAME')} says who read, for mixed effects"
        ]
    singular = [name for name, fit in fits.items() if isinstance(fit, MixedRegression) and fit.singular]
    said = "the fit is singular (an sd of 0 or a correlation of 1): use fewer controls or more times"
    return [f"{', '.join(singular)}: {said}"] if singular else []


def _summary(table: pd.DataFrame, gains: pd.DataFrame, settings: ReadingTimesSettings, data: RegressionData) -> str:
    number = ".1f" if settings.scale == "ms" else ".4f"
    line = (
        f"**A nat of surprisal from {{label}} changes a word's time by {{slope:+{number}}} {_TIMES[settings.scale]} "
        f"[{{slope_lower:+{number}}}, {{slope_upper:+{number}}}]** ({{n_times:,}} times of {{n_words:,}} words); a "
        "held-out time is predicted better by {gain_nats:.4f} nats [{gain_lower:.4f}, {gain_upper:.4f}]."
    )
    between = gains[gains["other"] != CONTROLS].head(_PAIRS)
    more = [
        f"{label(row.player)} over {label(row.other)} {row.gain_nats:.4f} nats [{row.lower:.4f}, {row.upper:.4f}]"
        for row in rows_of(between)
    ]
    compared = f"Gains in predicting a held-out time: {'; '.join(more)}.\n\n" * bool(more)
    how = (
        "mixed effects with intercepts of readers and words"
        + ", and every reader's own slope of the word's surprisal" * (data.slope(*data.own) is not None)
        if data.reader is not None
        else "least squares, errors clustered by text"
    )
    return (
        f"{bullets(table.assign(label=table['player'].map(label)), line)}\n\n{compared}The regression "
        f"({how}) has {', '.join(data.controls)} beside surprisal; {settings.interval:.0%} intervals. All players have "
        f"the same times; one of {int(text_folds(data.text).max()) + 1} parts of the texts is held out at a time."
    )


def reading_times_figure(slopes: pd.DataFrame, scale: str, study_name: str = "", interval: float = 0.9) -> Figure:
    """Slope of reading times on every player's surprisal, of the word itself and of previous words."""
    players = list(dict.fromkeys(slopes["player"]))
    palette = player_colours([name for name in players if name != PEOPLE]) | {PEOPLE: "black"}
    lags = sorted(set(slopes["words_before"]))
    width = float(np.clip(1.3 + len(lags) * (0.75 + 0.15 * len(players)), 3.35, 6.7))
    with one_panel(width, 3.1, "Is a surprising word read longer?", study_name) as (fig, axes):
        for at, name in enumerate(players):
            its = slopes[slopes["player"] == name]
            x = its["words_before"] + (at - (len(players) - 1) / 2) * 0.5 / max(len(players), 2)
            bars(axes, x, its["lower"], its["slope"], its["upper"], color=palette[name])
        axes.axhline(0, color="0.55", linewidth=0.8)
        axes.set_xticks(lags, ["the word" if n == 0 else f"{n} word{'s' * (n > 1)} before" for n in lags])
        axes.set_xlim(min(lags) - 0.5, max(lags) + 0.5)
        axes.set_ylabel(f"{_UNITS[scale]}, {interval:.0%} interval")
        named(fig, [mark(label(name), palette[name], "o") for name in players])
    return fig
