from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.rankings.perplexity import (
    approximate_perplexity,
    log_probability_bound,
    reference_log_probability,
)
from shannon_game.estimators.rankings.ranks import match_tokens, rank_at, ranks_among
from shannon_game.estimators.rankings.scores import (
    average_score,
    exponential_score,
    linear_score,
    reciprocal_score,
    top_k_accuracy,
)
from tests.oracles.rank_perplexity import scores

RANKS = st.one_of(st.integers(1, 400).map(float), st.just(np.inf))
SCORES = {
    "linear": linear_score,
    "reciprocal": lambda rank, k: reciprocal_score(rank_at(rank, k)),
    "exponential": lambda rank, k: exponential_score(rank_at(rank, k), 0.3),
    "average": average_score,
    "top-k": lambda rank, k: top_k_accuracy(rank, max(k // 2, 1)),
}


@pytest.mark.parametrize("name", SCORES)
@given(ranks=st.lists(RANKS, min_size=2, max_size=30), k=st.integers(1, 60))
def test_scores_fall_with_the_rank_and_stay_within_bounds(name: str, ranks: list[float], k: int) -> None:
    ordered = np.sort(np.array(ranks))
    score = SCORES[name](ordered, k)
    assert ((score >= 0) & (score <= 1)).all()
    assert (np.diff(score) <= 0).all()
    assert (score[ordered > k] == 0).all()
    assert (score[ordered == 1] == 1).all()


@pytest.mark.parametrize("k", [1, 2, 20])
def test_scores_are_their_closed_forms(k: int) -> None:
    ranked = [f"t{number}" for number in range(1, k + 1)]
    for reference in (*ranked, "absent"):
        rank = ranks_among(match_tokens([reference], [ranked]))
        expected = scores(reference, ranked)
        assert linear_score(rank, k)[0] == pytest.approx(expected["linear"], abs=1e-15)
        assert reciprocal_score(rank)[0] == expected["reciprocal"]
        assert exponential_score(rank, 0.1)[0] == pytest.approx(expected["exponential_01"], abs=1e-15)
        assert average_score(rank, k)[0] == pytest.approx(expected["average"], abs=1e-15)


def test_tie_rules() -> None:
    hit = [[False, True, False, False], [False, False, False, True], [False] * 4]
    values = [[-1.0, -2.0, -2.0, -3.0]] * 3
    assert ranks_among(hit).tolist() == [2, 4, np.inf]
    assert ranks_among(hit, values, tie="best").tolist() == [2, 4, np.inf]
    assert ranks_among(hit, values, tie="middle").tolist() == [2.5, 4, np.inf]
    assert ranks_among(hit, values, tie="worst").tolist() == [3, 4, np.inf]
    near = [[-1.0, -2.0, -2.0 - 1e-7, -3.0]] * 3
    assert ranks_among(hit, near, tie="worst", tolerance_nats=1e-6).tolist() == [3, 4, np.inf]


def test_matching() -> None:
    ranked = [["the", " the", "The", "\nthe"], ["a", "b", None, None]]
    assert match_tokens([" the", " b"], ranked).tolist() == [[True, True, False, True], [False, True, False, False]]
    assert match_tokens([" the", " b"], ranked, match="exact").tolist() == [[False, True, False, False], [False] * 4]
    # white space alone: stripped, all of it is alike
    assert match_tokens([" \n"], [["\n", ""]]).tolist() == [[True, True]]
    assert match_tokens([" \n"], [["\n", " \n"]], match="exact").tolist() == [[False, True]]
    assert match_tokens([7, 3], [[1, 7], [3, -1]], match="id").tolist() == [[False, True], [True, False]]
    # 0 is an id, a negative number none
    assert match_tokens(np.array([0, 3], np.uint16), [[0], [0]], match="id").tolist() == [[True], [False]]
    assert match_tokens([0, -1], [[0], [-1]], match="id").tolist() == [[True], [False]]
    # NumPy strings drop a null character at the end; tokens keep it
    assert match_tokens(
        np.array(["\0"], dtype=object), np.array([["", "\0"]], dtype=object), match="exact"
    ).tolist() == [[False, True]]


PAIR = [[np.log(0.5), np.log(0.3)], [np.log(0.6), np.log(0.2)]]
HIT = [[False, True], [False, False]]


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"censoring": "below_last"}, np.log(0.2) - 3),
        ({"censoring": "below_last", "offset_nats": 0.5}, np.log(0.2) - 0.5),
        # the list leaves .2, and no token outside it is above the last, .2
        ({"censoring": "bound"}, np.log(0.2)),
        ({"censoring": "uniform", "vocab_size": 12}, np.log(0.02)),
    ],
)
def test_censoring(settings: dict, missing: float) -> None:
    found = reference_log_probability(PAIR, HIT, **settings)
    np.testing.assert_allclose(found, [np.log(0.3), missing], rtol=1e-12)
    result = approximate_perplexity(PAIR, HIT, **settings)
    assert result.perplexity == pytest.approx(np.exp(-found.mean()))
    assert result.loss_nats == pytest.approx(-found.mean())
    # at most what the list leaves: .2
    assert result.perplexity_bound == pytest.approx(np.exp(-(np.log(0.3) + np.log(0.2)) / 2))
    assert result.censoring == settings["censoring"]
    assert (result.n_tokens, result.n_censored) == (2, 1)


@given(st.integers(0, 10_000))
def test_no_true_probability_is_above_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    probability = np.sort(rng.dirichlet(np.full(30, 0.3), size=4))[:, ::-1]
    bound = log_probability_bound(np.log(probability[:, :10] + 1e-300))
    assert (np.log(probability[:, 10] + 1e-300) <= bound + 1e-9).all()


def test_shorter_lists() -> None:
    values = [[-1.0, -2.0, np.nan], [-1.0, -2.0, -2.5]]
    missing = [[False] * 3] * 2
    assert reference_log_probability(values, missing).tolist() == [-5.0, -5.5]
    # no distance below the last one is a policy too
    assert reference_log_probability(values, missing, offset_nats=0).tolist() == [-2.0, -2.5]
    # what is left, over the tokens of ten that are not listed; a list of everything leaves nothing
    even = reference_log_probability(values, missing, censoring="uniform", vocab_size=10)
    left = 1 - np.exp([-1.0, -2.0, -2.5]).cumsum()[1:]
    np.testing.assert_allclose(even, np.log(left / [8, 7]))
    full = reference_log_probability([[np.log(0.5)] * 2], [[False] * 2], censoring="uniform", vocab_size=3)
    assert full.tolist() == [-np.inf]
    # a sure token has log-probability 0
    assert reference_log_probability(values, missing, censoring="exact", exact=[0.0, -1.0]).tolist() == [0, -1]
