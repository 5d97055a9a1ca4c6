"""Tables with a row per context and a row per participant, counted by hand and by loops."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.cloze import (
    cloze_items,
    cloze_participants,
    count_words,
    entropy_corrected_nats,
    study_words,
    tvd_with_baseline,
    word_rules,
)
from shannon_game.estimators.cloze.study import SAMPLES
from shannon_game.estimators.errors import InputError
from tests.estimators.cloze.test_study_words import study
from tests.oracles import cloze as oracle

# words of people by the rules "clean", of item 30, 10 and 20
SAID = {"a:2": ["cat"] * 4, "a:3": ["dog"], "b:2": ["the"] * 5 + ["dog"]}
# three samples of entry 1 and four of entry 4
DRAWN = {"a:2": ["dog"] * 5 + ["cow"] + ["cat"]}


@pytest.fixture
def table() -> pd.DataFrame:
    return cloze_items(study()).set_index("item")


def test_what_people_said(table: pd.DataFrame) -> None:
    assert table["n_answers"].tolist() == [len(said) for said in SAID.values()]
    assert table["n_different"].tolist() == [1, 1, 2]
    # a context without target has none, a target that nobody said has the probability 0
    np.testing.assert_array_equal(table["cloze_probability"], [1, np.nan, 0])
    assert table["modal_answer"].tolist() == ["cat", "dog", "the"]
    np.testing.assert_allclose(table["modal_probability"], [1, 1, 5 / 6])
    assert table["n_modal"].tolist() == [1, 1, 1]
    np.testing.assert_allclose(table["entropy_nats"], [oracle.entropy(said) for said in SAID.values()])


def test_models_samples(table: pd.DataFrame) -> None:
    assert table["n_samples_m"].tolist() == [len(DRAWN["a:2"]), 0, 5]
    np.testing.assert_allclose(table.loc["a:2", "tvd_m"], oracle.tvd(SAID["a:2"], DRAWN["a:2"]))
    assert np.isnan(table.loc["a:3", "tvd_m"])
    words = study_words(study(), **dict.fromkeys(("human", "model", "corpus"), word_rules("clean")))
    assert words.human is not None
    its = tvd_with_baseline(words.models["m"].counts.take([0]), words.human.take([0]))
    assert table.loc["a:2", "tvd_corrected_m"] == pytest.approx(its.corrected[0])


@pytest.mark.parametrize(
    ("scored", "likely"),
    [
        # of all spellings of the target the most probable one, of all sources; "yak" was not scored: samples count
        (None, [1 / 7, np.nan, 0]),
        ({"cat": 0.2, "yak": 0.05}, [0.2, np.nan, 0.05]),
    ],
    ids=["samples", "log-probabilities"],
)
def test_probability_of_the_target(scored: dict[str, float] | None, likely: list[float]) -> None:
    one = study()
    if scored is not None:
        words, sources = one["word_text"].to_numpy().tolist(), one["source"].to_numpy().tolist()
        one = one.assign(
            word_text=("word", np.array([text if text != "emu" else "yak" for text in words], dtype=object))
        )
        # entry 1 is item 10, entry 2 item 30 of model m
        rows = {"sample_entry": [1, 2], "sample_word": [words.index("cat"), words.index("emu")]}
        extra = {name: ("sample", values) for name, values in rows.items()} | {
            "sample_source": ("sample", [sources.index("corpus")] * 2),
            "sample_count": ("sample", [0, 0]),
            "sample_logprob": ("sample", np.log(list(scored.values()))),
        }
        own = [name for name in one if "sample" in one[name].dims]
        one = one.drop_vars(own).assign({name: ("sample", np.append(one[name], extra[name][1])) for name in own})
        one["sample_logprob"] = one["sample_logprob"].where(one["sample_entry"] != 4)
    found = cloze_items(one, models=["m"])
    if scored is not None:
        likely = [max(scored["cat"], 0.3), *likely[1:]]
    np.testing.assert_allclose(found["target_probability_m"], likely)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found["surprisal_nats_m"], -np.log(likely))
    assert SAMPLES in one["source"]


def test_shares_have_no_number_of_answers() -> None:
    counted = study().sel(response=[0, 4])
    shares = counted.drop_vars("response_count").assign(response_proportion=("response", [0.5, 1.0]))
    found = cloze_items(shares, models=[])
    assert found[["n_answers", "entropy_corrected_nats"]].isna().all(axis=None)
    np.testing.assert_array_equal(found["cloze_probability"], [1, np.nan, 0])


def chao_shen(counts: list[int]) -> float:
    n, once = sum(counts), counts.count(1)
    seen = 1 - (n - 1 if once == n else once) / n
    return -sum(seen * c / n * math.log(seen * c / n) / (1 - (1 - seen * c / n) ** n) for c in counts)


@pytest.mark.parametrize("counts", [[4, 2, 3, 2, 4, 2, 1, 1], [1] * 7, [20], [2], [19, 1], [1, 1], [1000, 3, 1]])
def test_corrected_entropy(counts: list[int]) -> None:
    found = entropy_corrected_nats(count_words([0] * len(counts), range(len(counts)), counts, n_contexts=2))
    assert found[0] == pytest.approx(chao_shen(counts), rel=1e-12)
    assert np.isnan(found[1])


def test_participants() -> None:
    rows = [(30, "The", "ann"), (30, "the", "bo"), (30, "dog", "cy")]
    rows += [(10, "cat", "bo"), (10, "?", "cy"), (20, "dog", "cy")]
    one = study()
    words = one["word_text"].to_numpy().tolist()
    answers = xr.Dataset(
        {
            "response_item": ("response", [item for item, _, _ in rows]),
            "response_word": ("response", [words.index(text) for _, text, _ in rows]),
            "response_count": ("response", [1] * len(rows)),
            "participant": ("response", np.array([who for _, _, who in rows], dtype=object)),
        }
    )
    found = cloze_participants(one.drop_dims("response").merge(answers)).set_index("participant")
    assert found.index.tolist() == ["ann", "bo", "cy"]
    assert found["n_responses"].tolist() == [1, 2, 3]
    assert found["n_answers"].tolist() == [1, 2, 2]
    # of the answers to contexts with a target: "yak" in item 30, "cat" in item 10
    np.testing.assert_allclose(found["share_target"], [0, 0.5, 0])
    # ann: one of two others; bo: the same, and nobody else at item 10; cy: none of two, and nobody else at item 20
    np.testing.assert_allclose(found["agreement"], [0.5, 0.5, 0])
    with pytest.raises(InputError, match="participant: is missing; the study does not say who answered"):
        cloze_participants(one)
