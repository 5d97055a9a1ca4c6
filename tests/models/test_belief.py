"""The belief model against an oracle, and what it is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from estimators import InputError, round_reports
from models.belief import BeliefPriors, belief_data, belief_model, set_answers
from tests.estimators.studies import small_study
from tests.oracles.belief import log_density, place, scale


def random_point(n_items: int, rng: np.random.Generator) -> dict[str, Any]:
    point: dict[str, Any] = {name: rng.normal(0, 0.3) for name in ("mu", "a", "b", "b2", "c", "ga", "kap")}
    point |= {name: rng.uniform(0.3, 1.5) for name in ("sigma", "omega", "t_b", "rho")}
    return point | {name: rng.normal(0, 1, n_items) for name in ("z", "zeta", "A")}


@pytest.mark.parametrize(
    ("rounding", "centred"), [("none", False), ("none", True), ("interface", False), ("coarser", True)]
)
def test_log_density_is_the_oracle_s(rounding, centred):
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
            if rv.name != "v"
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


def test_answers_can_be_exchanged_only_on_the_same_pairs():
    study = small_study()
    weak, gen = (belief_data(study, player, "interface") for player in ("weak", "gen"))
    model = belief_model(weak)
    set_answers(model, gen)
    np.testing.assert_array_equal(model["pair_lower"].get_value(), np.clip(gen.pair_lower, -1e4, 1e4))
    with pytest.raises(InputError, match="pairs"):
        set_answers(model, belief_data(study, "weak"))
    with pytest.raises(InputError, match="pairs"):
        set_answers(model, replace(gen, pair_log_g=gen.pair_log_g - 1))
