"""The loader of the simulated study: its config file, and the item filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimators.comparison import is_word_token, response_positions
from estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from estimators.comparison.simulation.study import simulate_comparison_study
from estimators.errors import InputError
from estimators.layout import notes
from experiments.harness.job import load_study
from experiments.studies.comparison.simulated import SimulatedSettings, simulated
from tests.experiments.command import config

TINY = {"n_items": 12, "n_reference_items": 30, "n_participants": 5, "n_candidates": 40, "vocab_size": 300}


def test_every_setting_of_the_simulation_has_its_default() -> None:
    ours, theirs = SimulatedSettings(), SimulationSettings()
    assert set(SimulatedSettings.model_fields) == {*vars(theirs), "items"}
    for name, value in vars(theirs).items():
        if name == "participants":
            assert {each: getattr(ours.participants, each) for each in vars(value)} == vars(value)
        else:
            assert getattr(ours, name) == value


def test_the_command_gives_what_the_function_gives() -> None:
    tiny = [f"study.{name}={value}" for name, value in TINY.items()]
    cfg = config("+exp=perplexity", "seed=3", *tiny, "study.participants.noise=false")
    expected = SimulationSettings(**TINY, seed=3, participants=ParticipantPopulation(noise=False))
    study = load_study(cfg.study, kind="comparison")
    assert study.identical(simulate_comparison_study(expected))
    assert study.identical(simulated(**TINY, seed=3, participants={"noise": False}))


def test_word_tokens_only() -> None:
    everything = simulated(**TINY)
    words = simulated(**TINY | {"items": "word_tokens"})
    is_word = np.array([is_word_token(str(token)) for token in everything["target_token"].values])
    asked = everything["item_set"].values != ""
    assert 0 < (is_word & asked).sum() < asked.sum()
    np.testing.assert_array_equal(words["selected"].values, is_word)
    assert set(words["response_item"].values.tolist()) == set(np.flatnonzero(is_word & asked).tolist())
    kept = is_word[response_positions(everything)]
    np.testing.assert_array_equal(words["report"].values, everything["report"].values[kept])
    assert words["in_reference"].all(), "the reference loss stays the one of all items"
    left_out = {note["text"]: note["count"] for note in notes(words)[-2:]}
    assert list(left_out.values()) == [int((asked & ~is_word).sum()), int((~kept).sum())]


def test_a_filter_that_leaves_nothing_is_an_error() -> None:
    seed = next(
        seed
        for seed in range(100)
        if not is_word_token(str(simulated(**TINY | {"n_items": 1, "seed": seed})["target_token"].values[0]))
    )
    with pytest.raises(InputError, match="items: word_tokens leaves none of the 1 asked items"):
        simulated(**TINY | {"n_items": 1, "seed": seed, "items": "word_tokens"})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n_item": 3}, r"unknown setting 'n_item'; did you mean 'n_items'\? choose one of: items, n_items"),
        ({"root": "data"}, "unknown setting 'root'"),
        ({"items": "words"}, "items: is 'words', should be one of all, word_tokens"),
        ({"participants": {"slope_mean": 1}}, "participants: unknown setting 'slope_mean'; did you mean 'slope_m"),
        ({"participants": 29}, "participants: is 29, should be a mapping"),
        ({"participants": {"slope_median": 0}}, "slope_median: is 0"),
        ({"excess_nats": [1, 2]}, "excess_nats: is .*, should be a mapping"),
        ({"excess_nats": {"lm-huge": 1}}, "unknown player in excess_nats 'lm-huge'"),
        ({"n_items": 0}, "n_items: is 0"),
        ({"generator": "gpt2-small"}, "unknown generator 'gpt2-small'"),
    ],
    ids=repr,
)
def test_wrong_configs_are_named(change: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        simulated(**TINY | change)
