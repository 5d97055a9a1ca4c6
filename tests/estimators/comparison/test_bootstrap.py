"""Bootstraps as weights against loops over drawn answers; statistical claims on known truth."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from shannon_game.estimators.comparison import (
    bias_curve,
    bootstrap,
    cluster_bootstrap,
    estimate_gap,
    half_sample_bootstrap,
)
from shannon_game.estimators.comparison.bootstrap import _replicate, participant_table
from tests.oracles.comparison_game import replicate_gap


def crossed(seed: int, people: int = 7, items: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    person, item = (grid.ravel() for grid in np.meshgrid(np.arange(people), np.arange(items)))
    keep = rng.random(person.size) < 0.8
    return rng.normal(0, 2, keep.sum()), item[keep] + 10, person[keep]


def in_order(rows: np.ndarray) -> Callable[[int], np.ndarray]:
    """Give the next n rows, as a generator would draw them."""
    left = iter(rows)
    return lambda n: np.array([next(left) for _ in range(n)])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("with_items", [False, True])
def test_replicates_are_the_loop(seed: int, with_items: bool) -> None:
    term, item, person = crossed(seed)
    rng = np.random.default_rng(seed)
    table = participant_table(term, item, person)
    labels = np.unique(item)
    people = rng.multinomial(7, np.full(7, 1 / 7), 6)[:, : table.n_participants].astype(float)
    items = rng.multinomial(labels.size, np.full(labels.size, 1 / labels.size), 6).astype(float) if with_items else None
    ours = _replicate(table, people, None if items is None else in_order(items)).gap_nats
    answers = list(zip(item.tolist(), person.tolist(), np.exp(term).tolist(), strict=True))
    for row in range(6):
        weights = dict(zip(np.unique(person).tolist(), people[row].astype(int).tolist(), strict=True))
        item_weights = (
            None if items is None else dict(zip(labels.tolist(), items[row].astype(int).tolist(), strict=True))
        )
        assert ours[row] == pytest.approx(replicate_gap(answers, weights, item_weights), abs=1e-10)


def test_items_nobody_drawn_had_answered_are_left_out_and_counted() -> None:
    term, item, person = np.array([0.0, 0.0, 2.0]), np.array([1, 1, 2]), np.array([1, 2, 1])
    result = half_sample_bootstrap(term, item, person, n_replicates=400, rng=np.random.default_rng(0))
    # with person 1 dropped item 2 is lost and the gap is 0; with person 2 dropped it is 1
    assert set(np.round(result.gap_nats, 12)) == {0.0, 1.0}
    assert result.mean_items_lost == pytest.approx(np.mean(result.gap_nats == 0))


@pytest.mark.parametrize("estimator", ["importance", "jackknife", "delta", "psis"])
def test_bias_curve_is_the_estimator_on_drawn_candidates(estimator: str) -> None:
    table = np.random.default_rng(5).normal(0, 1.5, (30, 50))
    gaps = bias_curve(table, n=[2, 8], n_repeats=3, rng=np.random.default_rng(9), estimator=estimator)
    assert gaps.shape == (2, 3)
    rng = np.random.default_rng(9).spawn(2)[1]
    for repeat in range(3):
        chosen = (np.arange(30) * 50)[:, None] + rng.integers(0, 50, (30, 8), dtype=np.uint16)
        again = estimate_gap(table.ravel()[chosen.ravel()], np.repeat(np.arange(30), 8), estimator=estimator)
        assert gaps[1, repeat] == pytest.approx(again.gap_nats, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("function", [half_sample_bootstrap, cluster_bootstrap])
def test_a_sparse_table_gives_the_dense_numbers(seed: int, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crossed study with two answers in some cells; the rule's bound is lowered, so that it chooses sparse."""
    term, item, person = crossed(seed, people=20, items=30)
    term, item, person = np.append(term, term[:9] + 1), np.append(item, item[:9]), np.append(person, person[:9])
    keep = np.random.default_rng(seed).random(term.size) < 0.3
    arrays = term[keep], item[keep], person[keep]
    assert isinstance(participant_table(*arrays).total, np.ndarray)
    dense = function(*arrays, n_replicates=40, rng=np.random.default_rng(seed))
    monkeypatch.setattr(bootstrap, "_DENSE_CELLS", 1)
    assert not isinstance(participant_table(*arrays).total, np.ndarray)
    sparse = function(*arrays, n_replicates=40, rng=np.random.default_rng(seed))
    np.testing.assert_allclose(sparse.gap_nats, dense.gap_nats, rtol=0, atol=1e-12)
    assert (sparse.mean_items_lost, sparse.n_empty) == (dense.mean_items_lost, dense.n_empty)
    assert dense.mean_items_lost > 0


def test_a_study_whose_cells_do_not_fit() -> None:
    """20,000 people and 50,000 items would be 16 GB of cells."""
    rng = np.random.default_rng(4)
    person, item = np.tile(np.arange(20_000), 5), rng.permutation(np.repeat(np.arange(50_000), 2))
    term = np.full(100_000, 0.7)
    tracemalloc.start()
    try:
        table = participant_table(term, item, person)
        found = cluster_bootstrap(term, item, person, n_replicates=2, rng=rng)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not isinstance(table.total, np.ndarray)
    np.testing.assert_allclose(found.gap_nats, 0.7, atol=1e-12)
    # each of an item's two answers is lost with probability 1/e, the item with about 1/e^2
    assert found.mean_items_lost == pytest.approx(50_000 * np.exp(-2), rel=0.03)
    assert peak < 100e6


def test_a_replicate_whose_weights_vanish_beside_those_not_drawn_is_left_out_of_items_not_drawn() -> None:
    """Person 2's term is 2,000 nats below person 1's: without person 1 the item's mean is zero in double precision."""
    table = participant_table([0.0, -2000.0, 1.0, 1.0], [1, 1, 2, 2], [1, 2, 1, 2])
    found = _replicate(table, np.array([[0, 2], [0, 2]]), in_order(np.array([[0, 2], [1, 1]])))
    assert found.gap_nats.tolist() == [1.0]
    assert found.n_empty == 1


def test_cluster_bootstrap_standard_error_is_that_of_fresh_studies() -> None:
    """Crossed random effects of known size: the pigeonhole sd is near the true one, never far below."""
    rng = np.random.default_rng(3)
    people, items = 25, 40
    person, item = (grid.ravel() for grid in np.meshgrid(np.arange(people), np.arange(items)))

    def fresh() -> np.ndarray:
        return rng.normal(0, 0.5, items)[item] + rng.normal(0, 0.3, people)[person] + rng.normal(0, 0.3, item.size)

    estimates = [estimate_gap(fresh(), item).gap_nats for _ in range(300)]
    sds = [cluster_bootstrap(fresh(), item, person, n_replicates=300, rng=rng).gap_nats.std(ddof=1) for _ in range(12)]
    # sd of an sd over 300 studies is 4%, the mean over 12 studies' sds has about the same noise
    assert np.mean(sds) == pytest.approx(np.std(estimates, ddof=1), rel=0.15)
    fixed = cluster_bootstrap(fresh(), item, person, n_replicates=300, rng=rng, resample_items=False)
    assert fixed.gap_nats.std() < 0.9 * np.mean(sds)


def test_people_or_items_can_be_held_fixed() -> None:
    """Everybody alike: items alone move the gap, and each answer counts as often as its item was drawn."""
    person, item = (grid.ravel() for grid in np.meshgrid(np.arange(3), np.arange(2)))
    term = np.where(item == 0, 0.0, 1.0)
    draws = {"n_replicates": 200, "rng": np.random.default_rng(0)}
    items = cluster_bootstrap(term, item, person, resample_participants=False, **draws)
    assert set(np.round(items.gap_nats, 12)) == {0.0, 0.5, 1.0}
    people = cluster_bootstrap(term, item, person, resample_items=False, **draws)
    np.testing.assert_allclose(people.gap_nats, 0.5)
