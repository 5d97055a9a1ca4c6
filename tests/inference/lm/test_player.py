"""A model as a participant."""

from __future__ import annotations

import numpy as np
import pytest

from estimators.comparison import SCHEMES
from inference.comparison.live_player import play
from tests.inference.lm import tiny_models
from tests.oracles import language_model as reference

pytestmark = pytest.mark.torch


def test_reports_are_two_alternative_probabilities(model_of):
    model = model_of("llama")
    contexts = tiny_models.contexts(30, model.vocab_size)
    targets, others = np.random.default_rng(0).integers(0, model.vocab_size, size=(2, len(contexts)))
    p = np.exp(reference.next_token(model, contexts))
    rows = np.arange(len(contexts))
    exact = p[rows, targets] / (p[rows, targets] + p[rows, others])
    reports = play(model, contexts, targets.tolist(), others.tolist())
    np.testing.assert_allclose(reports, exact, atol=1e-4)
    swapped = play(model, contexts, others.tolist(), targets.tolist())
    np.testing.assert_allclose(reports + swapped, 1, atol=1e-12)
    rounded = play(model, contexts, targets.tolist(), others.tolist(), rounding=SCHEMES["interface"])
    offered = np.array([0.01, *np.arange(1, 10) / 10, 0.99])
    assert np.abs(rounded[:, None] - offered).min(axis=1).max() < 1e-12
    assert np.abs(rounded - reports).max() <= 0.05 + 1e-4
    assert len(np.unique(rounded)) > 3
