"""The cloze study's validator: what it accepts, and what each mistake says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.cloze.distances import total_variation
from shannon_game.estimators.cloze.distributions import relative_frequencies
from shannon_game.estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study
from shannon_game.estimators.cloze.study import validate_cloze_study
from shannon_game.estimators.cloze.study_words import study_words
from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.estimators.errors import InputError


def study() -> xr.Dataset:
    return simulate_cloze_study(ClozeSimulation(n_items=4, n_answers=6, n_samples=6), np.random.default_rng(0))


def put(name: str, position: int, value: object) -> Callable[[xr.Dataset], xr.Dataset]:
    def change(one: xr.Dataset) -> xr.Dataset:
        values = one[name].to_numpy().copy()
        values[position] = value
        return one.assign({name: (one[name].dims, values)})

    return change


def with_results(one: xr.Dataset) -> xr.Dataset:
    return one.assign(
        result_item=("result", [0, 3]), result_list=("result", [0, 1]), result_value=("result", [0.1, 0.2])
    ).assign_coords(result_name=["first", "second"])


def in_proportions(one: xr.Dataset, second: float) -> xr.Dataset:
    share = np.full(one.sizes["response"], 0.5)
    share[1] = second
    return one.drop_vars("response_count").assign(response_proportion=("response", share))


def halves(one: xr.Dataset) -> np.ndarray:
    """All answers in one of two sub-samples."""
    count = one["response_count"].values
    return np.stack([np.where(np.arange(len(count)) % 2, count, 0), np.where(np.arange(len(count)) % 2, 0, count)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.drop_vars("response_count"), "response_count: is missing, and so is response_proportion"),
        (lambda s: s.assign_coords(result_name=["a"]), "result_item: is missing"),
        (lambda s: with_results(s).assign(result_list=("result", [0, 2])), "result_list: is .*2.* should be 0 to 1"),
        (put("entry_model", 1, 2), r"entry_model: is 2 at entry 1 \(1 such\); should be 0 to 1"),
        (put("word_num", 1, 2), r"\(text_id, word_num\): \('1', 2\) is there twice"),
        (put("word_text", 1, "word0"), "word_text: 'word0' is there twice"),
        (lambda s: s.isel(response=s["response_item"].values != 2), r"item: 2 \(text 1, word 4\) has no answer"),
        (lambda s: in_proportions(s, -0.1), "response_proportion: is -0.1 at response 1"),
        (lambda s: in_proportions(s, 0.0).isel(response=[1, *range(6, 16)]), "item: 0 .* has no answer"),
        (
            lambda s: s.assign(oracle_count=(("oracle", "response"), np.full((2, s.sizes["response"]), 9))),
            "oracle_count: is 9",
        ),
        (
            lambda s: s.assign(participant=("response", np.array(["p"] * s.sizes["response"], object))),
            "response_count: is",
        ),
    ],
)
def test_mistakes(change: Callable[[xr.Dataset], xr.Dataset], message: str) -> None:
    given = change(study())
    with pytest.raises(InputError, match=message) as raised:
        validate_cloze_study(given)
    if isinstance(given, xr.Dataset):
        assert str(raised.value).startswith("cloze study 'cloze_simulated', ")


def test_what_a_study_may_hold() -> None:
    one = study()
    n = one.sizes["response"]
    unsigned = one.assign(word_num=("item", one["word_num"].values.astype(np.uint8)))
    fixed = one.assign(target_word=("item", one["target_word"].values.astype(str)))
    people = one.isel(
        response=[int(np.flatnonzero(one["response_item"].values == item)[0]) for item in range(4)]
    ).assign(participant=("response", np.array(list("abca"), object)), response_count=("response", np.ones(4, int)))
    logprob = np.zeros(one.sizes["sample"])
    logprob[0] = np.nan
    for good in (
        unsigned,
        fixed,
        people,
        with_results(one),
        one.drop_dims(["model", "entry", "sample", "source"]),
        one.assign(sample_logprob=("sample", logprob)),
        one.assign(oracle_count=(("oracle", "response"), halves(one))),
        in_proportions(one, 0.0),
        in_proportions(one, 1.0),
        in_proportions(one, 0.5).assign(response_count=("response", np.ones(n, int))),
        # labels in any order, and any labels
        one.isel(item=[2, 0, 3, 1]),
    ):
        assert all(validate_cloze_study(good)[name].variable.equals(good[name].variable) for name in good.variables)


def test_a_simulated_study_is_drawn_from_what_it_says() -> None:
    """20,000 answers of ten words: distances are found to .03, and the word of the text is one that people say."""
    settings = ClozeSimulation(
        n_items=6, n_answers=20_000, n_samples=20_000, vocab_size=10, families=("mixture", "factors", "same"),
        items_per_text=4, exponent=(1.2, 1.2), difference=(1.0, 1.0),
    )  # fmt: skip
    one = simulate_cloze_study(settings, np.random.default_rng(1))
    assert all(validate_cloze_study(one)[name].variable.equals(one[name].variable) for name in one.variables)
    assert one["text_id"].values.tolist() == ["1"] * 4 + ["2"] * 2
    assert one["word_num"].values.tolist() == [2, 3, 4, 5, 2, 3]
    assert one.attrs == {"name": "cloze_simulated", "word_rules": "none"}
    truth = one["true_tvd"].transpose("model", "item")
    np.testing.assert_allclose(truth.sel(model="mixture"), 0.3)
    np.testing.assert_array_equal(truth.sel(model="same"), 0)
    none = WORD_RULES["none"]
    words = study_words(one, human=none, model=none, corpus=none)
    assert (words.answers().totals == 20_000).all()
    assert sorted(words.strings[words.answers().word[words.answers().context == 0]]) == [f"word{i}" for i in range(10)]
    for name in settings.families:
        found = total_variation(relative_frequencies(words.answers()), relative_frequencies(words.models[name].counts))
        np.testing.assert_allclose(found, truth.sel(model=name), atol=0.03)
    # the first word has 10^-1.2 times the weight of the last; 300 texts' words
    many = simulate_cloze_study(
        ClozeSimulation(n_items=300, n_answers=1, n_samples=1, vocab_size=10, exponent=(1.2, 1.2)),
        np.random.default_rng(2),
    )
    said = Counter(many["target_word"].values.tolist())
    weight = np.arange(1, 11) ** -1.2
    # standard error .028
    assert said["word0"] / 300 == pytest.approx(weight[0] / weight.sum(), abs=0.1)
    assert said["word0"] > said["word4"]
