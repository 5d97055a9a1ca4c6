"""The cloze study's validator: what it accepts, and what each mistake says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from estimators.cloze import validate_cloze_study
from estimators.cloze_simulation import FAMILIES, ClozeSimulation, simulate_cloze_study, word_pair
from estimators.errors import InputError


def study() -> xr.Dataset:
    return simulate_cloze_study(ClozeSimulation(n_items=4, n_answers=6, n_samples=6), np.random.default_rng(0))


def put(name: str, position: int, value: object) -> Callable[[xr.Dataset], xr.Dataset]:
    def change(one: xr.Dataset) -> xr.Dataset:
        values = one[name].to_numpy().copy()
        values[position] = value
        return one.assign({name: (one[name].dims, values)})

    return change


def test_a_study_comes_back() -> None:
    one = study()
    assert validate_cloze_study(one) is one


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.drop_vars("context"), "context: is missing"),
        (lambda s: s.drop_vars("response_count"), "and so is response_proportion"),
        (lambda s: s.drop_vars("sample_word"), "sample_word: is missing"),
        (lambda s: s.assign(context=("response", s["response_item"].values.astype(str))), "context: has dims"),
        (lambda s: s.assign(word_num=("item", s["word_num"].values * 1.0)), "word_num: has dtype float64"),
        (put("word_num", 1, 2), r"\(text_id, word_num\): \('1', 2\) is there twice"),
        (put("context", 2, None), "context: is (None|nan) at row 2, should be a string"),
        (put("word_text", 1, "word0"), "word_text: 'word0' is there twice"),
        (put("response_item", 0, 99), "response_item: is 99 at row 0; the study has no such item"),
        (put("response_word", 0, -1), r"response_word: is .*-1.* at row 0 \(1 such\)"),
        (put("response_count", 0, -2), r"response_count: is .*-2"),
        (put("sample_count", 3, -1), r"sample_count: is .*-1.* at row 3"),
        (put("sample_entry", 3, 99), r"sample_entry: is .*99"),
        (lambda s: s.isel(response=s["response_item"].values != 2), r"item: 2 \(text 1, word 4\) has no answer"),
        (lambda s: s.assign(sample_logprob=("sample", np.ones(s.sizes["sample"]))), "at most 0, or NaN"),
        (lambda s: s.assign(response_proportion=("response", np.full(s.sizes["response"], 1.5))), "between 0 and 1"),
        (
            lambda s: s.assign(oracle_count=(("oracle", "response"), np.full((2, s.sizes["response"]), 9))),
            "at most response_count in sum",
        ),
        (
            lambda s: s.assign(participant=("response", np.array(["p"] * s.sizes["response"], object))),
            "should be 1, because",
        ),
        (lambda s: s.assign_coords(item=[0, 0, 1, 2]), "item: 0 is there twice"),
        (lambda s: {"a": 1}, "should be an xarray.Dataset"),
    ],
)
def test_mistakes(change: Callable[[xr.Dataset], xr.Dataset], message: str) -> None:
    with pytest.raises(InputError, match=message):
        validate_cloze_study(change(study()))


@pytest.mark.parametrize("family", FAMILIES)
def test_simulated_distances_are_those_of_the_distributions(family: str) -> None:
    people, model = word_pair(family, vocab_size=50, exponent=1.1, difference=1.0, rng=np.random.default_rng(0))
    assert people.sum() == pytest.approx(1)
    assert model.sum() == pytest.approx(1)
    distance = 0.5 * np.abs(people - model).sum()
    if family == "mixture":
        assert distance == pytest.approx(0.3)
    assert (distance == 0) == (family == "same")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_items": 0}, "n_items: is 0"),
        ({"families": ("mixed",)}, "unknown family 'mixed'"),
        ({"families": ()}, "name each family once"),
        ({"exponent": (2.0, 1.0)}, "the smaller first"),
        ({"vocab_size": 2}, "at least 10"),
    ],
)
def test_wrong_simulation(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ClozeSimulation(**settings)
