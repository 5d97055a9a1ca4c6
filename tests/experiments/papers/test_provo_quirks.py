"""What only the paper's code does: against lists of words and loops."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.cloze import (
    WordCounts,
    count_words,
    relative_frequencies,
    simulate_cloze_study,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from shannon_game.estimators.cloze.simulation import ClozeSimulation
from shannon_game.estimators.cloze.split_halves import split_half_top_words
from shannon_game.experiments.papers.provo.quirks import legacy_columns, legacy_split_halves
from tests.oracles import cloze as slow

LISTS = [list("aaabbbbccd"), list("aaaabbcdefg"), list("xyzxyzxyz"), list("aaaabbcdefh")]
LISTS = [sorted(words, key=lambda w, ws=words: (-ws.count(w), w)) for words in LISTS]


def counts(lists: list[list[str]]) -> WordCounts:
    pairs = [(context, ord(word)) for context, words in enumerate(lists) for word in words]
    context, word = zip(*pairs, strict=True)
    return count_words(context, word, [1] * len(pairs), n_contexts=len(lists))


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    settings = ClozeSimulation(n_items=24, items_per_text=6, n_answers=40, vocab_size=100)
    return simulate_cloze_study(settings, np.random.default_rng(0))


@pytest.mark.parametrize("size", [4, "half"])
def test_legacy_split_is_that_of_the_published_code(size: object) -> None:
    one = counts(LISTS)
    split = legacy_split_halves(one, [0, 1, 7], size=size)  # type: ignore[arg-type]
    between, tops = tvd_between_split_halves(split), split_half_top_words(split)
    cpd = relative_frequencies(one)
    to_all = tvd_to_split_halves(cpd, split)
    for s, seed in enumerate((0, 1, 7)):
        for i, words in enumerate(LISTS):
            first, second = slow.published_split(words, seed, 4 if size == 4 else len(words) // 2)
            assert between[s, i] == pytest.approx(slow.tvd(first, second))
            assert to_all[s, i] == pytest.approx(slow.tvd(first, words))
            most = max(first, key=first.count)
            assert chr(tops[s].word[i]) == most


def test_in_place_splits_start_from_what_the_first_left() -> None:
    words = LISTS[1]
    split = legacy_split_halves(counts([words]), [3, 5], size="half", in_place=True)
    first, second = slow.published_split(words, 3, len(words) // 2)
    left = [w for w in dict.fromkeys(words) for _ in range((first + second).count(w))]
    assert tvd_between_split_halves(split)[1, 0] == pytest.approx(
        slow.tvd(*slow.published_split(left, 5, len(left) // 2))
    )


def test_rows_of_the_paper_are_its_code_on_lists(study: xr.Dataset) -> None:
    """Appendix B: answers halved with the same seed in every context, oracle 1 in the target and in a predictor."""
    one = study.isel(item=slice(0, 5)).drop_vars("true_tvd")
    one = one.isel(response=one["response_item"].values < 5)
    entries = np.flatnonzero(one["entry_item"].values < 5)
    kept = one["sample_entry"].values <= entries.max()
    one = one.isel(entry=entries, sample=kept)
    # context 3: a blank answer is a word of the people's, and none of their entropy
    words = one["word_text"].values.copy()
    rows = np.flatnonzero(one["response_item"].values == 3)
    words[one["response_word"].values[rows[-1]]] = ""
    one = one.assign(word_text=("word", words))
    said = words[one["sample_word"].values]
    columns = legacy_columns(one, "mixture", ("human_entropy", "model_entropy", "oracle_tvd"), seed=3)
    assert columns.player.tolist() == ["mixture"] * 5
    assert columns.covariance is None
    for item in range(5):
        here = one.isel(response=one["response_item"].values == item)
        people = np.repeat(words[here["response_word"].values], here["response_count"].values).tolist()
        # no sample is the people's blank
        people = [word or "BLANK" for word in people]
        first, second = slow.published_split(people, 3, len(people) // 2)
        mine = (one["entry_item"].values[one["sample_entry"].values] == item) & (
            one["entry_model"].values[one["sample_entry"].values] == one["model"].values.tolist().index("mixture")
        )
        model = np.repeat(said[mine], one["sample_count"].values[mine]).tolist()
        assert columns.target[item] == pytest.approx(slow.tvd(first, model))
        assert columns.predictors["oracle_tvd"][item] == pytest.approx(slow.tvd(first, second))
        assert columns.predictors["human_entropy"][item] == pytest.approx(
            slow.entropy([word for word in people if word != "BLANK"])
        )
        assert columns.predictors["model_entropy"][item] == pytest.approx(slow.entropy(model))
