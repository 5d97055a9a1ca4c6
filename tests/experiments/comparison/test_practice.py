"""``+exp=practice``: practice that is there is found, and an order of the questions is not taken for it."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from shannon_game import practice, simulated
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.comparison.practice import practice_answers


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    return simulated(n_items=30, n_participants=24, vocab_size=300, n_candidates=40)


def practised(study: xr.Dataset, per_doubling: float, *, shuffled: bool) -> xr.Dataset:
    """The study, with answers that get better by so many nats, on questions of different difficulty."""
    rng = np.random.default_rng(0)
    order = rng.permutation(study.sizes["response"]) if shuffled else np.arange(study.sizes["response"])
    study = study.isel(response=order)
    before = practice_answers(study, automatic=True)["n_before"].to_numpy()
    item = study["response_item"].to_numpy()
    level = dict(zip(np.unique(item), rng.normal(-2.5, 0.4, np.unique(item).size), strict=True))
    log_score = np.array([level[each] for each in item]) + per_doubling * np.log2(1 + before)
    report = np.exp(np.minimum(log_score + rng.normal(0, 0.05, before.size), -0.01))
    return study.assign(report=("response", report), automatic=("response", np.zeros(before.size, dtype=bool)))


def test_practice_that_is_there_is_found(study: xr.Dataset) -> None:
    table = practice(practised(study, 0.15, shuffled=True)).table.set_index("answers")
    same = table.loc["the same questions"]
    assert same["slope_nats"] == pytest.approx(0.15, abs=0.01)
    # the levels of questions are noise to all answers together
    assert same["se_nats"] < table.loc["all", "se_nats"]
    assert same["last_quarter_nats"] > same["first_quarter_nats"]
    nothing = practice(practised(study, 0.0, shuffled=True)).table.set_index("answers").loc["the same questions"]
    assert abs(nothing["slope_nats"]) < 0.01


def test_slow_answers_that_are_better(study: xr.Dataset) -> None:
    # people think longer over hard questions: all answers together get worse with time, those to one question better
    rng = np.random.default_rng(5)
    shuffled = practised(study, 0.0, shuffled=True)
    item = shuffled["response_item"].to_numpy()
    hard = dict(zip(np.unique(item), rng.normal(0, 1, np.unique(item).size), strict=True))
    difficulty = np.array([hard[each] for each in item])
    log_time = 12 + 1.5 * difficulty + rng.normal(0, 0.7, item.size)
    log_score = -3 - difficulty + 0.2 * (log_time - 1.5 * difficulty - 12)
    timed = shuffled.assign(
        report=("response", np.exp(log_score.clip(-9, -0.01))), client_ms=("response", 2.0**log_time)
    )
    table = practice(timed, against="client_ms").table.set_index("answers")
    assert table.loc["all", "slope_nats"] < -0.1
    assert table.loc["the same questions", "slope_nats"] == pytest.approx(0.2, abs=0.03)
    with pytest.raises(InputError, match=r"choose one of: order, report, client_ms$"):
        practice(timed, against="speed")
    with pytest.raises(InputError, match="values of client_ms that are not above 0"):
        practice(timed.assign(client_ms=timed["client_ms"] * 0), against="client_ms")
