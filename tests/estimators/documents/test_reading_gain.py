"""Gain of surprisal in predicting reading times: slow references, a known truth, and the ceiling of people."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators import documents
from shannon_game.estimators.documents.reading_gain import held_out_densities, people_ceiling, text_folds
from tests.oracles import reading_gain as oracle


def simulated(
    seed: int, n_texts: int = 12, n_words: int = 30, n_readers: int = 0, slope: float = 8.0
) -> dict[str, object]:
    """Times of words whose surprisal adds `slope` ms a nat; readers with levels and slopes, words with levels."""
    rng = np.random.default_rng(seed)
    text = np.repeat(np.arange(n_texts), n_words)
    nats, length = rng.normal(0, 2, text.size), rng.normal(0, 2, text.size)
    level = rng.normal(0, 15, text.size)
    word = np.arange(text.size) if n_readers == 0 else np.tile(np.arange(text.size), n_readers)
    who = np.repeat(np.arange(max(n_readers, 1)), text.size)
    own = rng.normal(0, 30, who.max() + 1)[who], slope + rng.normal(0, 3, who.max() + 1)[who] * (n_readers > 0)
    value = 300 + own[0] * (n_readers > 0) + own[1] * nats[word] + 3 * length[word]
    value += level[word] * (n_readers > 0) + rng.normal(0, 40, who.size)
    return {
        "value": value, "controls": {"length": length[word]}, "nats": nats[word], "text": text[word],
        "reader": who if n_readers else None, "word": word, "slopes": np.unique(own[1]),
    }  # fmt: skip


def densities(its: dict[str, object], added: dict[str, np.ndarray]) -> np.ndarray:
    of = {name: its[name] for name in ("text", "reader", "word")}
    return held_out_densities(its["value"], its["controls"], added, **of)


def gain_of(its: dict[str, object], nats: np.ndarray) -> documents.ReadingGain:
    return documents.gain_over_texts(densities(its, {"nats": nats}), densities(its, {}), its["text"])


def test_gains_of_means_are_those_of_least_squares_text_by_text() -> None:
    its = simulated(0)
    columns, fold = [its["controls"]["length"]], its["text"] % 10
    expected = oracle.of_means(its["value"], [*columns, its["nats"]], fold) - oracle.of_means(
        its["value"], columns, fold
    )
    found = gain_of(its, its["nats"])
    by_text = np.array([expected[its["text"] == int(name)].mean() for name in found.texts])
    np.testing.assert_allclose(found.gains_by_text, by_text, atol=1e-9)
    assert found.gain_nats_per_word == pytest.approx(expected.mean(), abs=1e-12)
    assert found.words_by_text.tolist() == [30] * 12
    # texts are never on both sides
    assert all(len(set(text_folds(its["text"])[its["text"] == one])) == 1 for one in range(12))


@pytest.mark.parametrize(("n", "n_readers"), [(300, 0), pytest.param(100, 8, marks=pytest.mark.slow)])
def test_intervals_hold_the_gain_that_is_true(n: int, n_readers: int) -> None:
    """Intervals of 90% hold it as often, within 3 standard errors; readers and their slopes are those of the corpus."""
    hits = []
    for seed in range(n):
        its = simulated(seed, n_texts=20, n_words=20 if n_readers else 30, n_readers=n_readers)
        found = gain_of(its, its["nats"])
        noise = 40**2 + 15**2 * (n_readers > 0)
        # of means a column costs 1 / (2 n) of the times it was estimated on
        true = 0.5 * np.log(1 + np.mean(its["slopes"] ** 2) * 4 / noise) - 0.5 / 540 * (n_readers == 0)
        hits.append(found.lower < true < found.upper)
    assert abs(np.mean(hits) - 0.9) < 3 * np.sqrt(0.09 / n)


def test_shuffled_surprisal_gains_nothing() -> None:
    """A column that tells nothing costs 1 / (2 n); 3 standard errors of 60 studies."""
    studies = [simulated(seed, n_texts=20) for seed in range(60)]
    gains = [gain_of(its, np.random.default_rng(0).permutation(its["nats"])).gain_nats_per_word for its in studies]
    assert abs(np.mean(gains) + 0.5 / 540) < 3 * np.std(gains) / np.sqrt(60) < 0.002


def test_the_ceiling_is_the_gain_of_other_readers() -> None:
    its = simulated(4, n_texts=6, n_words=20, n_readers=7)
    before = np.array([np.arange(120), np.where(np.arange(120) % 20 == 0, -1, np.arange(120) - 1)])
    of = {name: its[name] for name in ("text", "reader", "word")}
    total, n = people_ceiling(its["value"], its["controls"], **of, before=before, n_splits=1, seed=5)
    order = np.random.default_rng(5).permutation(7)
    level = {who: its["value"][its["reader"] == who].mean() for who in order[:3]}
    mean = [
        np.mean([its["value"][(its["reader"] == who) & (its["word"] == one)][0] - level[who] for who in order[:3]])
        for one in range(120)
    ]
    kept = np.isin(its["reader"], order[3:6]) & (its["word"] % 20 > 0)
    half = {name: its[name][kept] for name in ("value", "text", "reader", "word")}
    half["controls"] = {"length": its["controls"]["length"][kept]}
    people = {"word": np.array(mean)[half["word"]], "before": np.array(mean)[half["word"] - 1]}
    gain = densities(half, people) - densities(half, {})
    np.testing.assert_allclose(total, [gain[half["text"] == one].sum() for one in range(6)], rtol=1e-4)
    assert n.tolist() == [3 * 19] * 6
    # people know words' levels too
    assert total.sum() / n.sum() > 0
    alone = people_ceiling(
        its["value"], its["controls"], **{**of, "reader": its["reader"] % 3}, before=before, n_splits=1
    )
    assert alone[1].sum() == 0
