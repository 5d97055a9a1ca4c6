"""What hangs on one participant or on the priors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shannon_game.estimators.comparison import ParticipantPopulation
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.inference.comparison.participant_fit import ParticipantFit, fit_participants
from shannon_game.inference.comparison.participant_sensitivity import (
    leave_one_out,
    pooled_gap,
    scaled_priors,
    unusual_participants,
    with_priors,
    without_shared_bias,
)
from shannon_game.models.comparison.participant_data import participant_data, without_participants
from shannon_game.models.comparison.participants import ParticipantPriors
from tests.models.comparison.participant_studies import believers, with_reports


@pytest.fixture(scope="module")
def fit() -> ParticipantFit:
    """One of sixteen people answers the opposite of the others."""
    study = believers(20, n_comparisons=8, n_answers=8, n_participants=16, people=ParticipantPopulation(lapses=False))
    data = participant_data(study, "slider")
    flipped = len(data.box_edges) - 1 - data.row_box
    return fit_participants(with_reports(data, np.where(data.row_participant == 3, flipped, data.row_box)), draws=100)


@pytest.mark.slow
def test_who_is_left_out_is_left_out_of_a_refit(fit: ParticipantFit) -> None:
    left = {one.participant: one for one in leave_one_out(fit, np.random.default_rng(0), n_draws=200)}
    sd = fit.item_gap_nats.mean(axis=1).std()
    for number in (3, 5, 7):
        name = str(fit.data.participant[number])
        refit = fit_participants(without_participants(fit.data, [name]), draws=100)
        found = np.median(left[name].gap_nats) - np.median(fit.gap_nats)
        wanted = np.median(refit.item_gap_nats.mean(axis=1)) - np.median(fit.item_gap_nats.mean(axis=1))
        assert found == pytest.approx(wanted, abs=0.5 * sd)


@pytest.mark.mcmc
def test_nobody_is_left_without_one_participant() -> None:
    data = participant_data(comparison_study(), player="lm-weak")
    with pytest.raises(InputError, match="one participant"):
        next(leave_one_out(fit_participants(data, draws=4, tune=2, chains=2), np.random.default_rng(0)))


def test_unusual_participants_live_at_the_ends_alone() -> None:
    data = participant_data(comparison_study())
    top = len(data.box_edges) - 1
    middle = np.full_like(data.row_box, 4)
    assert unusual_participants(with_reports(data, middle)) == []
    of_one = data.row_participant == 1
    box = np.where(of_one, np.where(np.arange(middle.size) % 2, 0, top), middle)
    assert unusual_participants(with_reports(data, box)) == [data.participant[1]]
    # and at one half alone
    box = np.where(of_one, data.half_box, np.where(np.arange(middle.size) % 2, 3, 7))
    assert unusual_participants(with_reports(data, box)) == [data.participant[1]]
    box = np.where(of_one, np.where(np.arange(middle.size) % 2, 0, top), middle)
    # where everybody does, or somebody does now and then, it is nobody
    assert unusual_participants(with_reports(data, np.full_like(middle, top))) == []
    box[np.flatnonzero(of_one)[::2]] = 4
    assert unusual_participants(with_reports(data, box)) == []
    for wrong in ({"mostly": 1.2}, {"typically": 0.0}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            unusual_participants(data, **wrong)


def test_scaled_priors_leave_medians() -> None:
    default = ParticipantPriors()
    wide = scaled_priors(default, 2)
    # medians, the prior of a share, and what nothing is learned about
    places = {"spread", "noise", "lapse", "slope_sd", "bias_sd", "noise_sd", "target_spread", "form", "uninformed"}
    places |= {"half_alpha", "half_beta", "lapse_sd"}
    for name, value in vars(default).items():
        assert getattr(wide, name) == (value if name in places else 2 * value), name
    for factor in (0.0, float("nan")):
        with pytest.raises(InputError, match="factor"):
            scaled_priors(default, factor)


@pytest.mark.slow
def test_weights_and_the_mode_stand_for_chains(fit: ParticipantFit) -> None:
    """Medians to half a standard deviation, which is three errors of them or more; lengths of intervals to a third."""
    data, rng = fit.data, np.random.default_rng(0)
    biased = fit_participants(data, report="shared_bias", draws=150)
    weighted = without_shared_bias(biased, rng)
    assert weighted is not None
    priors = scaled_priors(ParticipantPriors(), 2.0)
    wide = fit_participants(data, priors=priors, draws=100)
    discrepancy = fit.gap_nats - fit.item_gap_nats.mean(axis=1)
    near = with_priors(fit, priors, rng) + rng.choice(discrepancy, 200)
    for found, wanted in ((weighted.gap_nats, fit.gap_nats), (near, wide.gap_nats)):
        assert np.median(found) == pytest.approx(np.median(wanted), abs=0.5 * wanted.std())
        assert found.std() == pytest.approx(wanted.std(), rel=1 / 3)
    # the fit is as it was
    again = fit.compiled.belief(8, np.random.default_rng(1)).target
    np.testing.assert_array_equal(again, fit.compiled.belief(8, np.random.default_rng(1)).target)


@pytest.mark.mcmc
def test_few_draws_are_no_posterior_without_a_shared_bias() -> None:
    data = participant_data(comparison_study())
    biased = fit_participants(data, report="shared_bias", draws=8, tune=2, chains=2)
    assert without_shared_bias(biased, np.random.default_rng(0)) is None


def test_camps_are_pooled_by_how_many_people_they_have() -> None:
    """By hand: of beliefs h = g/2 of three people and h = g of one, the pooled one is 5 g/8."""
    gaps = {3: [[np.log(2), 0.0]], 1: [[9.0, 0.0, 0.0]]}
    fits: list[Any] = [
        SimpleNamespace(
            data=SimpleNamespace(position=np.arange(3 - len(gap[0]), 3), participant=np.arange(n)),
            belief=SimpleNamespace(n_draws=1),
            item_gap_nats=np.array(gap),
            gap_nats=np.array(gap).mean(axis=1) + 0.1,
        )
        for n, gap in gaps.items()
    ]
    found, position = pooled_gap(fits)
    np.testing.assert_allclose(found, [[np.log(8 / 5) + 0.1, 0.1]])
    assert position.tolist() == [1, 2]
