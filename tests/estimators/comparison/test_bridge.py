"""The bridge: its closed forms, a plain-loop version beside it, what it does to bias, noise and studies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from estimators.comparison import (
    balanced_log_terms,
    bridge_gap,
    bridge_log_means,
    candidate_tokens,
    comparison_items,
    diagnose_overlap,
    estimate_perplexity,
    group_terms,
    log_ratio_from_report,
    overlap_verdict,
    plain_log_mean,
    report_from_log_ratio,
    token_log_ratios,
    validate_comparison_study,
)
from estimators.comparison.examples import answered_study
from estimators.errors import InputError
from tests.estimators.comparison.comparison_studies import draws, players, small_study
from tests.oracles.bridge import bridge

ITEM = st.tuples(st.lists(st.floats(-6, 6), min_size=1, max_size=8), st.lists(st.floats(-6, 6), min_size=1, max_size=8))


def flat(items: list[tuple[list[float], list[float]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-weights, items and kinds of items given as (draws, answers)."""
    weights = np.concatenate([np.array(draws + answers) for draws, answers in items])
    item = np.repeat(np.arange(len(items)), [len(draws) + len(answers) for draws, answers in items])
    kind = np.concatenate([np.repeat([False, True], [len(draws), len(answers)]) for draws, answers in items])
    return weights, item, kind


@given(st.lists(ITEM, min_size=1, max_size=4))
def test_the_root_is_the_fixed_point_of_the_plain_loop(items: list[tuple[list[float], list[float]]]) -> None:
    found = bridge_log_means(*flat(items)).value
    for q, (drawn, answers) in enumerate(items):
        expected = np.log(bridge(np.exp(drawn).tolist(), np.exp(answers).tolist()))
        # the loop stops where it creeps: with little overlap it moves by e^-6 of what is left a step
        assert found[q] == pytest.approx(expected, abs=1e-4)


@given(ITEM, st.floats(-50, 50), st.randoms(use_true_random=False))
def test_order_does_not_matter_and_a_constant_adds(
    item: tuple[list[float], list[float]], constant: float, rng: object
) -> None:
    weights, label, kind = flat([item])
    means = bridge_log_means(weights, label, kind)
    order = np.random.default_rng(rng.randrange(1000)).permutation(weights.size)  # type: ignore[attr-defined]
    other = bridge_log_means(weights[order] + constant, label, kind[order])
    np.testing.assert_allclose(other.value, means.value + constant, atol=1e-9)
    np.testing.assert_allclose(other.overlap, means.overlap, atol=1e-9)
    # the two sides change places, and the constant its sign
    mirrored = bridge_log_means(-weights, label, ~kind)
    np.testing.assert_allclose(mirrored.value, -means.value, atol=1e-9)


def test_draws_in_the_shares_of_the_distributions_give_z_itself() -> None:
    g, h = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.3, 0.5])
    weight = np.log(h / h[1] / g)
    tokens = np.repeat([0, 1, 2, 0, 1, 2], [6, 3, 1, 2, 3, 5])
    means = bridge_log_means(weight[tokens], np.zeros(20, dtype=int), np.arange(20) >= 10)
    assert means.value[0] == pytest.approx(-np.log(h[1]), abs=1e-12)
    assert means.overlap[0] == pytest.approx(np.sum(g * h / (0.5 * g + 0.5 * h)), abs=1e-12)
    assert means.se[0] == pytest.approx(np.sqrt(0.2 * (1 / means.overlap[0] - 1)), abs=1e-12)


def test_people_who_are_the_generator_leave_no_error() -> None:
    means = bridge_log_means(np.full(7, 1.5), np.zeros(7, dtype=int), np.arange(7) >= 3)
    assert means.value[0] == pytest.approx(1.5, abs=1e-12)
    assert means.overlap[0] == pytest.approx(1)
    assert means.se[0] == pytest.approx(0, abs=1e-6)


def test_without_overlap_the_error_is_said_and_not_hidden() -> None:
    weights = np.array([-30.0, -30, 30, 30] * 4 + [0.0, 0, 0, 0] * 4)
    item, kind = np.repeat(np.arange(8), 4), np.tile([False, False, True, True], 8)
    means = bridge_log_means(weights, item, kind)
    np.testing.assert_allclose(means.value, 0, atol=1e-9)
    assert (means.se[:4] > 1e3).all()
    found = diagnose_overlap(means, weights, kind)
    assert found.verdict == "too few"
    assert found.share_starved == found.share_without_overlap == 0.5
    # draws that people like better than their own answers overlap with nothing either
    crossed = bridge_log_means(-weights[:4], item[:4], kind[:4])
    assert crossed.overlap[0] < 1e-9


def test_weights_beyond_the_range_of_floats() -> None:
    means = bridge_log_means([0.0, 700, 1400, 1400], [0] * 4, [False, False, True, True])
    # 2 exp(1400 - z) would be 1 draw's and 2 answers' shares in balance: exp(700 - z) = 2 exp(z - 1400)
    assert means.value[0] == pytest.approx(1050 - np.log(2) / 2)
    assert bridge_log_means([5000.0, -5000.0], [0, 0], [False, True]).se[0] == np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 1.0], [0], [True, False]), r"item: has shape \(1,\), log_weight \(2,\)"),
        (([0.0, 1.0], [0, 0], [1, 0]), "answered: has dtype int64, should be bool"),
        (([0.0, np.nan], [0, 0], [True, False]), "log_weight: is nan at draw 1"),
        (([0.0, 1.0], [0, 1], [True, False]), "answered: no item has both"),
    ],
)
def test_wrong_arrays(arguments: tuple[list[float], list[int], list[bool]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bridge_log_means(*arguments)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((0, 0, 0), "enough draws"),
        ((0.05, 0, 0), "doubtful"),
        ((0, 0.05, 0), "doubtful"),
        ((0, 0, 0.05), "doubtful"),
        ((0, 0.2, 0), "too few"),
        ((0.2, 0, 0.05), "too few"),
    ],
)
def test_verdict(shares: tuple[float, float, float], expected: str) -> None:
    assert overlap_verdict(*shares) == expected


def test_standard_error_and_bias_against_replicates() -> None:
    """Over 4,000 items with one truth: the error is the spread of ln Z to 5%, and the bias is under a tenth of it.

    The spread of 4,000 values is known to 1.1%, its mean to 1.6% of the spread; the asymptotic error of 20 draws is
    off by 1 to 2% here.
    """
    rng = np.random.default_rng(0)
    logit = rng.normal(0, 2, 60)
    log_g = logit - np.logaddexp.reduce(logit)
    log_h = logit / 4 - np.logaddexp.reduce(logit / 4)
    g, h = np.exp(log_g), np.exp(log_h)
    tokens = np.hstack([rng.choice(60, (4000, 10), p=g), rng.choice(60, (4000, 10), p=h)])
    weight = log_h - log_h[0] - log_g
    means = bridge_log_means(weight[tokens].ravel(), np.repeat(np.arange(4000), 20), np.tile(np.arange(20) >= 10, 4000))
    assert np.sqrt(np.mean(means.se**2)) == pytest.approx(means.value.std(), rel=0.05)
    assert abs(np.mean(means.value) + log_h[0]) < 0.1 * means.value.std()
    assert means.overlap.mean() == pytest.approx(np.sum(g * h / (0.5 * g + 0.5 * h)), abs=0.02)


@pytest.mark.parametrize(
    ("player", "bias_importance", "bias_bridge"),
    [("hot2", (-0.35, -0.1), 0.06), ("mixuni", (-0.45, -0.2), 0.07), ("cold.7", (-0.03, 0.03), 0.03)],
)
def test_ten_answers_for_ten_draws_take_most_of_the_bias(
    player: str, bias_importance: tuple[float, float], bias_bridge: float
) -> None:
    """Bias of the mean gap over 20 replicates of 100 items, 20 tokens each (the table of the design study).

    A replicate's mean varies by .05 at most, the bias over 20 by .012. Importance sampling was off by -.20 (hot2), -.31
    (mixuni) and -.01 (cold.7), the bridge by .02, .03 and .01.
    """
    rng = np.random.default_rng(1)
    log_g, log_h = players(rng)[player]
    target = draws(log_g, 1, rng)[:, 0]
    at = np.arange(target.size)
    truth = -log_h[at, target]
    ratio = log_h - log_h[at, target][:, None]
    importance, bridged = [], []
    for _ in range(20):
        tokens = np.hstack([draws(log_g, 20, rng), draws(log_h, 10, rng)])
        weight = np.take_along_axis(ratio - log_g, tokens, axis=1)
        importance.append(np.mean(np.log(np.exp(weight[:, :20]).mean(axis=1)) - truth))
        both = np.hstack([weight[:, :10], weight[:, 20:]])
        means = bridge_log_means(both.ravel(), np.repeat(at, 20), np.tile(np.arange(20) >= 10, at.size))
        bridged.append(np.mean(means.value - truth))
    assert bias_importance[0] < np.mean(importance) < bias_importance[1]
    assert abs(np.mean(bridged)) < bias_bridge
    assert abs(np.mean(bridged)) < abs(np.mean(importance)) + 0.01


@pytest.mark.parametrize(("n_drawn", "n_answers"), [(10, 10), (10, 30), (20, 2)])
def test_noise_of_reports_biases_as_the_diagnostics_say(n_drawn: int, n_answers: int) -> None:
    """For noise of .3 nats a token: the bias over 1,500 items is that predicted, to .01 nats (its error is .003)."""
    study = answered_study(n_items=1500, n_drawn=n_drawn, n_answers=n_answers, temperature=3.0, seed=3)
    code = candidate_tokens(study)
    noise = np.random.default_rng(0).normal(0, 0.3, code.shape)
    of_token = np.where(code >= 0, np.take_along_axis(noise, np.maximum(code, 0), axis=1), 0.0)
    moved = of_token[study["response_item"].values, study["response_candidate"].values]
    log_ratio = log_ratio_from_report(study["report"].values) + moved
    exact, noisy = bridge_gap(study), bridge_gap(study.assign(report=("response", report_from_log_ratio(log_ratio))))
    predicted = exact.overlap.noise_bias * 0.3**2
    assert noisy.gap_nats - exact.gap_nats == pytest.approx(predicted, abs=0.01)
    assert (predicted > 0.02) == (n_answers == 2)  # importance sampling: .045


# --- studies -------------------------------------------------------------------------------------------------------


def by_hand(study: xr.Dataset) -> dict[int, float]:
    """Ln g(y) Z of every item, read from the study cell by cell."""
    found = {}
    for q, label in enumerate(study["item"].values.tolist()):
        report = {}
        for r in range(study.sizes["response"]):
            if study["response_item"].values[r] == label:
                report[int(study["response_candidate"].values[r])] = study["report"].values[r]
        g = np.exp(study["candidate_logprob"].values[0, q])
        target = np.exp(study["target_logprob"].values[0, q])
        ratio = {column: (1 - p) / p for column, p in report.items()}
        drawn = [
            ratio[column] * target / g[column]
            for column in ratio
            if study["candidate_source"].values[q, column] == "generator"
        ]
        answered = []
        for a in range(study.sizes["answer"]):
            if study["answer_item"].values[a] == label:
                column = int(study["answer_candidate"].values[a])
                answered.append(1.0 if column == -1 else ratio[column] * target / g[column])
        found[label] = np.log(bridge(drawn, answered))
    return found


def test_a_study_against_the_loop_over_its_cells() -> None:
    study = answered_study(n_items=5, seed=4)
    gap = bridge_gap(study)
    expected = by_hand(study)
    assert gap.item.tolist() == list(expected)
    np.testing.assert_allclose(gap.item_gap_nats, list(expected.values()), atol=1e-7)
    assert gap.n_answers == study.sizes["answer"]
    assert (gap.item_n == 16).all()


def test_perplexity_by_the_bridge_is_near_the_truth() -> None:
    study = answered_study(n_items=300, n_drawn=10, n_answers=10, vocab_size=80, temperature=3.0)
    found = estimate_perplexity(study, estimator="bridge")
    plain = estimate_perplexity(study)
    assert found.gap.estimator == "bridge"
    # 300 items know it to .02, and importance sampling is too low by .2
    assert found.gap.gap_nats == pytest.approx(found.true_gap_nats, abs=0.06)
    assert plain.gap.gap_nats < found.true_gap_nats - 0.1
    assert "overlap" in found.describe()
    assert "gap_nats_human" in comparison_items(study, ["human"], estimator="bridge")


def test_items_in_another_order_and_candidates_too() -> None:
    study = answered_study(n_items=5, seed=2)
    gap = bridge_gap(study)
    np.testing.assert_allclose(bridge_gap(study.isel(item=[3, 0, 4, 1, 2])).item_gap_nats, gap.item_gap_nats)
    again = bridge_gap(study.isel(answer=slice(None, None, -1), response=slice(None, None, -1)))
    np.testing.assert_allclose(again.item_gap_nats, gap.item_gap_nats)
    assert again.se_clustered_nats == pytest.approx(gap.se_clustered_nats)


def test_answers_that_nobody_compared_are_counted_and_doubted() -> None:
    study = answered_study(n_items=30)
    answered = study["answer_candidate"].values.copy()
    lost = np.flatnonzero(answered >= 0)[::4]
    answered[lost] = -2
    gap = bridge_gap(study.assign(answer_candidate=("answer", answered)))
    assert gap.n_unknown_answers == lost.size
    assert gap.diagnostics.share_unknown_answers == pytest.approx(lost.size / answered.size)
    assert gap.diagnostics.verdict == "too few"


def test_items_with_draws_only_are_left_out_and_counted() -> None:
    study = answered_study(n_items=30)
    study = study.isel(answer=np.flatnonzero(study["answer_item"].values >= 6))
    gap = bridge_gap(study)
    assert gap.n_items == 24
    assert gap.n_one_sided == 6
    assert gap.item.tolist() == list(range(6, 30))
    assert gap.diagnostics.verdict == "too few"


def test_participants_with_something_in_common_make_the_error_larger() -> None:
    """Half of the people find every candidate e times as probable as they should: that does not average out."""
    study = answered_study(n_items=200, n_people=8)
    gap = bridge_gap(study)
    assert gap.se_clustered_nats < 1.2 * gap.se_items_nats
    bold = np.isin(study["participant"].values, ["p0", "p1", "p2", "p3"]) & ~study["automatic"].values
    report = study["report"].values
    odds = np.where(bold, np.e**2, 1.0) * (1 - report) / report
    biased = bridge_gap(study.assign(report=("response", 1 / (1 + odds))))
    assert biased.se_clustered_nats > 2 * biased.se_items_nats


def test_noise_of_reports_has_its_own_error() -> None:
    """Tokens drawn twice are compared twice, which says how large the noise is; over 40 studies its error is right.

    The spread of 40 means is known to 11%; the limits are 35% to both sides.
    """
    gaps, errors = [], []
    exact = bridge_gap(answered_study(n_items=60, seed=7)).gap_nats
    study = answered_study(n_items=60, seed=7)
    rng = np.random.default_rng(0)
    log_odds = np.log(study["report"].values / (1 - study["report"].values))
    moved = ~study["automatic"].values
    for _ in range(40):
        noise = np.where(moved, rng.normal(0, 0.3, log_odds.size), 0.0)
        gap = bridge_gap(study.assign(report=("response", 1 / (1 + np.exp(-log_odds - noise)))))
        gaps.append(gap.gap_nats - exact)
        errors.append(gap.se_reports_nats)
    assert np.mean(errors) == pytest.approx(np.std(gaps), rel=0.35)


def test_proposals_and_distinct_draws_reach_the_bridge() -> None:
    """Draws called a proposal's, with the generator's probabilities, change nothing."""
    study = answered_study(n_items=5)
    plain = bridge_gap(study)
    source = study["candidate_source"].values
    renamed = study.assign(
        candidate_source=(("item", "candidate"), np.where(source == "generator", "proposal", source)),
        proposal_logprob=study["candidate_logprob"].isel(model=0, drop=True),
        proposal_target_logprob=study["target_logprob"].isel(model=0, drop=True),
    )
    validate_comparison_study(renamed)
    np.testing.assert_allclose(bridge_gap(renamed).item_gap_nats, plain.item_gap_nats, atol=1e-12)
    with pytest.raises(InputError, match="proposal_target_logprob: is unknown for the target of item"):
        bridge_gap(renamed.drop_vars("proposal_target_logprob"))
    answer = source == "answer"
    with pytest.raises(InputError, match="proposal_logprob: is unknown for candidate"):
        bridge_gap(renamed.assign(proposal_logprob=renamed["proposal_logprob"].where(~answer)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: small_study(), "comparison study 'small', answer: has no free answers"),
        (lambda s: s.isel(answer=slice(0)), "answer: has no free answers"),
        (lambda s: s.isel(response=slice(0)), "response: has no entry"),
        (lambda s: s.assign(answer_candidate=s["answer_candidate"] * 0 - 2), "answered: no item has both draws"),
    ],
)
def test_studies_without_a_bridge(change: Callable[[xr.Dataset], xr.Dataset], message: str) -> None:
    with pytest.raises(InputError, match=message):
        bridge_gap(change(answered_study()))


def test_language_models_have_no_bridge() -> None:
    with pytest.raises(InputError, match="estimator 'bridge', player: is 'lm'; the free answers are draws of 'human'"):
        estimate_perplexity(answered_study(), "lm", estimator="bridge")


def test_censored_reports_are_counted() -> None:
    study = answered_study(temperature=0.5)
    gap = bridge_gap(study, rounding="interface")
    ratios = token_log_ratios(study, rounding="interface")
    assert gap.n_censored == ratios.n_censored > 0
    assert bridge_gap(study).n_censored == 0


def test_the_bridge_with_few_answers_nears_importance_sampling() -> None:
    """One answer beside a thousand draws: its weight is one in a thousand."""
    rng = np.random.default_rng(0)
    weight = rng.normal(0, 1, 1001)
    item = np.zeros(1001, dtype=int)
    means = bridge_log_means(weight, item, np.arange(1001) == 1000)
    plain = plain_log_mean(group_terms(weight[:1000], item[:1000]))
    assert means.value[0] == pytest.approx(plain.value[0], abs=0.02)
    terms = balanced_log_terms(weight, item, np.zeros((1, 1001)), item)
    np.testing.assert_array_equal(terms, weight)
