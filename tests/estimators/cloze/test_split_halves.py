"""SplitHalves, calibration error and improvement: against lists of words and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.cloze.calibration_error import expected_calibration_error, share_correct
from shannon_game.estimators.cloze.criterion_share import needed_share
from shannon_game.estimators.cloze.distributions import Distributions, count_words, top_words
from shannon_game.estimators.cloze.split_halves import (
    SplitHalves,
    random_split_halves,
    split_half_top_words,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from shannon_game.estimators.errors import InputError
from tests.estimators.cloze.test_distributions import counts

LISTS = [list("aaabbbbccd"), list("aaaabbcdefg"), list("xyzxyzxyz"), list("aaaabbcdefh")]
LISTS = [sorted(words, key=lambda w, ws=words: (-ws.count(w), w)) for words in LISTS]


def test_independent_splits_are_disjoint_halves_and_uniform() -> None:
    one = counts(LISTS)
    split = random_split_halves(one, n_splits=400, rng=np.random.default_rng(3))
    used = split.first + split.second
    assert (used <= one.count).all()
    totals = np.array([np.bincount(one.context, weights=part) for part in split.first])
    assert (totals == [5, 5, 4, 5]).all()
    # each answer is in the first half with probability 5/10: a mean of 400 sums of 3 has an sd below .05
    assert split.first[:, 0].mean() == pytest.approx(one.count[0] * 0.5, abs=0.2)
    fixed = random_split_halves(one, n_splits=2, rng=np.random.default_rng(3), size=5)
    assert np.isnan(tvd_between_split_halves(fixed)[:, 2]).all()
    assert np.isfinite(tvd_between_split_halves(fixed)[:, 0]).all()


def test_distance_to_either_oracle_and_to_a_model_with_other_words() -> None:
    one = counts([list("aabb")])
    split = SplitHalves(one, np.array([[2, 0]]), np.array([[0, 2]]))
    q = Distributions(np.array([0, 0]), np.array([ord("a"), ord("z")]), np.array([0.7, 0.3]), 1)
    assert tvd_to_split_halves(q, split).tolist() == [[pytest.approx(0.3)]]
    assert tvd_to_split_halves(q, split, "second").tolist() == [[pytest.approx(1.0)]]
    # a context whose people all left: nothing to compare with; a distribution that is not there: nothing either
    empty = SplitHalves(count_words([0], [1], [2], n_contexts=3), np.array([[1]]), np.array([[1]]))
    alone = Distributions(np.array([0, 1]), np.array([1, 1]), np.array([1.0, 1.0]), 3)
    assert np.isnan(tvd_to_split_halves(alone, empty)[0]).tolist() == [False, True, True]
    assert np.isnan(tvd_between_split_halves(empty)[0]).tolist() == [False, True, True]
    late = SplitHalves(count_words([1], [1], [1], n_contexts=3), np.array([[1]]), np.array([[1]]))
    np.testing.assert_array_equal(tvd_to_split_halves(alone, late)[0], [np.nan, 0, np.nan])
    silent = Distributions(alone.context[:0], alone.word[:0], alone.probability[:0], 3)
    assert np.isnan(tvd_to_split_halves(silent, late)).all()
    # an oracle without an answer has no most frequent word
    nobody = SplitHalves(one, np.array([[0, 0]]), np.array([[2, 2]]))
    assert split_half_top_words(nobody)[0].word.tolist() == [-1]
    # half of the mass on words of no one, as stated
    assert tvd_to_split_halves(q, split, remaining=np.array([0.1]))[0, 0] == pytest.approx((0.3 + 0.1) / 2)
    assert [chr(split_half_top_words(split, which)[0].word[0]) for which in ("first", "second")] == ["a", "b"]  # type: ignore[arg-type]


def test_bins_by_hand() -> None:
    """Four equal widths, one of them empty; the paper's, which lose a confidence of 1; four equal numbers."""
    sure, right = [0.0, 0.1, 0.25, 0.3, 0.9, 0.75, 1.0], [1, 0, 0, 1, 1, 0, 1]
    nan = np.nan
    fixed = expected_calibration_error([*sure, nan], [*right, 1], n_bins=4)
    assert fixed.count.tolist() == [2, 2, 0, 3]
    assert fixed.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    np.testing.assert_allclose(fixed.confidence, [0.05, 0.275, nan, 2.65 / 3])
    np.testing.assert_allclose(fixed.accuracy, [0.5, 0.5, nan, 2 / 3])
    assert fixed.ece == pytest.approx((2 * 0.45 + 2 * 0.225 + 0.65) / 7)
    assert (fixed.n, fixed.n_lost) == (7, 0)
    legacy = expected_calibration_error(sure, right, n_bins=4, bins="legacy")
    assert legacy.count.tolist() == [2, 2, 0, 2]
    assert legacy.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    np.testing.assert_allclose(legacy.confidence[3], 0.825)
    assert (legacy.n, legacy.n_lost) == (7, 1)
    # begins at places 0, 1, 3 and 5 of the seven
    adaptive = expected_calibration_error(sure, right, n_bins=4, bins="adaptive")
    assert adaptive.edges.tolist() == [0, 0.1, 0.3, 0.9, 1]
    assert adaptive.count.tolist() == [1, 2, 2, 2]
    np.testing.assert_allclose(adaptive.accuracy, [1, 0, 0.5, 1])
    one = expected_calibration_error(sure, right, n_bins=1)
    assert one.ece == pytest.approx(abs(np.mean(sure) - 4 / 7))


def test_no_gold_label_and_no_prediction_are_unknown() -> None:
    """Codes start at 0: the first word is a word, and a context without answers is no match of two missing words."""
    mine = count_words([0, 0, 1, 3], [0, 1, 0, 1], [2, 2, 1, 3], n_contexts=5)
    gold = count_words([0, 2, 3], [0, 0, 0], [1, 1, 1], n_contexts=5)
    tops = top_words(mine), top_words(gold)
    nan = np.nan
    np.testing.assert_allclose(share_correct(mine, tops[0], gold, tops[1], ties="first"), [1, nan, nan, 0, nan])
    np.testing.assert_allclose(share_correct(mine, tops[0], gold, tops[1], ties="average"), [0.5, nan, nan, 0, nan])
    with pytest.raises(InputError, match="unknown ties 'both'"):
        share_correct(mine, tops[0], gold, tops[1], ties="both")  # type: ignore[arg-type]


def test_needed_share_closes_the_gap_to_the_margin() -> None:
    model, oracle = np.full(100, 0.7), np.full(100, 0.4)
    found = needed_share(model, oracle, np.arange(100) // 10, margin=0.03, rng=np.random.default_rng(0))
    assert found.share == pytest.approx(0.9)
    assert (found.lower, found.upper) == pytest.approx((0.9, 0.9))
    assert needed_share(oracle, model, np.arange(100), margin=0.03, rng=np.random.default_rng(0)).share == 0


def test_interval_of_the_needed_share_covers() -> None:
    """200 sets of 40 texts with a gap of .2: the 90% interval holds 1 - .05 / .2 in 84 to 96% (binomial, 2.5 sd)."""
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        text = np.repeat(rng.normal(0, 0.05, size=40), 10)
        gap = 0.2 + text + rng.normal(0, 0.1, size=400)
        found = needed_share(gap, np.zeros(400), np.repeat(np.arange(40), 10), margin=0.05, rng=rng, n_replicates=300)
        hits += found.lower <= 0.75 <= found.upper
    assert 0.84 <= hits / 200 <= 0.96
