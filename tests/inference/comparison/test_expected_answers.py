"""Answers that the posterior expects: against a slow simulation of how tokens get into a pool, and by its bins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

from estimators.comparison.examples import designed_study
from estimators.errors import InputError
from inference.comparison.expected_answers import BIN_EDGES, ExpectedAnswers, expected_answers
from models.comparison.free_answer_data import FreeAnswerData, free_answer_data

N_DRAWS = 500


def one_token(log_g: float, *, n_answers: int, n_entry: int, n_drawn: int, given: bool = False) -> FreeAnswerData:
    """Two items, the first with one token beside its target."""
    data = free_answer_data(designed_study())
    changed: dict[str, Any] = {
        name: getattr(data, name)[:1]
        for name in ("item", "target_log_g", "target_answers", "token_item", "token_column", "token_answers")
    }
    changed |= {"token_log_g": np.array([log_g]), "token_given": np.array([given])}
    changed |= {"n_answers": np.array([n_answers]), "n_entry": np.array([n_entry]), "n_drawn": np.array([n_drawn])}
    return replace(data, **changed)


def posterior_of(data: FreeAnswerData, log_ratio: float, gap: float = 0.0) -> xr.Dataset:
    """One value at every draw."""
    shape = (1, N_DRAWS)
    return xr.Dataset(
        {
            "item_gap_nats": (("chain", "draw", "item"), np.full((*shape, data.item.size), gap)),
            "token_log_ratio": (("chain", "draw", "token"), np.full((*shape, data.token_item.size), log_ratio)),
        },
        coords={"item": data.item},
    )


def simulated_count(h: float, g: float, n: int, entry: int, drawn: int, seed: int) -> np.ndarray:
    """Answers of a token in a million pools, where it is in the pool: drawn, or among the first answers."""
    rng = np.random.default_rng(seed)
    first, later = rng.poisson(entry * h, 10**6), rng.poisson((n - entry) * h, 10**6)
    in_pool = (rng.random((10**6, drawn)) < g).any(axis=1) | (first > 0)
    return (first + later)[in_pool]


@pytest.mark.parametrize(
    ("h", "g", "n", "entry", "drawn"),
    [(0.1, 0.05, 8, 8, 4), (0.3, 0.01, 6, 6, 3), (0.02, 0.3, 10, 4, 2), (0.15, 0.1, 9, 0, 5)],
)
def test_tokens_that_got_into_the_pool(h: float, g: float, n: int, entry: int, drawn: int) -> None:
    data = one_token(np.log(g), n_answers=n, n_entry=entry, n_drawn=drawn)
    found = expected_answers(posterior_of(data, np.log(h / g)), data, np.random.default_rng(0))
    slow = simulated_count(h, g, n, entry, drawn, seed=1)
    # the mean of at least 10^5 counts with a variance below 4: five standard errors
    assert_allclose(found.expected[1], slow.mean(), atol=5 * 2 / np.sqrt(1e5))
    many = np.concatenate(
        [
            expected_answers(posterior_of(data, np.log(h / g)), data, np.random.default_rng(seed)).predicted[:, 1]
            for seed in range(60)
        ]
    )
    assert_allclose(many.mean(), slow.mean(), atol=5 * slow.std() / np.sqrt(many.size))
    assert_allclose((many == 0).mean(), (slow == 0).mean(), atol=5 * 0.5 / np.sqrt(many.size))


def test_targets_and_tokens_given_in_any_case_are_plain_counts() -> None:
    data = one_token(np.log(0.05), n_answers=8, n_entry=8, n_drawn=4, given=True)
    found = expected_answers(posterior_of(data, np.log(2), gap=0.5), data, np.random.default_rng(0))
    assert_allclose(found.expected, [8 * np.exp(data.target_log_g[0] - 0.5), 0.8])
    assert found.item.tolist() == [data.item[0]] * 2


def test_bins_add_up() -> None:
    rng = np.random.default_rng(0)
    expected = rng.gamma(0.5, 1.5, 80)
    found = ExpectedAnswers(np.zeros(80), rng.poisson(expected), expected, rng.poisson(expected, (400, 80)))
    bins = found.summary()
    assert bins["n_tokens"].sum() == 80
    assert bins["observed"].sum() == found.observed.sum()
    assert_allclose(bins["expected"].sum(), expected.sum())
    assert (bins["predicted_lower"] <= bins["predicted_upper"]).all()
    assert set(bins["expected_from"]) <= set(BIN_EDGES)
    narrow = found.summary(0.5)
    assert (narrow["predicted_upper"] <= bins["predicted_upper"]).all()
    assert "80" not in found.headline()
    assert f"{int(found.observed.sum())} free answers" in found.headline()


def test_a_posterior_of_other_items_is_refused() -> None:
    data = one_token(-3.0, n_answers=8, n_entry=8, n_drawn=4)
    posterior = posterior_of(data, 0.0)
    with pytest.raises(InputError, match="item: are not those of the data"):
        expected_answers(posterior.assign_coords(item=[99]), data, np.random.default_rng(0))
    with pytest.raises(InputError, match="lacks token_log_ratio"):
        expected_answers(posterior.drop_vars("token_log_ratio"), data, np.random.default_rng(0))
