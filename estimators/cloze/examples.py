"""A small simulated study and counts of words, for the examples of the documentation and for a first try of a model."""

from __future__ import annotations

from functools import cache

import numpy as np

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.cloze.distributions import Distributions, WordCounts, count_words, relative_frequencies
from shannon_game.estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study


@cache
def cloze_study() -> Dataset:
    """Cloze study of 12 contexts in 3 texts, with 20 answers per context and language models."""
    settings = ClozeSimulation(n_items=12, items_per_text=4, n_answers=20, vocab_size=60)
    return simulate_cloze_study(settings, np.random.default_rng(0))


def word_counts() -> WordCounts:
    """Count four answers in each of two contexts."""
    return count_words(context=[0, 0, 1, 1], word=[0, 1, 0, 2], count=[3, 1, 2, 2], n_contexts=2)


def two_samples() -> tuple[WordCounts, WordCounts]:
    """Count ten words of people and of a model in one context."""
    return count_words([0] * 3, [0, 1, 2], [5, 3, 2], n_contexts=1), count_words([0] * 2, [0, 3], [6, 4], n_contexts=1)


def two_distributions() -> tuple[Distributions, Distributions]:
    """Share of words of people and of a model in two contexts."""
    people = count_words([0, 0, 1], [0, 1, 2], [3, 1, 4], n_contexts=2)
    model = count_words([0, 0, 1], [0, 1, 0], [1, 3, 4], n_contexts=2)
    return relative_frequencies(people), relative_frequencies(model)
