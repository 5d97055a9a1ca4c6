"""Scores of words beside halves of people: plain loops, and where a known distance, people and strangers fall."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators import cloze
from shannon_game.estimators.documents import ceiling_share
from shannon_game.estimators.errors import InputError
from tests.oracles import boards

N_WORDS, N_ANSWERS, PER_STUDY = 20, 24, 120


def people(n_contexts: int, rng: np.random.Generator) -> tuple[cloze.WordCounts, np.ndarray, np.ndarray]:
    """Answers to contexts whose distributions scatter around one of all words: counts, those, and that one."""
    base = rng.dirichlet(np.ones(N_WORDS))
    truth = rng.dirichlet(20 * base, size=n_contexts)
    counts = rng.multinomial(N_ANSWERS, truth)
    context, word = np.nonzero(counts)
    return cloze.count_words(context, word, counts[context, word], n_contexts=n_contexts), truth, base


def test_scores_are_those_of_plain_loops() -> None:
    rng = np.random.default_rng(2)
    counts, truth, base = people(6, rng)
    halves = cloze.random_split_halves(counts, n_splits=3, rng=rng)
    drawn = cloze.drawn_words(halves, truth[counts.context, counts.word], rng=rng)
    scores = cloze.distance_scores(halves, drawn)
    nats = cloze.cross_entropy_scores(halves, base[counts.word])
    modal = cloze.modal_scores(halves, halves.second)
    for split in range(3):
        for context in range(6):
            rows = np.flatnonzero(counts.context == context)
            first, second, words = (
                {str(counts.word[row]): int(part[split][row]) for row in rows if part[split][row]}
                for part in (halves.first, halves.second, drawn)
            )
            words["another"] = N_ANSWERS // 2 - sum(words.values())
            assert scores["tvd"][split, context] == pytest.approx(boards.tvd(first, words), abs=1e-12)
            assert scores["jensen_shannon"][split, context] == pytest.approx(boards.jensen_shannon(first, words))
            q = {str(word): base[word] for word in range(N_WORDS)}
            assert nats[split, context] == pytest.approx(boards.cross_entropy(first, q))
            assert modal[split, context] == pytest.approx(boards.modal(first, second))
    with pytest.raises(InputError, match="fewer words at a context"):
        cloze.subsampled_words(halves, cloze.count_words([0], [0], [1], n_contexts=6), rng=rng)


def test_draws_follow_the_probabilities() -> None:
    """Means of 4,000 splits of 12 words: 5 standard errors are at most 0.012."""
    counts, truth, _ = people(4, np.random.default_rng(3))
    q = truth[counts.context, counts.word] * 0.9
    halves = cloze.random_split_halves(counts, n_splits=4000, rng=np.random.default_rng(4))
    share = cloze.drawn_words(halves, q, rng=np.random.default_rng(5)).mean(axis=0) / (N_ANSWERS // 2)
    np.testing.assert_allclose(share, q, atol=0.012)
    own = cloze.subsampled_words(halves, counts, rng=np.random.default_rng(6)).mean(axis=0) / (N_ANSWERS // 2)
    np.testing.assert_allclose(own, counts.count / N_ANSWERS, atol=0.012)


def test_where_people_strangers_and_known_mixtures_fall(seed_offset: int) -> None:
    """Models that mix people's distribution with one without context, in 200 studies of 40 texts.

    The share that a mixture goes is that of all 24,000 contexts. Coverage of 200 intervals of 90% has a standard error
    of 0.021, and is kept between 0.84 and 0.96.
    """
    rng = np.random.default_rng(7 + seed_offset)
    n = 200 * PER_STUDY
    counts, truth, base = people(n, rng)
    halves = cloze.random_split_halves(counts, n_splits=3, rng=rng)

    def tvd(q: np.ndarray) -> np.ndarray:
        return cloze.distance_scores(halves, cloze.drawn_words(halves, q, rng=rng))["tvd"].mean(axis=0)

    own, without = truth[counts.context, counts.word], base[counts.word]
    floor, ceiling = tvd(without), cloze.distance_scores(halves, halves.second)["tvd"].mean(axis=0)
    held = []
    for weight in (0.4, 0.8):
        value = tvd(weight * own + (1 - weight) * without)
        whole = (value - floor).mean() / (ceiling - floor).mean()
        assert 0 < whole < 1
        for first in range(0, n, 2 * PER_STUDY):
            parts = (each[first : first + PER_STUDY] for each in (value, floor, ceiling))
            found = ceiling_share(*parts, group=np.arange(PER_STUDY) // 3, lower_is_better=True, n_replicates=300)
            held.append(found.lower <= whole <= found.upper)
    assert 0.84 <= np.mean(held) <= 0.96
    # who is like people, and who answers to another context; 24,000 contexts leave an error of 0.01
    group = np.arange(n) // 3
    like = ceiling_share(tvd(own), floor, ceiling, group=group, lower_is_better=True)
    assert like.share == pytest.approx(1, abs=0.03)
    shuffled = counts.take((np.arange(n) + 1) % n)
    others = cloze.distance_scores(halves, cloze.subsampled_words(halves, shuffled, rng=rng))["tvd"].mean(axis=0)
    # a stranger's few words are a little further than as many from all strangers
    stranger = ceiling_share(others, floor, ceiling, group=group, lower_is_better=True)
    assert -0.5 < stranger.share < 0.05
