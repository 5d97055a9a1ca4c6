"""The loader of the simulated study: its config file, and the item filter."""

from __future__ import annotations

import numpy as np

from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study
from shannon_game.estimators.documents.tokens import is_word_token
from shannon_game.estimators.layout import notes, response_positions
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.comparison.simulated import simulated
from tests.experiments.command import config
from tests.same import assert_same_study

TINY = {"n_items": 12, "n_reference_items": 30, "n_participants": 5, "n_candidates": 40, "vocab_size": 300}


def test_the_command_gives_what_the_function_gives() -> None:
    tiny = [f"study.{name}={value}" for name, value in TINY.items()]
    cfg = config("+exp=perplexity", "seed=3", *tiny, "study.participants.noise=false")
    expected = SimulationSettings(**TINY, seed=3, participants=ParticipantPopulation(noise=False))
    study = load_study(cfg.study, kind="comparison")
    assert_same_study(study, simulate_comparison_study(expected))
    assert_same_study(study, simulated(**TINY, seed=3, participants={"noise": False}))


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
