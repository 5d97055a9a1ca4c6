"""Surprisal of an outsider's model and the reading times of a corpus: what does not fit is named, not averaged away."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import reading_gain, text_study
from shannon_game.estimators.documents import gain_difference
from shannon_game.estimators.errors import InputError

N_TEXTS, N_WORDS, N_READERS = 6, 25, 8
NAMES = [f"t{text}" for text in range(N_TEXTS)]


@pytest.fixture(scope="module")
def surprisal() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    words = pd.DataFrame(
        {"text_id": np.repeat(NAMES, N_WORDS), "word_num": np.tile(np.arange(1, N_WORDS + 1), N_TEXTS)}
    )
    words["word"] = ["w" * int(n) for n in rng.integers(1, 9, len(words))]
    return words.assign(surprisal_nats=rng.gamma(2, 2, len(words)))


@pytest.fixture(scope="module")
def study(surprisal: pd.DataFrame) -> xr.Dataset:
    rng, parts = np.random.default_rng(1), []
    for reader in range(N_READERS):
        ms = 300 + rng.normal(0, 40) + 15 * surprisal["surprisal_nats"] + rng.normal(0, 40, len(surprisal))
        parts.append(surprisal.assign(ms=ms, participant=f"r{reader}"))
    rows = pd.concat(parts).drop(columns="surprisal_nats").rename(columns={"text_id": "text"})
    texts = surprisal.groupby("text_id")["word"].agg(" ".join).reset_index()
    return text_study(texts, text_field="word", id_field="text_id").assign(
        {f"reading_{name}": ("reading", values.to_numpy()) for name, values in rows.items()}
    )


def test_a_corpus_of_one_text_is_refused(study: xr.Dataset, surprisal: pd.DataFrame) -> None:
    with pytest.raises(InputError, match="has times of one text, 't0'; two are needed"):
        reading_gain(study.isel(reading=study["reading_text"].to_numpy() == "t0"), surprisal)
    with pytest.raises(InputError, match="reading_gain takes documents or cloze"):
        reading_gain(study.assign_attrs(kind="bet"), surprisal)
    with pytest.raises(InputError, match=r"is needed: times=.*norms.* has times"):
        reading_gain(study.drop_dims("reading"), surprisal)


def test_readers_who_lack_texts_are_readers_all_the_same(study: xr.Dataset, surprisal: pd.DataFrame) -> None:
    reader, text = study["reading_participant"].to_numpy(), study["reading_text"].to_numpy()
    # the last reader has read one text alone, and is new to everybody when it is held out
    kept = (reader != "r7") | (text == "t3")
    found = reading_gain(study.isel(reading=kept), surprisal, n_splits=2)
    assert found.n_readers == N_READERS
    assert found.lower > 0
    assert found.ceiling > 0
    assert found.words_by_text.tolist() == [161, 161, 161, 184, 161, 161]


def test_times_that_are_missing_are_left_out_and_negative_ones_refused(
    study: xr.Dataset, surprisal: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    ms = study["reading_ms"].to_numpy().copy()
    ms[[4, 9]], ms[14] = np.nan, 0
    found = reading_gain(study.assign(reading_ms=("reading", ms)), surprisal, n_splits=0)
    assert "3 rows have no time or zero (words that were skipped); left out" in capsys.readouterr().err
    assert found.words_by_text.sum() == N_READERS * N_TEXTS * (N_WORDS - 2) - 3
    assert np.isnan(found.ceiling)
    ms[20] = -3
    with pytest.raises(InputError, match="reading_ms: is -3 at reading 20, should be 0 or more"):
        reading_gain(study.assign(reading_ms=("reading", ms)), surprisal)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda its: its.assign(word=its["word"].mask(its.index == 30, "other")),
            "word 6 of text 't1' is 'other', but 'w+' in the study; 1 of 150",
        ),
        (
            lambda its: its.assign(text_id="x" + its["text_id"]),
            "has no surprisal of a word of the study, such as word 1 of text 't0'; its first is",
        ),
        (lambda its: its.assign(surprisal_nats=-its["surprisal_nats"]), "are these log-probabilities"),
        (lambda its: its.drop(columns="word_num"), "word_num: is needed; the columns are text_id"),
        (lambda its: pd.concat([its, its]), "is there twice"),
    ],
)
def test_surprisal_of_other_words_is_refused(
    study: xr.Dataset, surprisal: pd.DataFrame, change: object, message: str
) -> None:
    with pytest.raises(InputError, match=message) as raised:
        reading_gain(study, change(surprisal))
    assert "\n" not in str(raised.value)


def test_models_of_a_subset_are_compared_on_the_words_of_both(study: xr.Dataset, surprisal: pd.DataFrame) -> None:
    noise = np.random.default_rng(2).normal(0, 1, len(surprisal))
    less = surprisal.assign(surprisal_nats=(surprisal["surprisal_nats"] + noise).abs())
    less = less[less["text_id"] != "t5"]
    found = reading_gain(study, {"whole": surprisal, "less": less}, n_splits=0)
    assert found["whole"].texts.tolist() == found["less"].texts.tolist() == NAMES[:5]
    mean, lower, _ = gain_difference(found["whole"], found["less"])
    assert lower > 0
    assert mean == pytest.approx(found["whole"].gain_nats_per_word - found["less"].gain_nats_per_word, abs=1e-12)
    with pytest.raises(InputError, match="other: is of other times"):
        gain_difference(found["whole"], reading_gain(study, surprisal, n_splits=0))
    # a table of +exp=surprisal has both models, and documents
    table = pd.concat([surprisal.assign(model="whole"), less.assign(model="less")])
    same = reading_gain(study, table.rename(columns={"text_id": "document"}), n_splits=0)
    assert same["less"].gain_nats_per_word == found["less"].gain_nats_per_word
    # frequency of a larger corpus
    rare = surprisal.assign(surprisal_nats=np.random.default_rng(3).gamma(2, 2, len(surprisal)))
    own = reading_gain(study, surprisal, frequency=rare, n_splits=0)
    assert own.gain_nats_per_word != reading_gain(study, surprisal, n_splits=0).gain_nats_per_word
