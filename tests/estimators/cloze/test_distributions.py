"""Distances between cpds: closed forms, and slow versions on random lists of words."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.estimators.cloze.distances import jensen_shannon_nats, kl_nats, total_variation, tvd_exact
from shannon_game.estimators.cloze.distributions import (
    Distributions,
    WordCounts,
    count_words,
    entropy_nats,
    probability_at,
    relative_frequencies,
    top_words,
)
from shannon_game.estimators.cloze.tvd_bias import permutation_baseline, tvd_with_baseline
from shannon_game.estimators.errors import InputError
from tests.oracles import cloze as slow

LISTS = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=12), min_size=1, max_size=6)


def counts(lists: list[list[str]]) -> WordCounts:
    pairs = [(context, ord(word)) for context, words in enumerate(lists) for word in words]
    context, word = zip(*pairs, strict=True) if pairs else ((), ())
    return count_words(context, word, [1] * len(pairs), n_contexts=len(lists))


@settings(max_examples=100)
@given(LISTS, st.randoms())
def test_against_lists(first: list[list[str]], shuffler: object) -> None:
    second = [[*sorted(words, key=lambda _: shuffler.random())[::2], "z"] for words in first]  # type: ignore[attr-defined]
    a, b = counts(first), counts(second)
    p, q = relative_frequencies(a), relative_frequencies(b)
    found = {
        "tvd": total_variation(p, q),
        "entropy": entropy_nats(p),
        "js": jensen_shannon_nats(p, q),
        "exact": tvd_exact(p, probability_at(q, p)),
    }
    for i, (one, other) in enumerate(zip(first, second, strict=True)):
        if not one:
            assert all(np.isnan(values[i]) for values in found.values())
            continue
        assert found["tvd"][i] == pytest.approx(slow.tvd(one, other))
        assert found["exact"][i] == pytest.approx(slow.tvd(one, other))
        assert found["entropy"][i] == pytest.approx(slow.entropy(one))
        middle = {w: (slow.cpd(one).get(w, 0) + slow.cpd(other).get(w, 0)) / 2 for w in {*one, *other}}
        js = sum(side[w] * np.log(side[w] / middle[w]) / 2 for side in (slow.cpd(one), slow.cpd(other)) for w in side)
        assert found["js"][i] == pytest.approx(js)
        assert 0 <= found["js"][i] <= np.log(2) + 1e-12


def test_closed_forms() -> None:
    p = Distributions(np.array([0, 0, 1]), np.array([0, 1, 5]), np.array([0.5, 0.5, 1.0]), 2)
    q = Distributions(np.array([0, 1]), np.array([1, 6]), np.array([1.0, 1.0]), 2)
    np.testing.assert_allclose(total_variation(p, q), [0.5, 1.0])
    np.testing.assert_allclose(kl_nats(q, p), [np.log(2), np.inf])
    np.testing.assert_allclose(kl_nats(p, q), [np.inf, np.inf])
    # union of two words each: uniform share .1 gives q = (.05, .95)
    expected = 0.5 * np.log(0.5 / 0.05) + 0.5 * np.log(0.5 / 0.95)
    assert kl_nats(p, q, mixed_in=0.1)[0] == pytest.approx(expected)
    for share in (-0.1, 1.0):
        with pytest.raises(InputError, match="should be a share in"):
            kl_nats(p, q, mixed_in=share)


def test_rows_keep_the_order_in_which_words_were_seen() -> None:
    one = count_words([0, 0, 0, 1], [7, 3, 7, 1], [1, 2, 1, 0], n_contexts=2)
    assert one.word.tolist() == [7, 3]
    assert one.count.tolist() == [2, 2]
    top = top_words(one)
    assert top.word.tolist() == [7, -1]
    assert top.n_tied.tolist() == [2, 0]
    np.testing.assert_array_equal(top.confidence, [0.5, np.nan])
    assert top.is_top.tolist() == [True, True]
    with pytest.raises(InputError, match="count: is -2, should be 0 or more"):
        count_words([0, 0], [1, 2], [1, -2], n_contexts=1)
    once = top_words(count_words([1], [4], [1], n_contexts=2))
    np.testing.assert_array_equal(once.confidence, [np.nan, 1.0])


def test_exact_distance_needs_a_distribution() -> None:
    p = Distributions(np.array([0]), np.array([0]), np.array([1.0]), 1)
    assert tvd_exact(p, [0.3])[0] == pytest.approx(0.7)
    with pytest.raises(InputError, match="should be probabilities"):
        tvd_exact(p, [-0.1])
    # known to rounding: a sum of one and a hair leaves nothing, and nothing at all is left of the mass
    assert tvd_exact(p, [1 + 1e-9])[0] == pytest.approx(0, abs=1e-8)
    two = Distributions(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1.0, 0.5, 0.5]), 2)
    with pytest.raises(InputError, match=r"1.200000 over the words of context 1"):
        tvd_exact(two, [0.5, 0.6, 0.6])
    # several models at once
    np.testing.assert_allclose(tvd_exact(two, [[0.5, 0.4, 0.3], [1, 1, 0]]), [[0.5, 0.3], [0, 0.5]])
    more = Distributions(two.context, two.word, two.probability, 3)
    nan = np.nan
    twice = tvd_exact(more, [[[0.5, 0.4, 0.3]], [[1, 1, 0]]])
    np.testing.assert_allclose(twice, [[[0.5, 0.3, nan]], [[0, 0.5, nan]]])


def test_probabilities_at_words_that_a_distribution_does_not_list() -> None:
    q = Distributions(np.array([0, 0, 1]), np.array([2, 0, 1]), np.array([0.6, 0.4, 1.0]), 3)
    rows = Distributions(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 3, 0, 2]), np.ones(6), 3)
    assert probability_at(q, rows).tolist() == [0.4, 0, 0.6, 0, 0, 0]
    nothing = Distributions(np.array([], int), np.array([], int), np.array([]), 3)
    assert probability_at(nothing, rows).tolist() == [0.0] * 6
    assert probability_at(q, nothing).shape == (0,)
    with pytest.raises(InputError, match="3 contexts on one side and 1 on the other"):
        probability_at(q, Distributions(np.array([0]), np.array([0]), np.array([1.0]), 1))


def test_baseline_of_unequal_sides_is_the_mean_over_all_ways_to_deal() -> None:
    sides = [("aab", "b"), ("a", "bbc"), ("ab", "ccd"), ("", "ab"), ("ab", "")]
    found = permutation_baseline(counts([list(one) for one, _ in sides]), counts([list(other) for _, other in sides]))
    for (one, other), baseline in zip(sides, found, strict=True):
        if not (one and other):
            assert np.isnan(baseline)
            continue
        everyone = one + other
        ways = [
            slow.tvd([everyone[i] for i in chosen], [w for i, w in enumerate(everyone) if i not in chosen])
            for chosen in combinations(range(len(everyone)), len(one))
        ]
        assert baseline == pytest.approx(np.mean(ways))


def test_where_every_answer_is_another_word_no_correction_is_possible() -> None:
    """Dealt out again, single answers of different words are as far apart; without answers there is no distance."""
    found = tvd_with_baseline(counts([["a"], ["a"], []]), counts([["b"], ["a"], ["a"]]))
    np.testing.assert_array_equal(found.raw, [1, 0, np.nan])
    np.testing.assert_array_equal(found.baseline, [1, 0, np.nan])
    np.testing.assert_array_equal(found.corrected, [np.nan, 0, np.nan])
