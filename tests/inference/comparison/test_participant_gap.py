"""The participants' shared belief: residuals against numerical integrals, gaps against sums, scale from the labels."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from estimators.errors import InputError
from inference.comparison.participant_gap import (
    OBJECTIVES,
    SharedBelief,
    loss_gap,
    outcome_temperature,
    shared_belief,
    top1_rate,
)
from models.comparison.participant_data import ParticipantData, participant_data, without_participants
from models.comparison.two_piece import probability_inside
from tests.estimators.comparison.comparison_studies import small_study
from tests.oracles import participants as reference
from tests.same import assert_same

EDGES = np.log(np.arange(0.05, 1, 0.1) / (1 - np.arange(0.05, 1, 0.1)))


def data_by_hand(**changed: Any) -> ParticipantData:
    """One item; pair 0 answered by both, 1 by the first, 2 by the second; two tokens of the rest, one of the tail."""
    fields: dict[str, Any] = {
        "study": "by hand",
        "generator": "g",
        "item": np.array([7]),
        "target_log_g": np.log([0.2]),
        "surprisal": np.array([3.0]),
        "unseen_mass": np.array([0.1]),
        "n_same": np.array([1]),
        "pair_item": np.zeros(3, dtype=int),
        "pair_log_g": np.log([0.3, 0.05, 0.1]),
        "pair_column": np.arange(3),
        "pair_n_shown": np.array([2, 1, 1]),
        "n_shared": 1,
        "rest_item": np.zeros(2, dtype=int),
        "rest_log_g": np.log([0.15, 0.1]),
        "tail_item": np.zeros(1, dtype=int),
        "tail_log_g": np.log([0.02]),
        "tail_mass": np.array([0.1]),
        "participant": np.array(["a", "b"]),
        "row_pair": np.array([0, 0, 1, 2]),
        "row_participant": np.array([0, 1, 0, 1]),
        "row_box": np.array([3, 4, 5, 10]),
        "row_response": np.arange(4),
        "box_edges": np.stack([[-np.inf, *EDGES], [*EDGES, np.inf]], axis=1),
        "half_box": 5,
    }
    return ParticipantData(**(fields | changed))


def posterior(data: ParticipantData, n_draws: int, **values: Any) -> xr.Dataset:
    """Two chains, the same values in every draw."""
    n_people, n_items = data.participant.size, data.item.size
    point: dict[str, Any] = {"b": 0.1, "b2": 0.2, "t_b": 0.3, "ga": 0.0, "half": 0.4, "sigma": 0.9, "delta": 0.0}
    point |= {"A": np.full(n_items, 0.5), "s": np.full(n_items, 0.8), "zeta": np.full(n_items, -0.4)}
    point |= {"slope": np.full(n_people, 0.7), "bias": np.full(n_people, 0.3), "noise": np.full(n_people, 0.6)}
    point |= {"lapse": np.full(n_people, 0.1), "e_unit": np.full(data.n_shared, 1.2)} | values
    dims = dict.fromkeys(("A", "s", "zeta"), ("item",)) | {"e_unit": ("shared_pair",)}
    dims |= dict.fromkeys(("slope", "bias", "noise", "lapse"), ("participant",))
    variables = {}
    for name, value in point.items():
        array = np.asarray(value, dtype=float)
        spread = np.broadcast_to(array, (2, n_draws // 2, *array.shape))
        variables[name] = (("chain", "draw", *dims.get(name, ())), spread)
    return xr.Dataset(variables, coords={"item": data.item})


def distance(drawn: np.ndarray, cdf: Any) -> float:
    """Kolmogorov's distance of draws from a CDF of a grid."""
    ordered = np.sort(drawn)
    grid = ordered[:: max(1, ordered.size // 400)]
    below = np.searchsorted(ordered, grid, side="right") / ordered.size
    return float(np.abs(below - np.asarray(cdf(grid))).max())


N = 20_000
SAMPLING = 1.95 / math.sqrt(N)
"""Kolmogorov's distance that one in a thousand samples goes beyond."""


@pytest.mark.parametrize(
    ("box", "lapse", "ga", "noise", "slope"),
    [
        (0, 0.0, 0.0, 0.6, 0.7),
        (5, 0.3, 0.0, 0.6, 0.7),
        (10, 0.9, 0.0, 1.5, 0.3),
        (7, 0.05, 0.0, 0.05, 2.0),
        (0, 0.05, 0.3, 0.9, 1.0),
        (5, 0.2, 0.3, 0.3, 1.0),
        (10, 0.05, -0.3, 0.9, 1.5),
        (10, 0.02, 0.3, 0.9, 0.5),
    ],
)
def test_residuals_of_single_answers_follow_their_posterior(
    box: int, lapse: float, ga: float, noise: float, slope: float
) -> None:
    """Exact without skew; with skew the report's sum is approximated, which moves the CDF by less than .01."""
    data = data_by_hand(row_box=np.array([3, 4, box, 10]))
    person = {"slope": slope, "bias": 0.3, "noise": noise, "lapse": lapse}
    people = {name: np.array([value, 0.1]) for name, value in person.items()}
    draws = posterior(data, N, ga=ga, **people)
    belief = shared_belief(draws, data, np.random.default_rng(0))
    log_g = math.log(0.05)
    mean = 0.5 + (0.1 + 0.3 * -0.4) * (log_g + 5) + 0.2 * max(-log_g - 7, 0) + log_g - math.log(0.2)
    scales = 0.8 * math.exp(ga), 0.8 * math.exp(-ga)
    boxes = {"box_edges": data.box_edges, "half_box": 5, "half": 0.4}
    residual = belief.pair_log_ratio[:, 1] - mean
    found = distance(residual, lambda e: reference.residual_cdf(e, box, mean, person, scales, boxes))
    assert found < SAMPLING + (0.01 if ga else 0)
    # and it says something: the prior is another distribution wherever people listen to their belief
    before = distance(residual, lambda e: prior_cdf(e, *scales))
    assert before > 2 * SAMPLING or lapse > 0.5


def prior_cdf(e: np.ndarray, left: float, right: float) -> np.ndarray:
    ones = np.ones_like(e)
    return probability_inside(left * ones, right * ones, -np.inf * ones, e)


def test_other_tokens_are_where_the_draw_has_them_or_predicted() -> None:
    data = data_by_hand()
    draws = posterior(data, N, ga=0.2)
    belief = shared_belief(draws, without_participants(data, ["b"]), np.random.default_rng(1))

    def mean(log_g: float) -> float:
        return 0.5 + (0.1 + 0.3 * -0.4) * (log_g + 5) + 0.2 * max(-log_g - 7, 0) + log_g - math.log(0.2)

    scales = 0.8 * math.exp(0.2), 0.8 * math.exp(-0.2)
    np.testing.assert_allclose(belief.pair_log_ratio[:, 0], mean(math.log(0.3)) + 0.8 * 1.2)
    # pair 2 has lost its only answer
    for values, log_g in (
        (belief.pair_log_ratio[:, 2], math.log(0.1)),
        (belief.rest_log_ratio[:, 0], math.log(0.15)),
        (belief.rest_log_ratio[:, 1], math.log(0.1)),
    ):
        assert distance(values - mean(log_g), lambda e: prior_cdf(e, *scales)) < SAMPLING
    np.testing.assert_allclose(belief.tail_log_ratio, mean(math.log(0.02)))
    np.testing.assert_allclose(belief.item_left, scales[0])
    np.testing.assert_allclose(belief.item_right, scales[1])
    assert belief.n_draws == N


def test_all_tokens_never_drawn_share_one_discrepancy() -> None:
    """It is in units of sigma, and moves nothing that was drawn."""
    tails = {"tail_item": np.zeros(2, dtype=int), "tail_log_g": np.log([0.02, 0.01]), "tail_mass": np.full(2, 0.05)}
    data = data_by_hand(**tails)
    draws = posterior(data, 4)
    draws["delta"] = (("chain", "draw"), np.array([[-0.5, 0.0], [1.0, 2.0]]))
    off, none = (
        shared_belief(each, data, np.random.default_rng(0)) for each in (draws, draws.assign(delta=0 * draws["delta"]))
    )
    np.testing.assert_allclose(
        off.tail_log_ratio - none.tail_log_ratio, np.outer([-0.5, 0, 1, 2], [0.9, 0.9]), atol=1e-12
    )
    assert_same(off.pair_log_ratio, none.pair_log_ratio)
    assert_same(off.rest_log_ratio, none.rest_log_ratio)


def test_draws_are_chains_one_after_the_other() -> None:
    data = data_by_hand()
    draws = posterior(data, 6)
    marks = np.arange(6.0).reshape(2, 3)
    draws["e_unit"] = (("chain", "draw", "shared_pair"), marks[:, :, None])
    straight = shared_belief(draws, data, np.random.default_rng(0)).pair_log_ratio[:, 0]
    np.testing.assert_allclose(np.diff(straight), 0.8)
    turned = shared_belief(draws.transpose(..., "chain"), data, np.random.default_rng(0)).pair_log_ratio[:, 0]
    np.testing.assert_allclose(straight, turned)


def test_a_posterior_of_something_else_is_refused() -> None:
    data = data_by_hand()
    with pytest.raises(InputError, match="zeta"):
        shared_belief(posterior(data, 4).drop_vars("zeta"), data, np.random.default_rng(0))
    with pytest.raises(InputError, match="item"):
        shared_belief(posterior(data, 4).assign_coords(item=[8]), data, np.random.default_rng(0))


def random_belief(data: ParticipantData, n_draws: int, seed: int = 0) -> SharedBelief:
    rng = np.random.default_rng(seed)

    def some(n: int) -> np.ndarray:
        return rng.normal(-1, 2, (n_draws, n))

    n_items = data.item.size
    left, right = rng.uniform(0.1, 1.5, (2, n_draws, n_items))
    return SharedBelief(
        data, some(data.pair_item.size), some(data.rest_item.size), some(data.tail_item.size), left, right
    )


def scaled(belief: SharedBelief, factor: float) -> SharedBelief:
    names = ("pair_log_ratio", "rest_log_ratio", "tail_log_ratio", "item_left", "item_right")
    return replace(belief, **{name: factor * getattr(belief, name) for name in names})


def test_gap_against_the_sum_written_out() -> None:
    data = participant_data(small_study())
    assert data.tail_item.size
    assert data.rest_item.size
    belief = random_belief(data, 5)
    for c in (0.3, 1.0, 1.7):
        found = loss_gap(belief, c)
        wanted = [reference.gap_of_draw(belief, draw, c) for draw in range(5)]
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)
    each = np.array([0.2, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(
        loss_gap(belief, each), [loss_gap(belief, c)[at] for at, c in enumerate(each)], rtol=1e-12
    )


def exact_belief(n_items: int = 6) -> tuple[SharedBelief, np.ndarray]:
    """All nine tokens of every item stored, at their true log-ratios under the study's model "weak"."""
    study = small_study(n_items=n_items, n_candidates=400)
    data = participant_data(study)
    log_p = study["candidate_logprob"].sel(model="weak").values
    ratio = log_p - study["target_logprob"].sel(model="weak").values[:, None]
    log_g = study["candidate_logprob"].sel(model="gen").values

    def of(item: np.ndarray, at: np.ndarray) -> np.ndarray:
        column = np.abs(log_g[item] - at[:, None]).argmin(axis=1)
        return ratio[item, column][None]

    nothing = np.full((1, n_items), 1e-9)
    tail = np.full((1, data.tail_item.size), -50.0)
    belief = SharedBelief(
        data, of(data.pair_item, data.pair_log_g), of(data.rest_item, data.rest_log_g), tail, nothing, nothing
    )
    truth = (study["target_logprob"].sel(model="gen") - study["target_logprob"].sel(model="weak")).values
    whole = data.unseen_mass < 1e-6
    return belief, np.where(whole, truth, np.nan)


def test_gap_is_the_truth_where_every_log_ratio_is_known() -> None:
    belief, truth = exact_belief()
    whole = np.isfinite(truth)
    assert whole.sum() >= 3
    np.testing.assert_allclose(loss_gap(belief)[0, whole], truth[whole], atol=1e-5)


@settings(max_examples=40)
@given(seed=st.integers(0, 100), low=st.floats(0.02, 3), span=st.floats(0.05, 3), part=st.floats(0.1, 0.9))
def test_gap_is_convex_in_the_temperature(seed: int, low: float, span: float, part: float) -> None:
    belief = random_belief(participant_data(small_study()), 2, seed)
    left, right = loss_gap(belief, low), loss_gap(belief, low + span)
    between = loss_gap(belief, low + part * span)
    assert (between <= (1 - part) * left + part * right + 1e-9).all()


@settings(max_examples=40)
@given(seed=st.integers(0, 100), factor=st.floats(0.05, 20), c=st.floats(0.05, 5))
def test_only_the_product_of_scale_and_temperature_matters(seed: int, factor: float, c: float) -> None:
    belief = random_belief(participant_data(small_study()), 2, seed)
    np.testing.assert_allclose(loss_gap(scaled(belief, factor), c / factor), loss_gap(belief, c), rtol=1e-9, atol=1e-9)


def labelled(n_items: int, n_shown: int, seed: int = 0) -> SharedBelief:
    """True log-ratios of a belief h of which every target is a draw, and tokens shown that g drew."""
    rng = np.random.default_rng(seed)
    vocabulary = 12
    h, g = rng.dirichlet(np.full(vocabulary, 0.5), n_items) + 1e-4, rng.dirichlet(np.full(vocabulary, 0.7), n_items)
    h, g = h / h.sum(axis=1, keepdims=True), (g + 1e-4) / (g + 1e-4).sum(axis=1, keepdims=True)
    pair_item, pair_log_g, ratio, times, same, log_g_y = [], [], [], [], [], []
    for q in range(n_items):
        y = rng.choice(vocabulary, p=h[q])
        count = np.bincount(rng.choice(vocabulary, n_shown, p=g[q]), minlength=vocabulary)
        same.append(count[y])
        log_g_y.append(np.log(g[q, y]))
        for x in np.flatnonzero(count):
            if x != y:
                pair_item.append(q)
                pair_log_g.append(np.log(g[q, x]))
                ratio.append(np.log(h[q, x] / h[q, y]))
                times.append(count[x])
    nothing = np.zeros(0, dtype=int)
    data = data_by_hand(
        item=np.arange(n_items),
        target_log_g=np.array(log_g_y),
        n_same=np.array(same),
        pair_item=np.array(pair_item),
        pair_log_g=np.array(pair_log_g),
        pair_n_shown=np.array(times),
        rest_item=nothing,
        rest_log_g=nothing.astype(float),
        tail_item=nothing,
        tail_log_g=nothing.astype(float),
        tail_mass=nothing.astype(float),
    )
    empty = np.zeros((1, 0))
    return SharedBelief(data, np.array(ratio)[None], empty, empty, *np.full((2, 1, n_items), 0.5))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_labels_give_back_the_scale_of_the_belief_that_made_them(objective: str) -> None:
    belief = labelled(6000, 5)
    weight = np.ones(6000)
    found = outcome_temperature(belief, weight, objective=objective)[0]
    # its standard error by the bootstrap over items
    draws = np.random.default_rng(1).exponential(size=(40, 6000))
    forty = SharedBelief(
        belief.data,
        np.repeat(belief.pair_log_ratio, 40, axis=0),
        *np.zeros((2, 40, 0)),
        *np.full((2, 40, 6000), 0.5),
    )
    error = outcome_temperature(forty, draws, objective=objective).std()
    assert error < 0.05
    assert abs(found - 1) < 3 * error
    for factor in (0.25, 3.0):
        again = outcome_temperature(scaled(belief, factor), weight, objective=objective)[0]
        assert again == pytest.approx(found / factor, rel=1e-6)
    # weights are relative
    assert outcome_temperature(belief, 7 * weight, objective=objective)[0] == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_temperature_is_the_optimum_of_the_loss_written_out(objective: str) -> None:
    belief = labelled(25, 4, seed=3)
    weight = np.random.default_rng(2).exponential(size=25)
    found = outcome_temperature(belief, weight, objective=objective)[0]
    best = minimize_scalar(
        lambda c: reference.label_loss(belief, 0, weight, c, objective), bounds=(0.001, 30), options={"xatol": 1e-9}
    )
    assert found == pytest.approx(best.x, rel=1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_belief_that_the_labels_contradict_or_confirm_always_is_at_an_end(objective: str) -> None:
    belief = labelled(50, 4)
    always = replace(belief, pair_log_ratio=-np.abs(belief.pair_log_ratio))
    never = replace(belief, pair_log_ratio=np.abs(belief.pair_log_ratio))
    assert outcome_temperature(always, np.ones(50), objective=objective)[0] == pytest.approx(30, rel=1e-3)
    assert outcome_temperature(never, np.ones(50), objective=objective)[0] == pytest.approx(0.001, rel=1e-3)


def test_an_unknown_objective_is_named() -> None:
    with pytest.raises(InputError, match=r"best.*rank"):
        outcome_temperature(labelled(5, 2), np.ones(5), objective="best")


def test_top1_rate_by_hand() -> None:
    belief = labelled(4, 6)
    data = belief.data
    ratio = np.full((2, data.pair_item.size), -0.1)
    ratio[0, data.pair_item == 2] = 0.1
    ratio[1, np.flatnonzero(data.pair_item == 0)[0]] = 0.3
    ratio[1, np.flatnonzero(data.pair_item == 3)[-1]] = 0.3
    scales = np.full((2, 2, 4), 0.5)
    two = SharedBelief(data, ratio, *np.zeros((2, 2, 0)), *scales)
    np.testing.assert_allclose(top1_rate(two, np.random.default_rng(0)), [0.75, 0.5])
    assert top1_rate(scaled(two, 7.0), np.random.default_rng(0)).tolist() == [0.75, 0.5]


def test_the_tail_competes_with_as_many_tokens_as_it_stands_for() -> None:
    """Mass .1 of tokens with ln g = ln .02 are five tokens: none is above 0 with the fifth power of one's share."""
    data = data_by_hand(pair_n_shown=np.ones(3, dtype=int))
    low = np.full((N, 3), -9.0)
    scales = np.full((N, 1), 0.6), np.full((N, 1), 0.4)
    belief = SharedBelief(data, low, low[:, :2], np.full((N, 1), -0.5), *scales)
    below = prior_cdf(np.array([0.5]), 0.6, 0.4)[0]
    found = top1_rate(belief, np.random.default_rng(0)).mean()
    assert found == pytest.approx(below**5, abs=4 * 0.5 / math.sqrt(N))
    # a stand-in for less than a token is one
    less = replace(belief, data=replace(data, tail_mass=np.array([0.001])))
    assert top1_rate(less, np.random.default_rng(0)).mean() == pytest.approx(below, abs=4 * 0.5 / math.sqrt(N))
