"""What a bet study must be: a table of what is refused, and what is said of it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.bets import validate_bet_study
from shannon_game.estimators.bets.examples import bet_study
from shannon_game.estimators.bets.simulation import BetSimulation, simulate_bet_study
from shannon_game.estimators.errors import InputError


def with_value(name: str, at: tuple[int, ...], value: object) -> xr.Dataset:
    study = bet_study().copy(deep=True)
    study[name].values[at] = value
    return study


BAD = [
    (with_value("bet_stake", (0,), 1.5), r"bet_stake: is 1.5 at bet 0 .* should be a share from 0 to 1"),
    (with_value("bet_stake", (0,), 0.4), r"other_stake: is 0.25 at response 0 .* sum to 1"),
    (with_value("bet_word", (1,), "cat"), r"bet_word: is 'cat' at bet 1 .* named twice"),
    (with_value("bet_hit", (1,), True), "bet_hit: .* two words of one answer are the target"),
    (with_value("bet_response", (1,), 6), "bet_response: is 6 at bet 1 .* should be 0 to 5"),
    (with_value("response_item", (1,), 0), r"response_item: is 0 at response 1 .* answered it before"),
    (with_value("bet_logprob", (0, 0), 0.5), "bet_logprob: is 0.5"),
    (with_value("bet_logprob", (0, 3), 0.0), r"bet_logprob: adds up to 1.3750 .* response 1 under model 'lm'"),
    (bet_study().assign_attrs(generator="gpt"), "generator: is 'gpt', which is no model of the study"),
    (bet_study()[["target"]], "is missing; the study needs it"),
]


@pytest.mark.parametrize(("study", "message"), BAD)
def test_what_is_wrong_is_named(study: xr.Dataset, message: str) -> None:
    with pytest.raises(InputError, match=message):
        validate_bet_study(study)


def test_a_simulated_study_is_one() -> None:
    sizes = BetSimulation(n_items=9, n_participants=3, n_answers=7, n_named=4, n_chips=20, vocab_size=30)
    study = validate_bet_study(simulate_bet_study(sizes, np.random.default_rng(1)))
    assert (study.sizes["response"], study.sizes["bet"]) == (21, 84)
    chips = 20 * np.concatenate([study["bet_stake"].values, study["other_stake"].values])
    np.testing.assert_allclose(chips, np.rint(chips), atol=1e-9)
    assert chips.min() >= 1 - 1e-9
