"""Chains of comparisons: closed forms, relaxation beside least squares, covariance, ends of the scale, islands."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st

from estimators.comparison import (
    bridge_gap,
    candidate_tokens,
    combine_comparisons,
    report_from_log_ratio,
    token_log_ratios,
    validate_comparison_study,
)
from estimators.comparison.examples import answered_study
from estimators.errors import InputError
from tests.estimators.comparison.comparison_studies import small_study, study_with_answers
from tests.oracles.bridge import chain

EDGE = st.tuples(st.integers(-1, 4), st.integers(-1, 4), st.floats(-8, 8)).filter(lambda edge: edge[0] != edge[1])


def solved(edges: list[tuple[int, int, float]], **more: object) -> dict[int, float]:
    a, b, d = zip(*edges, strict=True)
    found = combine_comparisons([0] * len(a), a, b, d, **more)  # type: ignore[arg-type]
    return dict(zip(found.token.tolist(), found.log_ratio.tolist(), strict=True))


def test_tokens_compared_with_the_target_alone_have_the_mean() -> None:
    found = combine_comparisons([3, 3, 3, 8], [0, 0, 2, 1], [-1] * 4, [1.0, 2.0, -4.0, 0.5])
    assert found.item.tolist() == [3, 3, 8]
    np.testing.assert_allclose(found.log_ratio, [1.5, -4.0, 0.5])
    assert found.variance == pytest.approx(0.5)  # one comparison too many, residuals of half
    np.testing.assert_allclose(found.se, np.sqrt([0.25, 0.5, 0.5]))
    assert found.n_comparisons.tolist() == [2, 1, 1]


def test_a_chain_adds_and_so_do_its_variances() -> None:
    found = combine_comparisons([0, 0, 0], [0, 1, 2], [-1, 0, 1], [-1.0, -2.0, -3.0], variance=0.09)
    np.testing.assert_allclose(found.log_ratio, [-1, -3, -6])
    np.testing.assert_allclose(found.se, 0.3 * np.sqrt([1, 2, 3]))
    np.testing.assert_allclose(found.covariance[0], 0.09 * np.minimum.outer([1, 2, 3], [1, 2, 3]))


def test_a_triangle_shares_out_what_does_not_close() -> None:
    found = combine_comparisons([0] * 3, [0, 1, 1], [-1, 0, -1], [-2.0, -3.0, -5.3])
    np.testing.assert_allclose(found.log_ratio, [-2.1, -5.2])
    assert found.variance == pytest.approx(0.03)
    weighted = combine_comparisons([0] * 3, [0, 1, 1], [-1, 0, -1], [-2.0, -3.0, -5.3], weight=[1, 1, 1e9])
    np.testing.assert_allclose(weighted.log_ratio, [-2.15, -5.3], atol=1e-6)


def test_ends_of_the_scale_can_give_way_to_a_chain() -> None:
    # token 1 is 9 above the target; the scale ends at 5. Token 2 is known by an end alone.
    edges: list[tuple[int, int, float]] = [(0, -1, 4.5), (1, 0, 4.5), (1, -1, 5.0), (2, -1, 5.0)]
    censored = [False, False, True, True]
    assert solved(edges, censored=censored)[1] == pytest.approx(9 - 4 * 2 / 3)
    assert solved(edges, censored=censored, drop_ends=True) == pytest.approx({0: 4.5, 1: 9.0, 2: 5.0})
    a, b, d = zip(*edges, strict=True)
    found = combine_comparisons([0] * 4, a, b, d, censored=censored, drop_ends=True)
    assert found.censored.tolist() == [False, False, True]
    assert found.n_comparisons.tolist() == [2, 1, 1]


@given(st.lists(EDGE, min_size=1, max_size=10))
def test_ends_that_give_way_unconnect_no_token_and_their_order_is_of_no_account(
    edges: list[tuple[int, int, float]],
) -> None:
    censored = [abs(d) > 4 for *_, d in edges]
    before, after = solved(edges, censored=censored), solved(edges, censored=censored, drop_ends=True)
    connected = {code for code, value in before.items() if not np.isnan(value)}
    assert connected == {code for code, value in after.items() if not np.isnan(value)}
    backwards = solved(edges[::-1], censored=censored[::-1], drop_ends=True)
    assert backwards == pytest.approx(after, nan_ok=True, abs=1e-9)


@given(st.lists(EDGE, min_size=1, max_size=10))
def test_against_relaxation(edges: list[tuple[int, int, float]]) -> None:
    found = solved(edges)
    reached = {code for code, value in found.items() if not np.isnan(value)}
    connected = [edge for edge in edges if set(edge[:2]) <= reached | {-1}]
    assume(connected)
    for code, value in chain(connected).items():
        if code != -1:
            assert found[code] == pytest.approx(value, abs=1e-8)


@given(st.lists(EDGE, min_size=1, max_size=10), st.permutations(range(5)))
def test_names_order_and_direction_do_not_matter(edges: list[tuple[int, int, float]], names: list[int]) -> None:
    other = [(-1 if b < 0 else names[b], -1 if a < 0 else names[a], -d) for a, b, d in reversed(edges)]
    first, second = solved(edges), solved(other)
    for code, value in first.items():
        assert second[names[code]] == pytest.approx(value, abs=1e-9, nan_ok=True)


def test_without_a_chain_to_the_target_a_token_is_counted_and_has_no_value() -> None:
    found = combine_comparisons([0, 0, 1], [0, 2, 5], [-1, 3, 6], [1.0, 2.0, 3.0], variance=1.0)
    assert found.connected.tolist() == [True, False, False, False, False]
    assert np.isnan(found.log_ratio).tolist() == [False, True, True, True, True]
    assert np.isnan(found.se).tolist() == [False, True, True, True, True]
    assert found.n_unconnected == 4
    assert [one.shape for one in found.covariance] == [(1, 1), (0, 0)]


def test_what_rests_on_an_end_of_the_scale() -> None:
    """0 - target is at the end: 0 and 1, which hangs on 0, rest on it; 2 does not."""
    found = combine_comparisons([0] * 3, [0, 1, 2], [-1, 0, -1], [-4.6, -1, -2], censored=[True, False, False])
    assert found.censored.tolist() == [True, True, False]
    assert found.n_censored == 2


def test_the_covariance_is_that_of_replicates() -> None:
    """Over 4,000 draws of the noise of a triangle with a tail: a variance is known to 2.2%, limits are thrice that."""
    a, b = [0, 1, 1, 2], [-1, 0, -1, 1]
    noise = np.random.default_rng(0).normal(0, 0.5, (4000, 4))
    found = combine_comparisons(
        np.repeat(np.arange(4000), 4),
        np.tile(a, 4000),
        np.tile(b, 4000),
        noise.ravel() + np.tile([-1, -1, -2, -3], 4000),
    )
    spread = np.cov(found.log_ratio.reshape(4000, 3).T)
    np.testing.assert_allclose(spread, found.covariance[0] * 0.25 / found.variance, atol=0.03)
    assert found.variance == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"item": [0]}, r"item: has shape \(1,\), log_ratio \(2,\)"),
        ({"candidate": [0, -2]}, "candidate: should be integers of at least 0, or -1"),
        ({"reference": [0.5, 1.5]}, "reference: should be integers"),
        ({"log_ratio": [0.0, np.inf]}, "log_ratio: is inf; should be finite"),
        ({"weight": [1.0, 0.0]}, "weight: should be positive"),
        ({"variance": -1.0}, "variance: is -1.0, should be positive"),
        ({"reference": [0, 1]}, "candidate, reference: no comparison is of two tokens"),
    ],
)
def test_wrong_comparisons(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"item": [0, 0], "candidate": [0, 1], "reference": [-1, 0], "log_ratio": [0.0, 1.0]}
    with pytest.raises(InputError, match=message):
        combine_comparisons(**(arguments | change))  # type: ignore[arg-type]


# --- studies -------------------------------------------------------------------------------------------------------


def test_tokens_of_a_study() -> None:
    study = study_with_answers()
    code = candidate_tokens(study)
    tokens, target = study["candidate_token"].values, study["target_token"].values
    for q in range(6):
        for column in range(12):
            text = tokens[q, column]
            expected = -2 if text == "" else -1 if text == target[q] else tokens[q].tolist().index(text)
            assert code[q, column] == expected


def chained(study: xr.Dataset) -> xr.Dataset:
    """Keep the beliefs, and compare every candidate of an item with the one before it, the first with the target."""
    item, shown = study["response_item"].values, study["response_candidate"].values
    log_h = study["human_candidate_logprob"].values
    first = np.concatenate([[True], np.diff(item) != 0])
    reference = np.where(first, -1, np.concatenate([[-1], shown[:-1]]))
    against = np.where(first, study["human_target_logprob"].values[item], log_h[item, np.maximum(reference, 0)])
    report = report_from_log_ratio(log_h[item, shown] - against)
    changed = study.assign(report=("response", report), response_reference=("response", reference))
    return validate_comparison_study(changed)


def test_a_study_of_chains_says_what_a_study_of_pairs_does() -> None:
    study = answered_study(n_items=5)
    pairs, chains = token_log_ratios(study), token_log_ratios(chained(study))
    np.testing.assert_allclose(chains.log_ratio, pairs.log_ratio, atol=1e-9)
    assert chains.n_equal < pairs.n_equal + 5
    np.testing.assert_allclose(bridge_gap(chained(study)).item_gap_nats, bridge_gap(study).item_gap_nats, atol=1e-9)


def test_ends_of_a_scale_are_those_of_the_rounding_or_given() -> None:
    study = small_study()
    said = token_log_ratios(study, rounding="interface")
    ends = np.isin(study["report"].values, [0.01, 0.99]) & ~study["automatic"].values
    assert 0 < said.n_censored <= ends.sum()
    assert token_log_ratios(study).n_censored == 0
    assert token_log_ratios(study, ends=(0.01, 0.99)).n_censored == said.n_censored
    with pytest.raises(InputError, match="response: has no entry"):
        token_log_ratios(study.isel(response=slice(0)))
