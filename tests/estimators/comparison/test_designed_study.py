"""Simulated studies of any design: they state the truth that they have, and ask what the design says."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare

from shannon_game.estimators.comparison import (
    SCHEMES,
    ParticipantPopulation,
    QuestionDesign,
    log_ratio_from_report,
    simulate_designed_study,
    validate_comparison_study,
)
from shannon_game.estimators.comparison.importance import study_proposals
from shannon_game.estimators.comparison.study import candidate_tokens
from shannon_game.estimators.errors import InputError
from tests.same import assert_same_study

IDEAL = ParticipantPopulation(bias=False, slope=False, noise=False, lapses=False)
EXACT = QuestionDesign(scale="none")


def normalised(logit: np.ndarray) -> np.ndarray:
    return logit - np.logaddexp.reduce(logit, axis=1, keepdims=True)


def language(n_items: int = 30, vocab: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ln g, ln h (flatter, and shifted by token), and targets drawn from g."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 2, (n_items, vocab))
    log_g = normalised(logit)
    target = np.array([rng.choice(vocab, p=np.exp(row)) for row in log_g])
    return log_g, normalised(0.6 * logit + rng.normal(0, 0.7, logit.shape)), target


LOG_G, LOG_H, TARGET = language()


def simulate(design: QuestionDesign = EXACT, people: ParticipantPopulation = IDEAL, **other: Any) -> xr.Dataset:
    return simulate_designed_study(LOG_G, LOG_H, TARGET, design, people, **{"seed": 0, **other})


def token_numbers(study: xr.Dataset) -> np.ndarray:
    """Positions along the vocabulary of the candidates, -1 in empty cells."""
    return np.array([[int(x[2:]) if x else -1 for x in row] for row in study["candidate_token"].values.tolist()])


def log_odds(report: np.ndarray) -> np.ndarray:
    return -np.asarray(log_ratio_from_report(report))


@given(
    n_draws=st.integers(1, 5),
    n_answers=st.integers(0, 6),
    n_comparisons=st.integers(1, 6),
    scale=st.sampled_from(sorted(SCHEMES)),
    seed=st.integers(0, 10),
    rest=st.sampled_from([{}, {"bots": 0.5}, {"private_sd_nats": 1.0}, {"player": "equation_6"}]),
)
def test_every_design_gives_a_valid_study(
    n_draws: int, n_answers: int, n_comparisons: int, scale: str, seed: int, rest: dict[str, Any]
) -> None:
    design = QuestionDesign(
        n_draws=n_draws, n_answers=n_answers, n_comparisons=n_comparisons, n_participants=6, scale=scale
    )
    people = ParticipantPopulation()
    study = simulate_designed_study(LOG_G[:4], LOG_H[:4], TARGET[:4], design, people, seed=seed, **rest)
    validate_comparison_study(study)
    study_proposals(study)  # every probability with which something was drawn is known
    assert_allclose(study["human_target_logprob"], LOG_H[np.arange(4), TARGET[:4]], atol=1e-12)
    number = token_numbers(study)
    there = number >= 0
    rows = np.nonzero(there)[0]
    assert_allclose(study["human_candidate_logprob"].values[there], LOG_H[rows, number[there]], atol=1e-12)
    assert_allclose(study["candidate_logprob"].values[0][there], LOG_G[rows, number[there]], atol=1e-12)
    assert_array_equal(there, study["candidate_source"].values != "padding")
    source = study["candidate_source"].values
    assert_array_equal((source == "generator").sum(axis=1), np.full(4, n_draws))
    for q in range(4):
        answered = number[q, source[q] == "answer"]
        assert np.unique(answered).size == answered.size
        assert not set(answered) & {*number[q, source[q] == "generator"], TARGET[q]}
    values = SCHEMES[scale].values
    assert not values or set(study["report"].values) <= set(values)


def test_errors_of_people_are_those_of_their_equation() -> None:
    people = ParticipantPopulation(noise=False, lapses=False)
    study = simulate(EXACT, people)
    at, number = study["response_item"].values, token_numbers(study)
    names = study["participant_truth"].values.tolist()
    who = np.array([names.index(name) for name in study["participant"].values])
    belief = LOG_H[at, TARGET[at]] - LOG_H[at, number[at, study["response_candidate"].values]]
    expected = study["true_slope"].values[who] * (belief + study["true_bias"].values[who])
    assert_allclose(log_odds(study["report"].values), expected, atol=1e-6)


def test_tokens_are_asked_in_turn_each_by_another_participant() -> None:
    design = QuestionDesign(n_answers=8, n_comparisons=12, scale="none")
    study = simulate(design)
    code = candidate_tokens(study)
    at, who = study["response_item"].values, study["participant"].values
    for q in range(30):
        asked = Counter(code[q, study["response_candidate"].values[at == q]].tolist())
        tokens = {x for x in code[q].tolist() if x >= 0}
        counts = [asked[x] for x in tokens]
        assert sum(counts) == 12
        assert set(asked) <= tokens
        assert max(counts) - min(counts) <= 1
        answering = study["answer_participant"].values[study["answer_item"].values == q]
        assert len({*who[at == q], *answering}) == 20  # 12 + 8, and none of them both
    compared = np.unique(who, return_counts=True)[1]
    assert compared.size == 29
    assert compared.max() - compared.min() <= 1
    answered = np.unique(study["answer_participant"].values, return_counts=True)[1]
    assert answered.max() - answered.min() <= 2


@pytest.mark.parametrize("exponent", [0.5, 1.0, 3.0])
def test_frequencies_of_answers_follow_a_power_of_the_belief(exponent: float) -> None:
    # 400 times the same item; alpha .001 at a fixed seed: one of three seeds in a thousand would fail
    log_h = np.tile(normalised(np.array([[2.0, 1.5, 1.0, 0.5, 0.0, -0.5]])), (400, 1))
    log_g = np.full_like(log_h, -np.log(6))
    design = QuestionDesign(n_answers=20, n_comparisons=1)
    study = simulate_designed_study(log_g, log_h, np.zeros(400, int), design, IDEAL, seed=3, answer_exponent=exponent)
    cell, number = study["answer_candidate"].values, token_numbers(study)
    token = np.where(cell >= 0, number[study["answer_item"].values, np.maximum(cell, 0)], 0)
    expected = np.exp(exponent * log_h[0])
    found = chisquare(np.bincount(token, minlength=6), 8000 * expected / expected.sum())
    assert found.pvalue > 0.001


def test_bots_answer_anything_and_the_others_what_they_would() -> None:
    with_bots, without = simulate(QuestionDesign(), bots=0.4), simulate(QuestionDesign())
    bot = with_bots["true_bot"].values
    assert bot.sum() == 12  # .4 of 29
    assert_array_equal(with_bots["true_lapse"], bot.astype(float))
    names = with_bots["participant_truth"].values[bot]
    by_bot = np.isin(with_bots["answer_participant"].values, names)
    cell, at = with_bots["answer_candidate"].values, with_bots["answer_item"].values
    number, before = token_numbers(with_bots), token_numbers(without)
    token = np.where(cell >= 0, number[at, np.maximum(cell, 0)], TARGET[at])
    cell = without["answer_candidate"].values
    as_before = token == np.where(cell >= 0, before[at, np.maximum(cell, 0)], TARGET[at])
    assert as_before[~by_bot].all()
    # answers of bots are uniform over 60 tokens: their mean surprisal is that of the whole vocabulary
    surprisal = -LOG_H[at, token]
    assert surprisal[by_bot].mean() == pytest.approx(-LOG_H.mean(), abs=0.5)
    assert surprisal[~by_bot].mean() < -LOG_H.mean() - 1
    # a report of a bot has nothing to do with the belief: half of the lapses are .5
    mine = np.isin(with_bots["participant"].values, names)
    assert (with_bots["report"].values[mine] == 0.5).mean() == pytest.approx(0.5, abs=0.12)


def test_private_beliefs_have_their_spread_and_stay_within_participant_and_item() -> None:
    design = QuestionDesign(n_comparisons=12, scale="none")
    study = simulate(design, private_sd_nats=0.8)
    at, number = study["response_item"].values, token_numbers(study)
    shared = LOG_H[at, TARGET[at]] - LOG_H[at, number[at, study["response_candidate"].values]]
    own = log_odds(study["report"].values) - shared
    # a difference of two tokens: sd .8 sqrt 2; 360 reports, four standard errors of a sd
    assert own.std() == pytest.approx(0.8 * np.sqrt(2), rel=4 / np.sqrt(720))
    assert abs(own.mean()) < 4 * 0.8 * np.sqrt(2 / 360)
    # E ln sum h exp(z) is from 0 to sd^2/2; 29 people and 30 items, four standard errors
    excess = float((study["human_mean_loss_nats"] + study["human_target_logprob"]).mean())
    assert -4 * 0.8 / np.sqrt(870) < excess < 0.32 + 4 * 0.8 / np.sqrt(870)


def test_people_who_mix_beliefs_answer_report_and_lose_by_their_own_mixture() -> None:
    rng = np.random.default_rng(5)
    parts = np.stack([LOG_H, LOG_G, normalised(rng.normal(0, 3, LOG_G.shape))])
    weights = np.vstack([[0.0, 0.0, 1.0], rng.dirichlet(np.ones(3), 28)])
    study = simulate_designed_study(LOG_G, parts, TARGET, EXACT, IDEAL, seed=0, belief_weights=weights)
    own = np.log(np.einsum("pc,cqx->pqx", weights, np.exp(parts)))
    at, items = study["response_item"].values, np.arange(30)
    who = np.array([int(name[1:]) for name in study["participant"].values])
    x = token_numbers(study)[at, study["response_candidate"].values]
    assert_allclose(log_odds(study["report"].values), own[who, at, TARGET[at]] - own[who, at, x], atol=1e-6)
    shared = np.log(np.exp(own).mean(axis=0))
    assert_allclose(study["human_target_logprob"], shared[items, TARGET], atol=1e-12)
    assert_allclose(study["human_mean_loss_nats"], -own[:, items, TARGET].mean(axis=0), atol=1e-12)
    # to the power of 60 each answers the own likeliest token
    sure = simulate_designed_study(
        LOG_G, parts, TARGET, EXACT, IDEAL, seed=0, belief_weights=weights, answer_exponent=60.0
    )
    q, cell = sure["answer_item"].values, sure["answer_candidate"].values
    answered = np.where(cell >= 0, token_numbers(sure)[q, np.maximum(cell, 0)], TARGET[q])
    best = own.argmax(axis=2)[[int(name[1:]) for name in sure["answer_participant"].values], q]
    assert (answered == best).mean() > 0.9


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_equation_6_shifts_by_the_ratio_of_the_generator(weight: float) -> None:
    study, plain = simulate(player="equation_6", posterior_weight=weight), simulate()
    at, number = study["response_item"].values, token_numbers(study)
    shift = LOG_G[at, number[at, study["response_candidate"].values]] - LOG_G[at, TARGET[at]]
    moved = log_odds(study["report"].values) - log_odds(plain["report"].values)
    assert_allclose(moved, weight * shift, atol=1e-6)


def test_the_whole_distribution_is_stored_unless_it_is_not_wanted() -> None:
    study = simulate()
    assert_allclose(study["reference_logprob"], LOG_G)
    assert study["token"].values.tolist() == [f" t{x}" for x in range(LOG_G.shape[1])]
    at = (0, str(study["target_token"].values[0]))
    assert_allclose(study["reference_logprob"].sel(item=at[0], token=at[1]), study["target_logprob"].values[0, 0])
    assert_same_study(simulate(store_reference=False), study.drop_vars(["reference_logprob", "token"]))
    assert json.loads(study.attrs["design"])["n_draws"] == 6
    with pytest.raises(InputError, match="store_reference: is 1, should be True or False"):
        simulate(store_reference=1)
