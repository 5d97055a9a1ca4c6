"""The checks of what the model assumes about people: on studies where it holds, and where it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from shannon_game.inference.comparison.participant_checks import check_camps, check_ends, check_unexpected
from shannon_game.inference.posterior.arviz_adapter import from_groups
from shannon_game.models.comparison.participant_data import ParticipantData, participant_data
from tests.models.comparison.participant_studies import believers, by_hand, with_reports

PEOPLE, TOGETHER = 16, 1.5


def reported(data: ParticipantData, camp: np.ndarray, rng: np.random.Generator) -> ParticipantData:
    """Reports with slopes, biases and noise of beliefs that camps have each of its own, `TOGETHER` nats wide."""
    item, who, n = data.row_item, data.row_participant, data.participant.size
    target, token = (TOGETHER * rng.normal(size=(2, size)) for size in (data.item.size, data.token_item.size))
    log_odds = data.target_log_g[item] - data.token_log_g[data.row_token]
    log_odds = log_odds + target[camp[who], item] - token[camp[who], data.row_token]
    slope, bias = np.exp(0.3 * rng.normal(size=n)), 0.5 * rng.normal(size=n)
    said = slope[who] * (log_odds + bias[who]) + 0.8 * rng.normal(size=item.size)
    return with_reports(data, np.searchsorted(data.box_edges[1:, 0], said))


def test_the_check_of_camps_rings_where_there_are_two_and_not_where_there_is_one(seed_offset: int) -> None:
    """One false alarm in 30 has probability 0.04 at the rate of a normal z above 3, two 0.001."""
    data = participant_data(believers(40, n_participants=PEOPLE, n_answers=4), "slider")
    one, two = np.zeros(PEOPLE, dtype=int), np.arange(PEOPLE) % 2
    rings, power, right = [], [], []
    for number in range(30):
        rng = np.random.default_rng([seed_offset, number])
        rings.append(check_camps(reported(data, one, rng), rng).rings)
        if number < 8:
            found = check_camps(reported(data, two, rng), rng)
            power.append(found.rings)
            same = (found.second == (two == 1)).mean()
            right.append(max(same, 1 - same))
    assert sum(rings) <= 1
    assert sum(power) >= 6
    assert np.mean(right) > 0.9


def test_two_people_are_no_camps() -> None:
    data = by_hand([0.2, 0.3], [(0, 0.1), (1, 0.1)], [(0, 0, 3), (1, 1, 5)])
    found = check_camps(data, np.random.default_rng(0))
    assert np.isnan(found.z)
    assert not found.rings


@pytest.mark.parametrize(("box", "rings"), [(0, True), (4, True), (2, False)])
def test_too_many_and_too_few_reports_at_the_ends_ring(box: int, rings: bool) -> None:
    rows = [(0, p, box if p < 20 else 10 if box == 2 and p > 37 else 4) for p in range(40)]
    data = by_hand([0.2], [(0, 0.1)], rows)
    drawn = np.random.default_rng(0).choice(data.box_value[[0, 4, 10]], (2, 200, 40), p=[0.06, 0.88, 0.06])
    idata = from_groups({"posterior_predictive": xr.Dataset({"reports": (("chain", "draw", "report"), drawn)})})
    found = check_ends(idata, data)
    assert found.rings == rings
    assert 0 <= found.p_value <= 1


@pytest.mark.parametrize(("words", "rings"), [(2, False), (3, True), (9, True)])
def test_words_that_the_generator_rules_out_and_people_answer_ring(words: int, rings: bool) -> None:
    """Of ten items with four answers; a word that one person alone answers, or that the generator draws, is no sign."""
    data = by_hand([0.2] * 10, [(item, 1e-4 if item < words else 0.3) for item in range(10)], [])
    data = replace(data, n_answers=np.full(10, 4), token_answers=np.full(10, 2))
    assert check_unexpected(data).rings == rings
    assert not check_unexpected(replace(data, token_answers=np.full(10, 1))).rings
