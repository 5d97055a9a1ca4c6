"""Live language models in the top-1 game: at the positions of guesses, from the store, against one pass a position."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators.guesses.study import guess_contexts
from shannon_game.experiments.guesses.accuracy.live import with_live_models
from shannon_game.inference.lm.language_model import encode
from shannon_game.inference.lm.words import word_tokens
from tests.experiments.command import prepared
from tests.experiments.guesses.test_accuracy import overrides
from tests.experiments.studies.guesses.tiny_top1 import played
from tests.experiments.tiny_language_models import named, write_models
from tests.inference.lm import tiny_models
from tests.oracles import language_model as oracle

pytestmark = pytest.mark.torch

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("live")
    write_models(folder / "models")
    return played(folder)


def live(root: Path, store: Path, *more: str):
    job = prepared(*overrides(root, *named(root / "models", "a"), f"experiment.store={store}", *more))
    study, said = with_live_models(job.settings, job.study)
    return said, study


def test_surprisals_are_those_of_one_pass_a_position(root, tmp_path):
    said, study = live(root, tmp_path, "experiment.live_guesses=20")
    asked = np.flatnonzero(np.isfinite(study["model_hit"].sel(model="a")))
    assert 5 <= len(asked) <= 20
    assert len(asked) == len(np.unique(asked))
    model = tiny_models.load(root / "models" / "a", bos=tiny_models.END)
    contexts = guess_contexts(study)
    for item in asked[:6]:
        target = str(study["target_token"][item].item())
        tokens = encode(model, [contexts[item]])[0][-(tiny_models.MAX_TOKENS - 32) :]
        by_hand = 0.0
        for token in word_tokens(model, target):
            by_hand -= oracle.next_token(model, [tokens])[0][token]
            tokens = [*tokens, token]
        surprisal = float(study["target_surprisal_nats"].sel(model="a")[item])
        assert surprisal == pytest.approx(by_hand, abs=1e-3)
    assert said[0].startswith(f"**a** played {len(asked)} positions")


def test_shards_fill_one_store(root, tmp_path):
    halves = [live(root, tmp_path, f"experiment.shard={i}/2", "experiment.live_guesses=null")[1] for i in range(2)]
    _, whole = live(root, tmp_path, "experiment.live_guesses=null")
    hits = [np.isfinite(half["model_hit"].to_numpy()) for half in halves]
    assert not (hits[0] & hits[1]).any()
    np.testing.assert_array_equal(hits[0] | hits[1], np.isfinite(whole["model_hit"].to_numpy()))
