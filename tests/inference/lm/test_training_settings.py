"""What training is asked for, and the order of its examples."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.inference.lm.answer_labels import LABELS, label_shares
from shannon_game.inference.lm.training import last_checkpoint
from shannon_game.inference.lm.training_settings import TrainingSettings, example_order
from shannon_game.inference.manifest import SCRATCH, seal


@given(st.integers(1, 30), st.integers(0, 100), st.integers(0, 2**31))
def test_every_epoch_has_every_example_once_and_more_steps_change_no_earlier_one(n: int, taken: int, seed: int) -> None:
    order = example_order(n, taken, seed=seed)
    assert len(order) == taken
    for first in range(0, taken - n + 1, n):
        assert sorted(order[first : first + n].tolist()) == list(range(n))
    np.testing.assert_array_equal(order, example_order(n, taken + 7, seed=seed)[:taken])


def test_a_checkpoint_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    home = tmp_path / f"{SCRATCH}checkpoints"
    for step, state in ((5, {"global_step": 5}), (10, {"global_step": 10}), (15, None)):
        folder = home / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text('{"global' if state is None else json.dumps(state))
        seal(folder)
    found = last_checkpoint(home)
    assert found is not None
    assert found.name == "checkpoint-10"
    assert not (home / "checkpoint-15").exists()
    assert (home / "checkpoint-5").exists()


WORDS = st.sampled_from("abcdefgh")


@given(st.dictionaries(WORDS, st.integers(1, 50), min_size=1), st.sampled_from(LABELS))
def test_labels_sum_to_one_and_are_of_words_that_were_given(counts: dict[str, float], labels: str) -> None:
    shares = label_shares(counts, labels, np.random.default_rng(0))
    assert sum(shares.values()) == pytest.approx(1)
    assert set(shares) <= set(counts)
    total = sum(counts.values())
    if labels == "soft":
        assert shares == pytest.approx({word: count / total for word, count in counts.items()})
    elif labels == "multi":
        assert shares == pytest.approx(dict.fromkeys(counts, 1 / len(counts)))
    else:
        assert list(shares.values()) == [1.0]
        if labels == "majority":
            assert counts[next(iter(shares))] == max(counts.values())


@pytest.mark.parametrize(("n_epochs", "n_steps", "steps"), [(1, None, 3), (2, None, 5), (1, 7, 7)])
def test_steps(n_epochs: int, n_steps: int | None, steps: int) -> None:
    """Ten examples in batches of four: the last batch of an epoch goes on with the next."""
    assert TrainingSettings(n_epochs=n_epochs, n_steps=n_steps, batch_size=2, n_accumulated=2).steps(10) == steps
