"""Log-means against loops, closed forms and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.comparison import diagnose_weights, group_terms
from shannon_game.estimators.comparison.diagnostics import pareto_khat, smooth_tail
from shannon_game.estimators.comparison.log_means import (
    LOG_MEANS,
    delta_log_mean,
    expected_counts,
    jackknife_log_mean,
    plain_log_mean,
    psis_log_mean,
    rao_blackwell_log_mean,
)
from shannon_game.estimators.errors import InputError
from tests.oracles.comparison_game import expected_counts_by_enumeration, gap_and_errors

studies = st.dictionaries(
    st.integers(0, 50), st.lists(st.floats(-6, 6), min_size=1, max_size=9), min_size=1, max_size=8
)


def flatten(study: dict[int, list[float]], shuffle: int = 0) -> tuple[np.ndarray, np.ndarray]:
    item = np.concatenate([[key] * len(values) for key, values in study.items()])
    term = np.concatenate(list(study.values()))
    order = np.random.default_rng(shuffle).permutation(item.size)
    return term[order], item[order]


def as_terms(study: dict[int, list[float]]) -> dict[int, list[float]]:
    return {key: np.exp(values).tolist() for key, values in study.items()}


def test_corrections_and_standard_errors_by_hand() -> None:
    """Four terms, two, and one, which has nothing to be corrected with."""
    items = {"a": [1.0, 2.0, 4.0, 3.0], "b": [2.0, 5.0], "c": [3.0]}
    weight = [w for values in items.values() for w in values]
    terms = group_terms(np.log(weight), [name for name, values in items.items() for _ in values])
    delta, jackknife, loo = delta_log_mean(terms), jackknife_log_mean(terms), terms.others_log_mean()
    at = 0
    for i, values in enumerate(items.values()):
        n, mean = len(values), np.mean(values)
        here, at = loo[at : at + n], at + n
        if n == 1:
            assert delta.value[i] == jackknife.value[i] == pytest.approx(np.log(mean))
            assert np.isnan([delta.se[i], jackknife.se[i]]).all()
            assert np.isnan(here).all()
            continue
        relative = np.var(values, ddof=1) / n / mean**2
        assert delta.value[i] == pytest.approx(np.log(mean) + relative / 2)
        assert delta.se[i] == pytest.approx(np.sqrt(relative))
        others = np.array([np.log(np.mean(np.delete(values, j))) for j in range(n)])
        assert jackknife.value[i] == pytest.approx(n * np.log(mean) - (n - 1) * others.mean())
        assert jackknife.se[i] == pytest.approx(np.sqrt((n - 1) / n * ((others - others.mean()) ** 2).sum()))
        np.testing.assert_allclose(here, others)


@given(studies, st.integers(0, 5))
def test_plain_is_equation_5(study: dict[int, list[float]], shuffle: int) -> None:
    means = plain_log_mean(group_terms(*flatten(study, shuffle)))
    gap, _, se_samples = gap_and_errors(as_terms(study))
    assert means.value.mean() == pytest.approx(gap, abs=1e-10)
    np.testing.assert_equal(np.isnan(means.se), [len(study[key]) == 1 for key in sorted(study)])
    assert np.sqrt(np.nansum(means.se**2)) / means.se.size == pytest.approx(se_samples, abs=1e-10)


@pytest.mark.parametrize("name", LOG_MEANS)
def test_terms_a_thousand_nats_apart(name: str) -> None:
    """The largest term is the sum; left out, the others must not have vanished."""
    terms = group_terms([0.0, -1000.0, -1001.0, -1002.0], [3, 3, 3, 3])
    assert np.isfinite(LOG_MEANS[name](terms).value).all()
    others = group_terms([0.0, -1600.0, -1600.0], [3, 3, 3]).others_log_mean()
    assert others[0] == pytest.approx(-1600.0)


@pytest.mark.parametrize(("probability", "n"), [((0.5, 0.3), 4), ((0.2, 0.1, 0.05), 6), ((0.7, 0.02), 7), ((0.4,), 3)])
def test_expected_counts_by_enumeration(probability: tuple[float, ...], n: int) -> None:
    np.testing.assert_allclose(
        expected_counts(np.log(probability), n), expected_counts_by_enumeration(probability, n), rtol=1e-12
    )


@given(st.lists(st.floats(-12, -0.1), min_size=1, max_size=40), st.integers(0, 400))
def test_expected_counts_sum_to_n_and_follow_probability(logprob: list[float], extra: int) -> None:
    n = len(logprob) + extra
    counts = expected_counts(np.sort(logprob), n)
    assert counts.sum() == pytest.approx(n, rel=1e-9)
    assert np.all(counts >= 1 - 1e-12)
    assert np.all(np.diff(counts) >= -1e-9)


@pytest.mark.parametrize("people", [1, 2])
def test_rao_blackwell_is_unbiased_and_less_noisy(people: int) -> None:
    """Every sample of four draws from three tokens with its probability; each draw answered once, or twice."""
    g, w = np.array([0.6, 0.3, 0.1]), np.array([0.3, 2.0, 4.0])
    samples = np.array(list(itertools.product(range(3), repeat=4)))
    chance, drawn = g[samples].prod(axis=1), np.repeat(samples, people, axis=1).ravel()
    item, position = np.repeat(np.arange(81), 4 * people), np.tile(np.repeat(np.arange(4), people), 81)
    terms = group_terms(np.log(w)[drawn], item)
    found = np.exp(rao_blackwell_log_mean(terms, drawn, np.log(g)[drawn], position).value)
    assert chance @ found == pytest.approx(g @ w, rel=1e-12)
    assert chance @ found**2 < chance @ np.exp(plain_log_mean(terms).value) ** 2 - 0.01
    with pytest.raises(InputError, match=r"draw: has shape \(2,\)"):
        rao_blackwell_log_mean(terms, drawn, np.log(g)[drawn], [0, 1])


def test_psis_smooths_the_leave_one_out_weights_and_averages_again() -> None:
    """Item by item, term by term: ratio to the mean of the others, one tail for all, back to the mean."""
    rng = np.random.default_rng(11)
    weights = np.exp(rng.standard_t(3, (80, 12)))
    ratio = np.array([[row[j] / np.delete(row, j).mean() for j in range(12)] for row in weights])
    smoothed = smooth_tail(ratio.ravel()).reshape(80, 12)
    assert np.any(smoothed != ratio)
    expected = np.log((weights * smoothed / ratio).mean(axis=1))
    terms = group_terms(np.log(weights).ravel(), np.repeat(np.arange(80), 12))
    np.testing.assert_allclose(psis_log_mean(terms).value, expected, rtol=1e-9)
    assert diagnose_weights(terms).pareto_k == pytest.approx(pareto_khat(ratio.ravel()), abs=1e-9)


def test_terms_are_the_callers_no_more() -> None:
    """What is computed later is of the terms that were given, not of what the caller has made of them since."""
    mine = np.random.default_rng(1).normal(size=60)
    terms = group_terms(mine, np.repeat(np.arange(6), 10))
    before = plain_log_mean(group_terms(mine.copy(), np.repeat(np.arange(6), 10))).value
    mine += 5.0
    np.testing.assert_array_equal(plain_log_mean(terms).value, before)


@given(studies)
def test_divergence_and_starved_items_are_their_definitions(study: dict[int, list[float]]) -> None:
    found = diagnose_weights(group_terms(*flatten(study)))
    divergence, wanted, starved = [], [], []
    for values in as_terms(study).values():
        share = np.array(values) / np.sum(values)
        relative = np.log(np.array(values) / np.mean(values))
        kl = max(share @ relative, 0.0)
        divergence.append(kl)
        wanted.append(np.exp(kl + np.sqrt(share @ (relative - kl) ** 2)))
        starved.append(len(values) * np.exp(-kl) < 2 - 1e-9)
    assert found.kl_nats == pytest.approx(np.mean(divergence), abs=1e-12)
    assert found.n_required == pytest.approx(np.quantile(wanted, 0.9), rel=1e-7)
    assert found.share_starved >= np.mean(starved)


def test_integers_are_sorted_as_strings_are() -> None:
    rng = np.random.default_rng(12)
    for label in (
        np.repeat(np.arange(-40, 40, 3), rng.integers(1, 6, 27)),
        rng.integers(-50, 50, 200),
        rng.integers(0, 50, 200).astype(np.uint8),
        np.array([2**63 - 1, -(2**63), 0, 2**63 - 1, 5, -(2**63)]),
        np.array([2**64 - 1, 3, 2**64 - 1, 0], dtype=np.uint64),
        np.repeat(np.arange(9), 4)[::-1],
    ):
        term = rng.normal(size=label.size)
        terms = group_terms(term, label)
        order = np.argsort(label, kind="stable")
        np.testing.assert_array_equal(terms.order, order)
        np.testing.assert_array_equal(terms.log_term, term[order])
        unique, first, code, count = np.unique(label[order], return_index=True, return_inverse=True, return_counts=True)
        for ours, theirs in ((terms.label, unique), (terms.start, first), (terms.item, code), (terms.n, count)):
            np.testing.assert_array_equal(ours, theirs)
