"""Shannon's bounds: closed forms, his own sums, words that were not found, bias and standard errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.estimators.documents.guess_bounds import lower_bound_terms
from shannon_game.estimators.rankings import guess_bounds
from tests.oracles.bets import shannon_bounds

INF = math.inf


@pytest.mark.parametrize("n", [2, 5, 27])
def test_uniform_ranks_have_the_entropy_of_their_number(n: int) -> None:
    """There both bounds meet: n equally probable words."""
    found = guess_bounds(list(range(1, n + 1)) * 400, item=range(400 * n))
    assert found.lower_nats == pytest.approx(math.log(n))
    assert found.upper_plug_in_nats == pytest.approx(math.log(n))
    assert found.is_falling


@settings(max_examples=50)
@given(count=st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(sum))
def test_both_are_shannon_s_sums(count: list[int]) -> None:
    ranks = [rank for rank, n in enumerate(count, start=1) for _ in range(n)]
    found = guess_bounds(ranks, item=range(len(ranks)))
    lower, upper = shannon_bounds([n / sum(count) for n in count])
    assert found.lower_nats == pytest.approx(lower, abs=1e-12)
    assert found.upper_plug_in_nats == pytest.approx(upper, abs=1e-12)
    ordered = guess_bounds([r for r, n in enumerate(sorted(count, reverse=True), 1) for _ in range(n)], item=ranks)
    # for ranks in falling order the lower bound is one
    assert ordered.lower_nats <= ordered.upper_plug_in_nats + 1e-12


def test_words_not_found_keep_both_bounds() -> None:
    """A guesser who gives up after 3 guesses has a lower bound no higher, and an upper bound no lower."""
    q = 1 / np.arange(1, 21)
    ranks = np.random.default_rng(2).choice(20, size=3000, p=q / q.sum()) + 1.0
    whole = guess_bounds(ranks, item=range(3000))
    cut = np.where(ranks > 3, INF, ranks)
    found = guess_bounds(cut, item=range(3000), n_tried=3, vocab_size=20)
    assert found.n_not_found == int((ranks > 3).sum())
    assert found.lower_nats < whole.lower_nats
    assert found.upper_nats > whole.upper_nats
    share = (ranks > 3).mean()
    by_hand = shannon_bounds([float((ranks == r).mean()) for r in (1, 2, 3)] + [share])[1] + share * math.log(17)
    assert found.upper_plug_in_nats == pytest.approx(by_hand)
    unknown = guess_bounds(cut, item=range(3000), n_tried=3)
    assert np.isnan([unknown.upper_nats, unknown.upper_se_nats]).all()
    assert unknown.lower_nats == pytest.approx(found.lower_nats)


def test_bias_is_taken_away_and_standard_errors_are_right() -> None:
    """200 samples of 200 ranks: bias of the entropy -.13 before and within .03 after; 90% intervals hold 84 to 95%."""
    q = 1 / np.arange(1, 51) ** 1.2
    q /= q.sum()
    entropy, lower = -(q * np.log(q)).sum(), q @ lower_bound_terms(np.arange(1, 51))
    rng = np.random.default_rng(3)
    found = [guess_bounds(rng.choice(50, size=200, p=q) + 1, item=range(200)) for _ in range(200)]
    assert np.mean([each.upper_plug_in_nats for each in found]) - entropy < -0.1
    assert np.mean([each.upper_nats for each in found]) == pytest.approx(entropy, abs=0.03)
    assert np.mean([each.lower_nats for each in found]) == pytest.approx(lower, abs=0.03)
    for name, truth in (("upper", entropy), ("lower", lower)):
        off = [abs(getattr(each, f"{name}_nats") - truth) / getattr(each, f"{name}_se_nats") for each in found]
        assert 0.82 < np.mean(np.array(off) < 1.645) < 0.96
