"""Importance sampling from several proposals: exact sums, a plain-loop version, and what studies without them keep."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.comparison import (
    comparison_items,
    comparison_participants,
    estimate_perplexity,
    group_terms,
    subsample_responses,
    validate_comparison_study,
)
from shannon_game.estimators.comparison.importance import balanced_logprob, drawn_responses
from shannon_game.estimators.comparison.log_means import plain_log_mean
from shannon_game.estimators.comparison.terms import log_terms, response_pairs
from shannon_game.estimators.errors import InputError
from tests.estimators.comparison.comparison_studies import answered_study, small_study, study_with_answers
from tests.oracles.bridge import balanced_mean

G = np.array([0.5, 0.3, 0.15, 0.05])
P = np.array([0.1, 0.2, 0.3, 0.4])
R = np.array([1.0, 0.4, 2.5, 6.0])
DIMS = ("item", "candidate")


def estimate(tokens: list[int], source: list[int], *, known: bool = True) -> float:
    """Z from tokens drawn from G (0) or P (1)."""
    logprob = np.log(np.stack([G[tokens], P[tokens]]))
    if not known:
        logprob[1, np.array(source) == 0] = np.nan
    terms = np.log(R[tokens]) - balanced_logprob(logprob, np.array(source), np.zeros(len(tokens), int))
    return float(np.exp(plain_log_mean(group_terms(terms, [0] * len(tokens))).value[0]))


@pytest.mark.parametrize("known", [True, False], ids=["balanced", "own"])
def test_the_mean_over_all_samples_is_z(known: bool) -> None:
    """Two draws of G and one of P, every one of the 64 samples with its probability: unbiased to the last digits."""
    total = 0.0
    for sample in itertools.product(range(4), repeat=3):
        chance = G[sample[0]] * G[sample[1]] * P[sample[2]]
        total += chance * estimate(list(sample), [0, 0, 1], known=known)
    assert total == pytest.approx(R.sum(), rel=1e-12)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=12))
def test_against_the_loop(sample: list[tuple[int, int]]) -> None:
    tokens, source = [token for token, _ in sample], [kind for _, kind in sample]
    expected = balanced_mean(R[tokens].tolist(), [G[tokens].tolist(), P[tokens].tolist()], source)
    assert estimate(tokens, source) == pytest.approx(expected, rel=1e-12)


def test_distinct_draws_are_weighed_by_inclusion() -> None:
    """Two distinct tokens of four, in every order, drawn one after the other without replacement: Horvitz-Thompson."""
    inclusion, samples = np.zeros(4), []
    for first, second in itertools.permutations(range(4), 2):
        chance = G[first] * G[second] / (1 - G[first])
        samples.append((chance, [first, second]))
        inclusion[[first, second]] += chance
    total = 0.0
    for chance, tokens in samples:
        study = small_study(n_items=1, n_candidates=2, n_participants=0)
        log_pi = np.log(inclusion[tokens])
        study = study.assign(
            candidate_source=(DIMS, np.full((1, 2), "distinct", dtype=object)), inclusion_logprob=(DIMS, log_pi[None])
        )
        pairs = response_pairs(validate_comparison_study(study))
        total += chance * np.mean(R[tokens] / np.exp(pairs.sampled_logprob))
    assert total == pytest.approx(R.sum(), rel=1e-12)


# --- studies -------------------------------------------------------------------------------------------------------


def named(study: xr.Dataset) -> xr.Dataset:
    """Say of every candidate that it is a draw of the generator."""
    return study.assign(candidate_source=(DIMS, np.full(study["candidate_token"].shape, "generator", dtype=object)))


def test_terms_of_a_mixed_item_divide_by_the_mixture() -> None:
    study = small_study(n_participants=12)
    proposed = np.full((6, 12), -2.0)
    source = np.full((6, 12), "generator", dtype=object)
    source[:, 6:] = "proposal"
    study = validate_comparison_study(study.assign(candidate_source=(DIMS, source), proposal_logprob=(DIMS, proposed)))
    pairs = response_pairs(study)
    for label in range(100, 106):
        mine = pairs.item == label
        kind = (pairs.draw[mine] >= 6).astype(int)
        row = label - 100
        g = np.exp(study["candidate_logprob"].values[1, row, pairs.draw[mine]])
        n = np.bincount(kind, minlength=2) / kind.size
        np.testing.assert_allclose(np.exp(pairs.sampled_logprob[mine]), n[0] * g + n[1] * np.exp(-2.0))
    assert np.isfinite(log_terms(pairs)).all()
    with pytest.raises(InputError, match="estimator 'rao_blackwell'"):
        estimate_perplexity(study, estimator="rao_blackwell")


def test_free_answers_and_comparisons_of_candidates_are_no_draws() -> None:
    study = study_with_answers()
    on_answers = study["response_candidate"].values == 10
    assert on_answers.any()
    assert drawn_responses(study).sizes["response"] == (~on_answers).sum()
    assert response_pairs(study).report.size == (~on_answers).sum()
    assert len(comparison_participants(study)) == 3  # the fourth compared free answers alone
    draws_only = study.isel(response=np.flatnonzero(~on_answers))
    assert estimate_perplexity(study, estimator="rao_blackwell").gap.gap_nats == pytest.approx(
        estimate_perplexity(draws_only, estimator="rao_blackwell").gap.gap_nats
    )
    reference = study["response_reference"].values.copy()
    chained = np.flatnonzero(study["response_candidate"].values == study["response_candidate"].values[0])
    reference[chained] = (study["response_candidate"].values[chained] + 1) % 10
    fewer = study.assign(response_reference=("response", reference))
    against_target = (reference == -1) & ~study["automatic"].values & (study["response_item"].values == 100)
    assert comparison_items(fewer, [])["mean_report"][0] == pytest.approx(study["report"].values[against_target].mean())
    assert drawn_responses(fewer).sizes["response"] < drawn_responses(study).sizes["response"]
    none = study.assign(response_reference=("response", (study["response_candidate"].values + 1) % 10))
    with pytest.raises(InputError, match=r"has 24 responses, and none compares a drawn candidate"):
        response_pairs(none)
    assert drawn_responses(small_study()).sizes["response"] == 24


def test_models_play_every_drawn_candidate_and_no_other() -> None:
    study = answered_study().isel(response=slice(0))
    pairs = response_pairs(study)
    assert pairs.item.size == 6 * 8
    assert estimate_perplexity(study, "lm").gap.gap_nats == pytest.approx(0, abs=1e-12)
    with pytest.raises(InputError, match="n: is 2, but the candidates come from several sources"):
        subsample_responses(study, 2, np.random.default_rng(0))


@pytest.mark.parametrize(("kind", "field"), [("proposal", "proposal_logprob"), ("distinct", "inclusion_logprob")])
def test_a_draw_of_unknown_probability_is_refused(kind: str, field: str) -> None:
    study = named(small_study())
    source = study["candidate_source"].values.copy()
    source[2, 3] = kind
    study = study.assign(candidate_source=(DIMS, source))
    with pytest.raises(InputError, match=rf"{field}: is unknown at item 102, candidate 3 \(1 such\)"):
        response_pairs(study)
