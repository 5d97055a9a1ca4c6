"""The belief model against a reference, and what it is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy.special import expit

from estimators.comparison import round_reports
from estimators.comparison.simulation.settings import SimulationSettings
from estimators.comparison.simulation.study import simulate_comparison_study
from estimators.errors import InputError
from models.comparison.belief import BeliefPriors, belief_data, belief_model, set_answers, start_values
from tests.estimators.comparison.comparison_studies import small_study
from tests.oracles.belief import box_probability, log_density, mean_and_scales, place, scale
from tests.same import assert_same


def random_point(n_items: int, rng: np.random.Generator) -> dict[str, Any]:
    point: dict[str, Any] = {
        name: rng.normal(0, 0.3) for name in ("mu", "a", "b", "b2", "c", "d", "ga", "kap", "delta")
    }
    point |= {name: rng.uniform(0.3, 1.5) for name in ("sigma", "omega", "t_b", "t_d", "rho")}
    return point | {name: rng.normal(0, 1, n_items) for name in ("z", "zeta", "xi", "A")}


@pytest.mark.parametrize(
    ("rounding", "centred"), [("none", False), ("none", True), ("interface", False), ("coarser", True)]
)
def test_log_density_is_the_reference_s(rounding, centred):
    data = belief_data(small_study(), "weak", rounding)
    model = belief_model(data, centred=centred)
    log_p = model.compile_logp(jacobian=False, mode="FAST_COMPILE")
    rng = np.random.default_rng(3)
    items = range(data.item.size)
    for _ in range(4):
        point = random_point(data.item.size, rng)
        wanted = log_density(point, data)
        width = point["rho"] * np.array([scale(point, data, q) for q in items])
        unit = (point["A"] - np.array([place(point, data, q) for q in items])) / width
        if not centred:
            wanted += np.log(width).sum()
        values = point | {"A_unit": unit}
        inner = {
            variable.name: np.log(values[rv.name]) if variable.name.endswith("log__") else values[rv.name]
            for rv, variable in model.rvs_to_values.items()
            if rv.name not in {"v", "box"}
        }
        assert log_p(inner) == pytest.approx(wanted, rel=1e-9)


def test_dims_and_coords_are_named():
    data = belief_data(small_study(), "weak")
    model = belief_model(data)
    assert list(model.coords["item"]) == data.item.tolist()
    assert model.named_vars_to_dims["v"] == ("pair",)
    assert model.named_vars_to_dims["A"] == ("item",)


def test_repeats_are_one_pair_and_targets_are_none():
    study = small_study()
    data = belief_data(study, "weak")
    wanted: dict[tuple[int, str], float] = {}
    for item, column in zip(study["response_item"].values, study["response_candidate"].values, strict=True):
        row = study.sel(item=item)
        token = str(row["candidate_token"].values[column])
        if token == row["target_token"].item():
            continue
        x, y = row["candidate_logprob"].isel(candidate=column), row["target_logprob"]
        wanted[int(item), token] = float((x - y).sel(model="weak") - (x - y).sel(model="gen"))
    assert len(wanted) < study.sizes["response"]
    np.testing.assert_allclose(np.sort(data.pair_lower), np.sort(list(wanted.values())), atol=1e-12)
    assert data.is_raw
    doubled = study.isel(response=np.repeat(np.arange(study.sizes["response"]), 2))
    again = belief_data(doubled, "weak")
    np.testing.assert_array_equal(again.pair_lower, data.pair_lower)
    # every distinct stored token is either asked about or the rest
    n_tokens = sum(
        len(set(row["candidate_token"].values.tolist()) - {row["target_token"].item()})
        for row in (study.sel(item=item) for item in data.item)
    )
    assert data.pair_item.size + data.rest_item.size == n_tokens


def test_boxes_hold_the_raw_value_and_round_to_one_report():
    study = small_study()
    raw, boxed = belief_data(study, "weak"), belief_data(study, "weak", "interface")
    assert not boxed.is_raw
    assert ((boxed.pair_lower <= raw.pair_lower) & (raw.pair_lower <= boxed.pair_upper)).all()
    shift = raw.target_log_g[raw.pair_item] - raw.pair_log_g
    report = expit(-(raw.pair_lower - shift))
    low, high = expit(-(boxed.pair_upper - shift)), expit(-(boxed.pair_lower - shift))
    for edge in (low + 1e-9, high - 1e-9):
        np.testing.assert_array_equal(round_reports(edge, "interface"), round_reports(report, "interface"))


def test_the_generator_itself_has_nothing_to_fit():
    assert belief_data(small_study(), "gen").is_generator_itself
    assert not belief_data(small_study(), "gen", "interface").is_generator_itself


@pytest.mark.parametrize(("player", "part"), [("human", "without noise"), ("gpt", "gpt")])
def test_wrong_player(player, part):
    with pytest.raises(InputError, match=part):
        belief_data(small_study(), player)


def test_priors_are_checked():
    with pytest.raises(InputError, match="sigma"):
        BeliefPriors(sigma=0)


@pytest.mark.parametrize("rounding", ["none", "interface"])
def test_other_answers_on_other_items_give_the_model_built_of_them(rounding):
    study = small_study()
    other_study = small_study(seed=5).assign_coords(item=np.arange(200, 206))
    other_study["response_item"] = other_study["response_item"] + 100
    weak, other = belief_data(study, "weak", rounding), belief_data(other_study, "weak", rounding)
    assert weak.pair_item.size != other.pair_item.size
    model, wanted = belief_model(weak), belief_model(other)
    set_answers(model, other)
    assert list(model.coords["item"]) == other.item.tolist()
    assert len(model.coords["pair"]) == other.pair_item.size
    start = start_values(model)
    point = {}
    for rv, variable in model.rvs_to_values.items():
        if rv.name in start:
            point[variable.name] = np.log(start[rv.name]) if variable.name.endswith("log__") else start[rv.name]
    point |= {"rho_log__": 0.1, **({"A": np.full(6, 0.3)} if rounding == "none" else {})}
    log_p, same = (each.compile_logp(mode="FAST_COMPILE")(point) for each in (model, wanted))
    assert log_p == pytest.approx(same, rel=1e-12)


def test_answers_of_another_kind_are_refused():
    study = small_study()
    weak, gen = (belief_data(study, player, "interface") for player in ("weak", "gen"))
    model = belief_model(weak)
    set_answers(model, gen)
    np.testing.assert_array_equal(model["box_data"].get_value(), gen.pair_box)
    for wrong in (belief_data(study, "weak"), belief_data(study, "weak", "coarser")):
        with pytest.raises(InputError, match="rounded"):
            set_answers(model, wrong)
    with pytest.raises(InputError, match="on 7 items"):
        set_answers(model, belief_data(small_study(n_items=7), "weak", "interface"))


@pytest.mark.parametrize("rounding", ["none", "interface", "coarser"])
def test_pairs_have_a_log_likelihood_and_a_predictive_distribution_that_agree(rounding):
    data = belief_data(small_study(), "weak", rounding)
    model = belief_model(data)
    observed = model["v" if data.is_raw else "box"]
    assert observed in model.observed_RVs
    point = random_point(data.item.size, np.random.default_rng(7))
    fixed = pm.do(model, {name: np.asarray(value) for name, value in point.items() if name in model.named_vars})
    if not data.is_raw:
        width = point["rho"] * np.array([scale(point, data, q) for q in range(data.item.size)])
        unit = (point["A"] - np.array([place(point, data, q) for q in range(data.item.size)])) / width
        fixed = pm.do(model, {name: v for name, v in (point | {"A_unit": unit}).items() if name in model.named_vars})
    drawn = pm.draw(fixed[observed.name], draws=4000, random_seed=1)
    assert drawn.shape == (4000, data.pair_item.size)
    for at in range(0, data.pair_item.size, 3):
        q, log_g = data.pair_item[at], data.pair_log_g[at]
        mean, left, right = mean_and_scales(point, data, q, log_g, data.pair_frequency[at])
        if data.is_raw:
            assert drawn[:, at].mean() == pytest.approx(mean, abs=5 * max(left, right) / np.sqrt(4000))
            continue
        edge = data.target_log_g[q] - log_g - data.box_edges
        probability = [box_probability(edge[k + 1] - mean, edge[k] - mean, left, right) for k in range(edge.size - 1)]
        assert sum(probability) == pytest.approx(1, abs=1e-6)
        share = np.bincount(drawn[:, at], minlength=len(probability)) / 4000
        np.testing.assert_allclose(share, probability, atol=5 * 0.5 / np.sqrt(4000))


def reference_study(n_items=5):
    settings = SimulationSettings(
        n_items=n_items,
        n_reference_items=n_items,
        vocab_size=300,
        n_candidates=30,
        n_participants=4,
        store_reference=True,
    )
    return simulate_comparison_study(settings)


def test_the_whole_distribution_is_the_tail_where_the_study_has_it():
    study = reference_study()
    data = belief_data(study, "lm-weak")
    without = belief_data(study.drop_vars("reference_logprob"), "lm-weak")
    assert_same(data.rest_log_g, without.rest_log_g)
    words = study["candidate_token"].values.ravel().tolist()
    for q, label in enumerate(data.item):
        row = study.sel(item=label)
        target = row["target_token"].item()
        own = row["candidate_token"].values.tolist()
        base = np.log(words.count(target) - own.count(target) + 2)
        never = [
            (float(log_g), np.log(words.count(word) + 2) - base)
            for word, log_g in zip(study["token"].values, row["reference_logprob"].values, strict=True)
            if word not in {target, *own}
        ]
        mine = data.tail_item == q
        at, frequency = data.tail_log_g[mine], data.tail_frequency[mine]
        for slope, d in ((0.0, 0.0), (0.3, 0.4), (-0.5, 0.2)):  # sums that the gap is made of
            wanted = sum(np.exp(log_g + slope * log_g + d * f) for log_g, f in never)
            found = (data.tail_mass[mine] * np.exp(slope * at + d * frequency)).sum()
            # a bin of width w is off by (w slope)^2 / 24 of itself at most, w = .25
            assert found == pytest.approx(wanted, rel=0.25**2 * (slope**2 + d**2) / 24 + 1e-5)
    np.testing.assert_allclose(data.unseen_mass, without.unseen_mass, atol=1e-5)


def test_frequency_counts_the_other_items_whether_asked_or_not():
    study = small_study()
    words = study["candidate_token"].values.tolist()
    asked_two = study.isel(response=np.flatnonzero(np.isin(study["response_item"].values, [100, 103])))
    data = belief_data(asked_two, "weak")
    assert data.item.tolist() == [100, 103]
    found = set(zip(data.pair_item, data.pair_log_g.round(9), data.pair_frequency.round(9), strict=True))
    for at, candidate in zip(asked_two["response_item"].values, asked_two["response_candidate"].values, strict=True):
        q, row = int(at) - 100, study.sel(item=at)
        token, target = words[q][candidate], row["target_token"].item()
        if token == target:
            continue
        count = {word: sum(other.count(word) for k, other in enumerate(words) if k != q) for word in (token, target)}
        log_g = row["candidate_logprob"].sel(model="gen").values[candidate].round(9)
        frequency = np.log((count[token] + 2) / (count[target] + 2)).round(9)
        assert ([100, 103].index(at), log_g, frequency) in found


def test_a_distribution_without_a_seen_token_is_refused():
    study = reference_study()
    token = study["token"].values.copy()
    token[token == study["candidate_token"].values[0, 0]] = "something else"
    with pytest.raises(InputError, match="reference_logprob"):
        belief_data(study.assign_coords(token=token), "lm-weak")
    with pytest.raises(InputError, match="token"):
        belief_data(study.drop_vars("token"), "lm-weak")
