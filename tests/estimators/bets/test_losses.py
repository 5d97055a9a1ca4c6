"""Losses of bets against loops, closed forms and known truth; brackets, calibration, gambling, ranks, tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.estimators import bets
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.estimators.bets.losses import model_losses, stake_ranks
from shannon_game.estimators.bets.simulation import BetSimulation, simulate_bet_study
from shannon_game.estimators.bets.tables import bet_items, bet_participants
from shannon_game.estimators.documents import crossed_mean
from shannon_game.estimators.errors import InputError
from tests.oracles import bets as reference

SMALL = BetSimulation(n_items=12, n_participants=4, n_answers=8, vocab_size=40)


def losses_of(study: object, *back_offs: str) -> dict[str, np.ndarray]:
    return {name: bets.bet_losses(study, name, vocab_size=40) for name in back_offs}  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["generator", "text"])
def test_losses_are_those_of_the_definition(model: str) -> None:
    study = simulate_bet_study(SMALL, np.random.default_rng(2))
    np.testing.assert_allclose(bets.bet_losses(study, model), reference.losses(study, model), rtol=1e-9)


def test_honest_bets_with_the_belief_as_back_off_cost_the_belief_s_loss() -> None:
    """A person who stakes the text's own probabilities, the text being the back-off, loses the text's surprisal."""
    sizes = BetSimulation(
        n_items=30, n_answers=20, participant_noise=0, sharpness=1, sharpness_spread=0, n_chips=100_000_000
    )
    study = simulate_bet_study(sizes, np.random.default_rng(4))
    np.testing.assert_allclose(bets.bet_losses(study, "text"), model_losses(study, "text"), atol=1e-3)
    np.testing.assert_allclose(bets.bet_losses(study, "text"), study["true_loss_nats"].values, atol=1e-3)
    assert bets.bet_losses(study, "floor").mean() < study["true_loss_nats"].values.mean()


def test_zero_stakes_are_refused_or_counted_and_never_replaced() -> None:
    study = bet_study().copy(deep=True)
    study["other_stake"].values[1] = 0
    study["bet_stake"].values[2:4] = [0.75, 0.25]
    losses = bets.bet_losses(study)
    assert np.isposinf(losses).tolist() == [False, True, False, False, False, False]
    who, where = study["participant"].values, study["response_item"].values
    with pytest.raises(InputError, match=r"infinite at answer 1 \(1 such\)"):
        bets.estimate_bet_loss(losses, who, where)
    found = bets.estimate_bet_loss(losses, who, where, zero="count", reference=model_losses(study))
    assert (found.n_zero, found.n_responses, found.n_unasked) == (1, 5, 0)
    assert found.loss_nats == pytest.approx(losses[np.isfinite(losses)].mean())


def test_unasked_answers_are_counted() -> None:
    study = bet_study().copy(deep=True)
    study["target_logprob"].values[0, 1] = np.nan
    losses = bets.bet_losses(study)
    # both answers to item 1: one names the target and needs no back-off
    assert np.isnan(losses).tolist() == [False, True, False, False, False, False]
    found = bets.estimate_bet_loss(losses, study["participant"].values, study["response_item"].values)
    assert (found.n_unasked, found.n_zero, found.n_responses) == (1, 0, 5)


def test_the_gap_is_of_the_same_answers() -> None:
    study = simulate_bet_study(SMALL, np.random.default_rng(5))
    loss, generator = bets.bet_losses(study), model_losses(study)
    found = bets.estimate_bet_loss(
        loss, study["participant"].values, study["response_item"].values, reference=generator
    )
    assert found.gap_nats == pytest.approx(found.loss_nats - found.reference_loss_nats)
    variance = reference.two_way_variance(
        (loss - generator).tolist(), study["participant"].values.tolist(), study["response_item"].values.tolist()
    )
    assert found.gap_se_nats == pytest.approx(math.sqrt(variance))


def test_bins_hold_their_right_ends_and_hand_counted_shares() -> None:
    found = bets.calibrate_stakes(
        [0.0, 0.1, 0.1, 0.3, 1.0, 1.0], [False, False, True, False, True, True], list("abababa"[:6]), range(6),
        edges=[0, 0.1, 0.3, 1],
    )  # fmt: skip
    assert found.n_stakes.tolist() == [3, 1, 2]
    np.testing.assert_allclose(found.share_came, [1 / 3, 0, 1])
    np.testing.assert_allclose(found.mean_stake, [0.2 / 3, 0.3, 1])
    expected = (3 * abs(0.2 / 3 - 1 / 3) + 0.3 + 0) / 6
    assert found.calibration_error == pytest.approx(expected)


def test_a_gambler_s_capital_gives_the_mean_loss() -> None:
    rng = np.random.default_rng(7)
    loss = rng.exponential(2, 12)
    who, item = np.repeat(["a", "b", "c"], 4), np.tile(np.arange(4), 3)
    found = bets.gambling_estimate(loss, who, item, vocab_size=27)
    np.testing.assert_allclose(found.entropy_nats, loss.reshape(3, 4).mean(axis=1))
    # the capital by its own definition: 27 times the stake, again and again
    capital = [math.prod(27 * math.exp(-each) for each in own) for own in loss.reshape(3, 4)]
    np.testing.assert_allclose(found.log_capital, np.log(capital))
    np.testing.assert_allclose(found.entropy_nats, (1 - found.log_capital / 4 / math.log(27)) * math.log(27))
    # both committees: never worse than the mean, the one that lets capital lie near the best
    assert found.mean_stake_nats <= loss.mean()
    assert found.shared_capital_nats == pytest.approx(math.log(27) - math.log(np.mean(capital)) / 4)
    assert found.shared_capital_nats <= found.entropy_nats.min() + math.log(3) / 4
    assert np.isnan(bets.gambling_estimate(loss[:2], ["a", "b"], [0, 1], vocab_size=27).shared_capital_nats)


def test_ruin_is_infinite() -> None:
    found = bets.gambling_estimate([np.inf, 1.0, 1.0, 1.0], list("aabb"), [0, 1, 0, 1], vocab_size=27)
    assert found.entropy_nats.tolist() == [np.inf, 1.0]
    assert found.shared_capital_nats == pytest.approx(1 + math.log(2) / 2)


def test_stakes_rank_by_size_then_by_naming() -> None:
    study = bet_study().copy(deep=True)
    # Bo's answer to item 0 has two equal stakes; make its second word the target
    study["bet_hit"].values[7] = True
    rank, n_named = stake_ranks(study)
    assert rank.tolist() == [1, np.inf, 2, 2, 2, np.inf]
    assert n_named.tolist() == [2] * 6


def test_tables_bear_the_owner_s_ids() -> None:
    study = bet_study().assign(item_id=("item", np.array(["one", "two", "three"], dtype=object)))
    items = bet_items(study, losses_of(study, "generator", "uniform"))
    assert items["item"].tolist() == ["one", "two", "three"]
    assert items["n_responses"].tolist() == [2, 2, 2]
    np.testing.assert_allclose(items["surprisal_nats_lm"], -np.log([0.5, 0.25, 0.125]))
    people = bet_participants(study, losses_of(study, "generator"))
    assert people["participant"].tolist() == ["Ann", "Bo"]
    total = (people["loss_nats_generator"] * people["n_responses"]).sum()
    assert total == pytest.approx(bets.bet_losses(study).sum())
    assert total == pytest.approx((items["loss_nats_generator"] * items["n_responses"]).sum())


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 40))
def test_the_two_way_standard_error_is_that_of_three_loops(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    person = np.concatenate([[0, 1], rng.integers(0, 4, n - 2)])
    item = np.concatenate([[0, 1], rng.integers(0, 5, n - 2)])
    values = rng.normal(size=n)
    found = crossed_mean(values, person, item)
    expected = reference.two_way_variance(values.tolist(), person.tolist(), item.tolist())
    assert found.se == pytest.approx(math.sqrt(expected))
