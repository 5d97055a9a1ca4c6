"""The loader of the simulated study: its config file, and the item filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shannon_game.estimators.comparison import is_word_token, response_positions
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study, simulate_items
from shannon_game.estimators.layout import notes
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.comparison.simulated import kept_items, simulated
from tests.experiments.command import config
from tests.same import assert_same_study

TINY = {"n_items": 12, "n_reference_items": 30, "n_participants": 5, "n_candidates": 40, "vocab_size": 300}


def test_the_items_in_the_package_are_those_that_are_simulated() -> None:
    kept = kept_items(SimulationSettings())
    assert kept is not None
    made = simulate_items(SimulationSettings())
    # a processor that rounds exp another way may draw a neighbour: each of V edges moves by an eps of float32
    same = kept.candidate_token == made.candidate_token
    assert (~same).mean() < SimulationSettings().vocab_size * np.finfo("f4").eps
    assert (kept.context == made.context).all()
    assert (kept.target_token == made.target_token).mean() > 0.998
    assert list(kept.target_logprob) == list(made.target_logprob)
    for name in made.kl_nats:
        np.testing.assert_allclose(kept.kl_nats[name], made.kl_nats[name], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(
            kept.candidate_logprob[name][same], made.candidate_logprob[name][same], rtol=1e-4, atol=1e-4
        )
    assert (kept.same == (kept.candidate_token == kept.target_token[:, None])).all()


@pytest.mark.parametrize(
    "changes",
    [{"seed": 1}, {"vocab_size": 4000}, {"entropy_nats": 2.5}, {"generator": "lm-weak"}, {"store_reference": True},
     {"excess_nats": {"human": 1.0}}, {"n_candidates": 300}, {"n_reference_items": 900}],
)  # fmt: skip
def test_other_items_are_never_taken_from_the_package(changes: dict[str, Any]) -> None:
    assert kept_items(SimulationSettings(**changes)) is None


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
