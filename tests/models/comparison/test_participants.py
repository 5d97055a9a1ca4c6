"""The participant model against numerical integrals, its simulator against its density, and its prior."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from estimators.comparison.rounding import RoundingScheme
from estimators.comparison.simulation.settings import SimulationSettings
from estimators.comparison.simulation.study import simulate_comparison_study
from estimators.errors import InputError
from models.comparison.participant_data import ParticipantData, participant_data, with_reports, without_participants
from models.comparison.participants import (
    ParticipantPriors,
    added_noise,
    participant_model,
    set_participant_data,
)
from models.comparison.two_piece import probability_inside
from tests.estimators.comparison.comparison_studies import small_study
from tests.oracles import participants as reference

Point = dict[str, Any]


@cache
def data_of(n_items: int = 6) -> ParticipantData:
    return participant_data(small_study(n_items=n_items))


@cache
def model_of() -> pm.Model:
    return participant_model(data_of())


@cache
def log_p_of_model() -> Any:
    """Log density of ``model_of()`` in terms one by one, as PyTensor's Python mode cannot add up more than 32."""
    return terms_log_p(model_of())


def terms_log_p(model: pm.Model) -> Any:
    return model.compile_logp(jacobian=False, sum=False, mode="FAST_COMPILE")


@cache
def row_log_p_of_model() -> Any:
    return row_log_p(model_of())


def random_point(data: ParticipantData, rng: np.random.Generator, ga: float | None = None) -> Point:
    point: Point = {name: rng.normal(0, 0.3) for name in ("mu", "a", "b", "b2", "c", "kap", "log_noise", "delta")}
    point |= {name: rng.uniform(0.2, 1.2) for name in ("sigma", "omega", "t_b", "rho")}
    point |= {f"{name}_spread": rng.uniform(0.1, 1) for name in ("slope", "bias", "noise", "lapse")}
    point |= {"ga": rng.uniform(-0.3, 0.3) if ga is None else ga, "half": rng.uniform(0.1, 0.9), "logit_lapse": -1.5}
    point |= {name: rng.normal(0, 1, data.item.size) for name in ("z", "zeta", "A_unit")}
    point |= {f"{name}_unit": rng.normal(0, 1, data.participant.size) for name in ("slope", "bias", "noise", "lapse")}
    return point | {"e_unit": rng.normal(0, 1, data.n_shared)}


def on_sampler_s_scale(model: pm.Model, point: Point) -> Point:
    inner = {}
    for rv in model.free_RVs:
        value, name = point[rv.name], model.rvs_to_values[rv].name
        if name.endswith("log__"):
            value = np.log(value)
        elif name.endswith("logodds__"):
            value = np.log(value / (1 - value))
        inner[name] = np.asarray(value, dtype=float)
    return inner


def with_parameters(model: pm.Model, point: Point) -> pm.Model:
    return pm.do(model, {rv.name: np.asarray(point[rv.name], dtype=float) for rv in model.free_RVs})


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_log_density_is_the_reference_s_where_the_sum_with_the_noise_is_exact(scale: float) -> None:
    """Without skew the sum of a residual and the noise is a normal, and nothing is approximated."""
    data, model = data_of(), model_of()
    assert 0 < data.n_shared < data.pair_item.size
    set_participant_data(model, data, scale=scale)
    log_p = log_p_of_model()
    rng = np.random.default_rng(3)
    for _ in range(3):
        point = random_point(data, rng, ga=0.0)
        found = sum(term.sum() for term in log_p(on_sampler_s_scale(model, point)))
        assert found == pytest.approx(reference.log_density(point, data, scale), rel=1e-7)


def row_log_p(model: pm.Model) -> Any:
    return model.compile_logp(vars=[model["box"]], sum=False, jacobian=False, mode="FAST_COMPILE")


def test_skewed_residuals_are_integrated_out_to_a_hundredth() -> None:
    """Pairs with several answers are exact; the others' probabilities are within .01, and 4% where above .02."""
    data, model = data_of(), model_of()
    set_participant_data(model, data, scale=1.0)
    log_p = row_log_p_of_model()
    rng = np.random.default_rng(5)
    single = data.row_pair >= data.n_shared
    assert single.any()
    for _ in range(3):
        point = random_point(data, rng)
        found = np.exp(log_p(on_sampler_s_scale(model, point))[0])
        wanted = np.array([reference.row_probability(point, data, 1.0, row) for row in range(data.row_box.size)])
        np.testing.assert_allclose(found[~single], wanted[~single] + 1e-12, rtol=1e-7)
        np.testing.assert_allclose(found[single], wanted[single], atol=0.01)
        likely = single & (wanted > 0.02)
        np.testing.assert_allclose(found[likely], wanted[likely], rtol=0.04)


def moments(left: float, right: float) -> tuple[float, float]:
    """Variance and third moment by numerical integration."""
    return tuple(reference.integral(lambda e, power=power: e**power, left, right) for power in (2, 3))  # type: ignore[return-value]


@settings(max_examples=30)
@given(left=st.floats(0.1, 3), log_ratio=st.floats(-0.6, 0.6), noise=st.floats(0.05, 3))
def test_added_noise_keeps_variance_and_third_moment(left: float, log_ratio: float, noise: float) -> None:
    right = left * np.exp(log_ratio)
    new_left, new_right = added_noise(left, right, noise)
    assert min(new_left, new_right) > 0
    variance, third = moments(left, right)
    new_variance, new_third = moments(new_left, new_right)
    assert new_variance == pytest.approx(variance + noise**2, rel=1e-6)
    assert new_third == pytest.approx(third, rel=0.01, abs=1e-6 * new_variance**1.5)
    # the sum's CDF itself, at its quartiles and far out
    sd = new_variance**0.5
    for at in np.array([-2, -0.7, 0, 0.7, 2]) * sd:
        wanted = reference.integral(lambda e, at=at: reference.normal_box(-np.inf, at - e, 0, noise), left, right)
        found = probability_inside(*(np.array(x) for x in (new_left, new_right, -np.inf, at)))
        assert found == pytest.approx(wanted, abs=0.01)


def test_no_residual_leaves_the_noise() -> None:
    assert added_noise(0.0, 0.0, 0.7) == pytest.approx((0.7, 0.7))
    left, right = added_noise(np.array([0.5]), np.array([0.5]), np.array([1.2]))
    assert (left[0], right[0]) == pytest.approx((1.3, 1.3))


def test_simulated_answers_have_the_probabilities_of_the_density() -> None:
    data, model = data_of(), model_of()
    set_participant_data(model, data, scale=1.0)
    point = random_point(data, np.random.default_rng(1))
    n = 4000
    drawn = pm.draw(with_parameters(model, point)["box"], draws=n, random_seed=1)
    assert drawn.shape == (n, data.row_box.size)
    log_p = row_log_p_of_model()
    probability = []
    for box in range(11):
        set_participant_data(model, with_reports(data, np.full_like(data.row_box, box)), scale=1.0)
        probability.append(np.exp(log_p(on_sampler_s_scale(model, point))[0]))
    probability = np.array(probability)
    np.testing.assert_allclose(probability.sum(axis=0), 1, atol=1e-6)
    share = np.array([(drawn == box).mean(axis=0) for box in range(11)])
    error = np.sqrt(probability * (1 - probability) / n) + 1e-4
    assert np.abs((share - probability) / error).max() < 5
    assert ((share - probability) ** 2 / error**2).mean() < 1.2


def test_the_prior_predictive_looks_like_people() -> None:
    """Real people say 50% in 12% of their answers, 1% or 99% in 34%; the prior holds that, and is not all of one."""
    design = SimulationSettings(n_items=20, n_reference_items=20, vocab_size=500, n_candidates=40, n_participants=8)
    data = participant_data(simulate_comparison_study(design))
    boxes = pm.draw(participant_model(data)["box"], draws=300, random_seed=2)
    share = np.array([(boxes == box).mean(axis=1) for box in range(11)])
    half, ends = share[5], share[0] + share[10]
    assert 0.03 < np.median(half) < 0.15
    assert np.quantile(half, 0.05) < 0.05 < 0.12 < np.quantile(half, 0.95)
    assert 0.2 < np.median(ends) < 0.6
    assert np.quantile(ends, 0.05) < 0.34 < np.quantile(ends, 0.95)
    # a spike: 50% is on average more frequent than its neighbours
    assert half.mean() > 1.15 * max(share[4].mean(), share[6].mean())
    # both ends are used, and the target more often favoured than not
    assert ((share[0] > 0) & (share[10] > 0)).mean() > 0.9
    assert np.median(share[6:].sum(axis=0)) > 0.35


def test_dims_and_coords_are_named() -> None:
    data, model = data_of(), participant_model(data_of())
    assert list(model.coords["item"]) == data.item.tolist()
    assert list(model.coords["participant"]) == data.participant.tolist()
    dims = model.named_vars_to_dims
    assert (dims["A"], dims["e_unit"], dims["slope"], dims["box"]) == (
        ("item",),
        ("shared_pair",),
        ("participant",),
        ("row",),
    )


@pytest.mark.parametrize("what", ["reports", "fewer", "scale", "all"])
def test_a_model_with_other_data_is_the_model_built_of_them(what: str) -> None:
    data = data_of()
    other, scale = data, 1.0
    if what in {"reports", "all"}:
        other = with_reports(other, (other.row_box * 3 + 1) % 11)
    if what in {"fewer", "all"}:
        other = without_participants(other, ["p2"])
    if what in {"scale", "all"}:
        scale = 0.4
    model, log_p = model_of(), log_p_of_model()
    point = random_point(data, np.random.default_rng(7))
    values = on_sampler_s_scale(model, point)
    set_participant_data(model, data, scale=1.0)
    before = sum(term.sum() for term in log_p(values))
    set_participant_data(model, other, scale=scale)
    assert len(model.coords["row"]) == other.row_box.size
    found = sum(term.sum() for term in log_p(values))
    fresh = participant_model(other, scale=scale)
    wanted = sum(term.sum() for term in terms_log_p(fresh)(values))
    assert found == pytest.approx(wanted, rel=1e-12)
    assert abs(found - before) > 1e-3
    # and who does not answer does not count in what is centred
    slope, bias = pm.draw([with_parameters(model, point)[name] for name in ("slope", "bias")], mode="FAST_COMPILE")
    here = other.answers
    assert np.log(slope[here]).mean() == pytest.approx(np.log(scale))
    assert bias[here].mean() == pytest.approx(0, abs=1e-12)


def test_data_of_other_questions_are_refused() -> None:
    data, model = data_of(), participant_model(data_of())
    with pytest.raises(InputError, match="items"):
        set_participant_data(model, data_of(7), scale=1.0)
    with pytest.raises(InputError, match="participants"):
        set_participant_data(model, participant_data(small_study(n_participants=3)), scale=1.0)
    other_pairs = small_study()
    other_pairs["response_candidate"] = (other_pairs["response_candidate"] + 1) % 12
    other_pairs["automatic"] = ("response", np.zeros(other_pairs.sizes["response"], dtype=bool))
    with pytest.raises(InputError, match="pairs"):
        set_participant_data(model, participant_data(other_pairs), scale=1.0)
    grid = RoundingScheme("own", (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99))
    with pytest.raises(InputError, match="grid"):
        set_participant_data(model, participant_data(small_study(), grid), scale=1.0)
    for scale in (0.0, np.nan):
        with pytest.raises(InputError, match="scale"):
            set_participant_data(model, data, scale=scale)


@pytest.mark.parametrize(("name", "value"), [("sigma", 0.0), ("mu", np.inf), ("ga_mean", np.nan), ("lapse_median", 1)])
def test_priors_are_checked(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        ParticipantPriors(**{name: value})


def test_negative_means_are_priors_too() -> None:
    assert ParticipantPriors(ga_mean=-0.1, kap_mean=0.0).ga_mean == -0.1


def test_beliefs_far_from_every_box_keep_density_and_gradient_finite() -> None:
    data = data_of()
    model = participant_model(data)
    point = random_point(data, np.random.default_rng(2)) | {"mu": 40.0, "logit_lapse": -30.0}
    gradient: NDArray[np.float64] = model.compile_dlogp(mode="FAST_COMPILE")(on_sampler_s_scale(model, point))
    assert np.isfinite(gradient).all()
    assert np.isfinite(row_log_p(model)(on_sampler_s_scale(model, point))[0]).all()
