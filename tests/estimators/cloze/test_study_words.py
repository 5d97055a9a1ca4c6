"""Words of a cloze study in one coding, and the biased estimator on them: one study small enough to count by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.cloze.distributions import Distributions, WordCounts
from shannon_game.estimators.cloze.renormalised import renormalised_distributions
from shannon_game.estimators.cloze.study import SAMPLES, validate_cloze_study
from shannon_game.estimators.cloze.study_words import StudyWords, study_words
from shannon_game.estimators.cloze.words import FAILED, WORD_RULES, WordRules
from shannon_game.estimators.errors import InputError

CLEAN, NONE = WORD_RULES["clean"], WORD_RULES["none"]

WORDS = ["The", "the", "dog", "", FAILED, "?", "cat", "Cow", "emu"]
# (item, string, count)
ANSWERS = [
    (30, "The", 2),
    (30, "dog", 1),
    (30, "the", 3),
    (30, "", 2),
    (10, "cat", 4),
    (10, "?", 1),
    (10, "dog", 0),
    (20, "dog", 1),
    (20, "", 1),
]
# entries (model, item): model "m" has item 10 twice and item 20 not at all, and stands between the entries of "n"
ENTRIES = [("n", 20), ("m", 10), ("m", 30), ("n", 30), ("m", 10)]
# (entry, string, source, count, ln q); the probabilities are those of the model in its context
SAMPLED = [
    (1, "dog", SAMPLES, 2, 0.4),
    (1, "cat", "human", 0, 0.2),
    (1, "Cow", SAMPLES, 1, 0.1),
    (1, "cat", "greedy", 0, 0.3),
    (2, "the", "corpus", 0, 0.1),
    (2, "The", SAMPLES, 5, 0.3),
    (2, FAILED, SAMPLES, 2, 0.05),
    (2, "?", SAMPLES, 3, 0.05),
    (4, "cat", SAMPLES, 1, 0.2),
    (4, "dog", SAMPLES, 3, np.nan),
    (0, "emu", SAMPLES, 4, np.nan),
    (3, "emu", "nucleus", 9, np.nan),
    (1, "dog", "nucleus", 0, 0.6),
    (3, "dog", SAMPLES, 6, np.nan),
]
SOURCES = ["human", SAMPLES, "greedy", "corpus", "nucleus"]


def objects(strings: list[str]) -> np.ndarray:
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array


def study() -> xr.Dataset:
    items, models = [10, 20, 30], ["m", "n"]
    place = {text: code for code, text in enumerate(WORDS)}
    return validate_cloze_study(
        xr.Dataset(
            {
                "text_id": ("item", objects(["a", "a", "b"])),
                "word_num": ("item", [2, 3, 2]),
                "context": ("item", objects(["One", "One two", "Three"])),
                "target_word": ("item", objects(["Cat", "", "yak"])),
                "word_text": ("word", objects(WORDS)),
                "response_item": ("response", [item for item, _, _ in ANSWERS]),
                "response_word": ("response", [place[text] for _, text, _ in ANSWERS]),
                "response_count": ("response", [count for _, _, count in ANSWERS]),
                "entry_item": ("entry", [item for _, item in ENTRIES]),
                "entry_model": ("entry", [models.index(name) for name, _ in ENTRIES]),
                "sample_entry": ("sample", [row[0] for row in SAMPLED]),
                "sample_word": ("sample", [place[row[1]] for row in SAMPLED]),
                "sample_source": ("sample", [SOURCES.index(row[2]) for row in SAMPLED]),
                "sample_count": ("sample", [row[3] for row in SAMPLED]),
                "sample_logprob": ("sample", np.log([row[4] for row in SAMPLED])),
            },
            coords={"item": items, "model": models, "source": SOURCES},
        )
    )


def listed(words: StudyWords, counts: WordCounts) -> list[Counter[str]]:
    found: list[Counter[str]] = [Counter() for _ in range(counts.n_contexts)]
    for context, word, count in zip(counts.context, counts.word, counts.count, strict=True):
        found[context][words.strings[word]] = int(count)
    return found


def shares(strings: list[str], cpds: Distributions) -> list[dict[str, float]]:
    found: list[dict[str, float]] = [{} for _ in range(cpds.n_contexts)]
    for context, word, probability in zip(cpds.context, cpds.word, cpds.probability, strict=True):
        found[context][strings[word]] = pytest.approx(probability)
    return found


def test_people_and_models_are_counted_in_one_coding() -> None:
    words = study_words(study(), human=CLEAN, model=CLEAN, corpus=CLEAN)
    assert listed(words, words.answers()) == [{"cat": 4}, {"dog": 1}, {"the": 5, "dog": 1}]
    assert words.human_missing == {"blank": 3, "junk": 1}
    # in the order in which they are first met, each once
    assert len(set(words.strings)) == len(words.strings)
    assert [words.strings[code] if code >= 0 else None for code in words.target] == ["cat", None, "yak"]
    assert words.blank == -1
    np.testing.assert_allclose(words.human_distributions.mass, 1)
    one = words.models["m"]
    assert one.item.tolist() == [0, 2]
    assert listed(words, one.counts) == [{"dog": 5, "cow": 1, "cat": 1}, {"the": 5}]
    assert one.missing == {"failed": 2, "junk": 3}
    assert one.n_samples == 17
    # words of other sources than the samples are no samples
    assert listed(words, words.models["n"].counts) == [{"emu": 4}, {"dog": 6}]
    assert words.models["n"].n_samples == 10


def test_entries_apart() -> None:
    words = study_words(study(), human=CLEAN, model=CLEAN, corpus=CLEAN, per="entry")
    assert words.models["m"].item.tolist() == [0, 2, 0]
    assert listed(words, words.models["m"].counts) == [{"dog": 2, "cow": 1}, {"the": 5}, {"cat": 1, "dog": 3}]
    assert words.models["n"].item.tolist() == [1, 2]


def test_proportions_instead_of_counts() -> None:
    given = study()
    counts = given["response_count"].values
    given = given.drop_vars("response_count").assign(response_proportion=("response", counts / 10))
    words = study_words(given, human=CLEAN, model=CLEAN, corpus=CLEAN)
    assert shares(words.strings.tolist(), words.human_distributions) == [
        {"cat": 1.0},
        {"dog": 1.0},
        {"the": 5 / 6, "dog": 1 / 6},
    ]
    assert words.human_missing == {"blank": pytest.approx(0.3), "junk": pytest.approx(0.1)}
    assert words.human is None
    with pytest.raises(InputError, match="no counts"):
        words.answers()


def test_biased_estimator_renormalises_over_the_words_at_hand() -> None:
    strings = ["dog", "cat"]
    found = renormalised_distributions(study(), "m", strings, CLEAN)
    assert shares(strings, found) == [
        # "cat" of the people comes after that of the greedy decoder and overwrites it; so does "dog" of the nucleus,
        # which comes last, with that of the samples
        {"dog": 6 / 9, "cat": 2 / 9, "cow": 1 / 9},
        # "the" and "The" are one word, "?" and the failed sample none
        {"the": 1.0},
        # a word without a log-probability is left out
        {"cat": 1.0},
    ]
    # codes that were there stay, new ones follow
    assert strings[:2] == ["dog", "cat"]
    assert sorted(strings[2:]) == ["cow", "the"]


def test_biased_estimator_adds_strings_that_are_one_word_or_takes_the_last() -> None:
    """ "the" of the corpus, "The" of the samples: the samples come last, whatever the order of the rows."""
    keeps_failed = WordRules("failed", failed="keep")
    for same, the in (("sum", 0.4), ("last", 0.3)):
        strings: list[str] = []
        found = renormalised_distributions(study(), "m", strings, keeps_failed, same=same)  # type: ignore[arg-type]
        kept = {"the": the / (the + 0.05), FAILED.lower(): 0.05 / (the + 0.05)}
        assert shares(strings, found)[1] == kept
    with pytest.raises(InputError, match="unknown same 'first'"):
        renormalised_distributions(study(), "m", [], CLEAN, same="first")  # type: ignore[arg-type]
