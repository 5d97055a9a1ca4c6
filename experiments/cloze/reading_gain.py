"""How much surprisal helps to predict the reading times of a study, and how much other readers' times do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.documents.reading_gain import ReadingGain, gain_over_texts, people_ceiling
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.schema import KIND
from shannon_game.experiments.cloze.reading_times import ReadingTimesSettings, regression_data
from shannon_game.experiments.cloze.reading_words import (
    TextWords,
    joined,
    own_times,
    place_index,
    plain_words,
    scored_words,
    study_index,
)
from shannon_game.experiments.harness.kinds import checked_study
from shannon_game.experiments.studies.parsing import some_of
from shannon_game.inference.progress import say, stage

_FREQUENCY = "minus log frequency"


def reading_gain(
    study: xr.Dataset,
    surprisal: pd.DataFrame | Mapping[str, pd.DataFrame],
    *,
    frequency: pd.DataFrame | None = None,
    scale: Literal["ms", "log"] = "ms",
    fastest: float | None = None,
    slowest: float | None = None,
    spillover: int = 2,
    n_splits: int = 4,
    seed: int = 0,
    probability: float = 0.9,
) -> ReadingGain | dict[str, ReadingGain]:
    """Compute the gain of surprisal in held-out log-likelihood of a study's reading times, and people's ceiling.

    Controls are length, frequency and place (:mod:`formula <shannon_game.estimators.documents.reading_gain>`). Times of
    zero (skipped words) and words without surprisal of every model are left out.

    Parameters
    ----------
    study : Dataset
        Texts or cloze study with reading times, as :func:`norms` gives it.
    surprisal : DataFrame, or mapping of a model's name to one
        Columns text_id (or document), word_num (from 1), surprisal_nats and perhaps word, which should be the study's.
    frequency : DataFrame, optional
        The same of a unigram model, as control. None takes the data set's own frequencies (MECO), else counts words in
        the study's texts: few texts tell little of rare words, and surprisal gains up to three times as much.
    scale, fastest, slowest, spillover
        As in :func:`reading_times`.
    n_splits, seed, probability
        Random halves of the readers for the ceiling (0 leaves it out), their seed, and probability in the interval.

    Returns
    -------
    ReadingGain, or dict of them by model
        All models have the same times, so that :func:`~shannon_game.estimators.documents.gain_difference` pairs texts.

    Raises
    ------
    InputError
        The study has no times or times of one text, a time is below 0, or the surprisal is of other words.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from shannon_game import reading_gain, text_study
    >>> rng = np.random.default_rng(0)
    >>> words = pd.DataFrame({"text_id": np.repeat(list("abcdef"), 40), "word_num": np.tile(np.arange(1, 41), 6)})
    >>> words = words.assign(word=["a" * n for n in rng.integers(1, 9, 240)], surprisal_nats=rng.gamma(2, 2, 240))
    >>> texts = words.groupby("text_id")["word"].agg(" ".join).reset_index()
    >>> times = words.assign(text=words["text_id"], ms=300 + 20 * words["surprisal_nats"] + rng.normal(0, 40, 240))
    >>> times = {f"reading_{name}": ("reading", times[name]) for name in ("text", "word_num", "ms")}
    >>> study = text_study(texts, text_field="word", id_field="text_id").assign(times)
    >>> found = reading_gain(study, words)
    >>> bool(found.lower > 0), found.texts.size, found.n_readers
    (True, 6, 0)
    """
    study = checked_study(study, ("documents", "cloze"), "reading_gain")
    if isinstance(surprisal, pd.DataFrame) and "model" in surprisal and len(set(surprisal["model"])) > 1:
        surprisal = {str(name): rows for name, rows in surprisal.groupby("model", sort=False)}
    frames = surprisal if isinstance(surprisal, Mapping) else {"surprisal": surprisal}
    settings = ReadingTimesSettings(scale=scale, spillover=spillover, baseline=(_FREQUENCY,))
    words = _words(study, frames, frequency)
    rows, controls, _ = own_times(study)
    times = joined(words, rows, controls, limits=(fastest, slowest), source=study.attrs.get("name"))
    data = regression_data(words, times, settings)
    for why, n in data.left_out.items():
        if n:
            say(f"reading_gain: {n:,} {why}; left out")
    found, ceiling, n_readers = {}, None, 0 if data.reader is None else len(set(data.reader.tolist()))
    if data.reader is not None and n_splits:
        number = pd.Series(np.arange(len(words.word)), words.word.index)
        before = np.array([words.before(number, n) for n in range(spillover + 1)])
        of = {"text": data.text, "reader": data.reader, "word": data.word, "before": np.nan_to_num(before, nan=-1)}
        with stage("halves of the readers", n_splits) as show:
            ceiling = people_ceiling(data.value, data.controls, **of, n_splits=n_splits, seed=seed, done=show)
    given: dict[str, Any] = {"n_readers": n_readers, "ceiling": ceiling, "probability": probability}
    with stage("regressions on other texts", 1 + len(frames)) as show:
        baseline = data.held_out()
        for at, name in enumerate(frames, start=1):
            show(at, now=name)
            found[name] = gain_over_texts(data.held_out(name), baseline, data.text, **given)
    return found if isinstance(surprisal, Mapping) else found["surprisal"]


def _words(study: xr.Dataset, frames: Mapping[str, pd.DataFrame], frequency: pd.DataFrame | None) -> TextWords:
    """Words of the study with the surprisal of every model, and how rare they are."""
    if study.attrs[KIND] == "cloze":
        word = pd.Series(study["target_word"].astype(str), study_index(study, by_context=False), dtype=object)
    else:
        texts = [text.split() for text in study["text"].to_numpy().tolist()]
        sizes = [len(text) for text in texts]
        number = np.concatenate([np.arange(1, size + 1) for size in sizes])
        index = place_index(np.repeat(study["document"].to_numpy().astype(object), sizes), number)
        word = pd.Series([one for text in texts for one in text], index, dtype=object)
    given = {name: _nats(word, frame, name) for name, frame in frames.items()}
    if frequency is None and "reading_unigram_nats" in study:
        rows = place_index(study["reading_text"].to_numpy(), study["reading_word_num"].to_numpy())
        known = pd.Series(study["reading_unigram_nats"].to_numpy(), rows)
        given[_FREQUENCY] = known[~rows.duplicated()].reindex(word.index)
    elif frequency is None:
        count = plain_words(word).map(plain_words(word).value_counts())
        given[_FREQUENCY] = pd.Series(-np.log(count / len(word)), word.index)
    else:
        given[_FREQUENCY] = _nats(word, frequency, "frequency")
    return TextWords(word, pd.DataFrame(given))


def _nats(word: pd.Series[str], frame: pd.DataFrame, name: str) -> pd.Series[float]:
    """Surprisal of the study's words; that of other words is refused."""
    if "text_id" not in frame and "document" in frame:
        frame = frame.rename(columns={"document": "text_id"})
    if missing := [column for column in ("text_id", "word_num", "surprisal_nats") if column not in frame]:
        raise InputError(f"is needed; the columns are {some_of([*map(str, frame)], 9)}", source=name, field=missing[0])
    rows = frame.assign(document=frame["text_id"], model=name)
    try:
        found = scored_words(rows if "word" in rows else rows.assign(word="-"), None, "surprisal_nats")
    except InputError as error:
        raise InputError(error.problem, source=name, field=error.field) from error
    if "word" in frame:
        both = found.word.index.intersection(word.index)
        given, own = found.word[both], word[both]
        said, there = (plain_words(its).to_numpy() for its in (given, own))
        if (other := (said != there) & (said != "") & (there != "")).any():
            at = int(np.argmax(other))
            text, number = both[at]
            problem = f"word {number} of text {text!r} is {given.iloc[at]!r}, but {own.iloc[at]!r} in the study; "
            raise InputError(f"{problem}{int(other.sum()):,} of {len(both):,} words differ", source=name, field="word")
    values = found.surprisal[name].reindex(word.index)
    if not values.notna().any():
        (text, number), first = found.word.index[0], word.index[0]
        problem = (
            f"has no surprisal of a word of the study, such as word {first[1]} of text {first[0]!r}; its first is "
        )
        raise InputError(f"{problem}word {number} of text {text!r}", source=name, field="text_id")
    return values
