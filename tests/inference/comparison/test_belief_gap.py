"""The gap of a posterior draw against sums written out, and sampling and storing a small posterior."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from estimators.errors import InputError
from inference.comparison.belief_gap import belief_gap, compile_belief
from inference.posterior.arviz_adapter import group, group_names, interval
from inference.posterior.sampling import sample
from inference.posterior.storage import load_posterior, save_posterior
from models.comparison.belief import belief_data, belief_model, set_answers
from models.comparison.two_piece import log_mean_exp
from tests.estimators.comparison.comparison_studies import small_study
from tests.oracles.belief import mean_and_scales


def draws(n_items: int, item: np.ndarray, s: float, n_draws: int = 5, seed: int = 0) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    scalars = ("b", "b2", "d", "t_b", "t_d", "ga", "sigma", "delta")
    values = {name: (("chain", "draw"), rng.normal(0, 0.2, (2, n_draws))) for name in scalars}
    by_item = ("A", "zeta", "xi")
    values |= {name: (("chain", "draw", "item"), rng.normal(0, 1, (2, n_draws, n_items))) for name in by_item}
    values["s"] = (("chain", "draw", "item"), np.full((2, n_draws, n_items), s))
    return xr.Dataset(values, coords={"item": item})


def test_gap_against_a_loop_when_residuals_vanish():
    data = belief_data(small_study(), "weak")
    s = 1e-9
    posterior = draws(data.item.size, data.item, s)
    found = belief_gap(posterior, data, np.random.default_rng(0), max_cells=7)
    flat = posterior.stack(sample=("chain", "draw"))
    for d in range(flat.sizes["sample"]):
        one = flat.isel(sample=d)
        point = {name: one[name].values for name in ("A", "zeta", "xi", "b", "b2", "d", "t_b", "t_d", "ga")}
        point |= {"sigma": 0.0, "omega": 0.0, "c": 0.0, "z": np.zeros(data.item.size)}
        discrepancy = float(one["sigma"] * one["delta"])
        for q in range(data.item.size):
            total = np.exp(data.target_log_g[q])
            for at, log_g, v in zip(data.pair_item, data.pair_log_g, data.pair_lower, strict=True):
                total += np.exp(log_g + v) if at == q else 0
            rest = zip(data.rest_item, data.rest_log_g, data.rest_frequency, strict=True)
            for at, log_g, frequency in rest:
                total += np.exp(log_g + mean_and_scales(point, data, q, log_g, frequency)[0]) if at == q else 0
            tail = zip(data.tail_item, data.tail_log_g, data.tail_frequency, strict=True)
            stand_ins = [(log_g, frequency) for at, log_g, frequency in tail if at == q]
            for log_g, frequency in stand_ins:
                mass = data.unseen_mass[q] / len(stand_ins)
                total += mass * np.exp(mean_and_scales(point, data, q, log_g, frequency)[0] + discrepancy)
            assert found.item_gap_nats[d, q] == pytest.approx(np.log(total), abs=1e-6)
    np.testing.assert_allclose(found.gap_nats, found.item_gap_nats.mean(axis=1))


def test_never_drawn_mass_has_the_mean_of_exp():
    data = belief_data(small_study(), "weak")
    alone = data.tail_item.size and np.bincount(data.tail_item, minlength=data.item.size).argmax()
    posterior = draws(data.item.size, data.item, 0.8, n_draws=4000)
    for name in ("A", "zeta", "xi", "b", "b2", "d", "t_b", "t_d", "delta"):
        posterior[name] = xr.zeros_like(posterior[name])
    posterior["ga"] = xr.full_like(posterior["ga"], 0.2)
    found = np.exp(belief_gap(posterior, data, np.random.default_rng(1)).item_gap_nats[:, alone]).mean()
    mean_exp = np.exp(log_mean_exp(np.array(0.8 * np.exp(0.2)), np.array(0.8 * np.exp(-0.2))))
    mine = data.pair_item == alone
    wanted = np.exp(data.target_log_g[alone]) + np.exp(data.pair_log_g[mine] + data.pair_lower[mine]).sum()
    wanted += mean_exp * (np.exp(data.rest_log_g[data.rest_item == alone]).sum() + data.unseen_mass[alone])
    assert found == pytest.approx(wanted, rel=0.02)


def test_all_tokens_asked_gives_the_exact_gap():
    study = small_study(n_candidates=400)
    responses = study.isel(response=np.zeros(6 * 400, dtype=int))
    responses["response_item"] = ("response", np.repeat(study["item"].values, 400))
    responses["response_candidate"] = ("response", np.tile(np.arange(400), 6))
    data = belief_data(responses, "weak")
    assert data.rest_item.size == 0
    found = belief_gap(draws(6, data.item, 0.5), data, np.random.default_rng(0))
    truth = (study["target_logprob"].sel(model="gen") - study["target_logprob"].sel(model="weak")).values
    whole = data.unseen_mass < 1e-9
    assert whole.any()
    np.testing.assert_allclose(
        found.item_gap_nats[:, whole], np.broadcast_to(truth[whole], (10, whole.sum())), atol=1e-6
    )


def test_chunks_do_not_matter_for_the_known_part_and_rounded_answers_stay_in_their_boxes():
    data = belief_data(small_study(), "weak", "interface")
    posterior = draws(data.item.size, data.item, 0.5, n_draws=50)
    gap = belief_gap(posterior, data, np.random.default_rng(0), max_cells=50)
    known = np.exp(data.target_log_g)
    np.add.at(known, data.pair_item, np.exp(data.pair_log_g + data.pair_lower))
    assert (gap.item_gap_nats >= np.log(known) - 1e-9).all()
    assert np.isfinite(gap.item_gap_nats).all()


def test_a_posterior_of_other_items_is_refused():
    data = belief_data(small_study(), "weak")
    posterior = draws(data.item.size, data.item, 0.5)
    with pytest.raises(InputError, match="item"):
        belief_gap(posterior.assign_coords(item=data.item + 1), data, np.random.default_rng(0))
    with pytest.raises(InputError, match="zeta"):
        belief_gap(posterior.drop_vars("zeta"), data, np.random.default_rng(0))


SHORT = {"draws": 100, "tune": 150, "chains": 2, "cores": 1}


@pytest.mark.mcmc
def test_a_compiled_model_takes_other_answers_and_is_stored_without_loss(tmp_path):
    study = small_study()
    weak = belief_data(study, "weak", "interface")
    compiled = compile_belief(weak)
    first = sample(compiled, seed=1, **SHORT)
    again = sample(compiled, seed=1, **SHORT)
    np.testing.assert_allclose(first.posterior["A"], again.posterior["A"], rtol=1e-6, atol=1e-6)
    set_answers(compiled.model, belief_data(study, "gen", "interface"))
    other = sample(compiled, seed=1, **SHORT)
    assert not np.allclose(first.posterior["A"], other.posterior["A"])
    assert {"posterior", "sample_stats", "constant_data"} <= set(group_names(first))
    assert not [name for name in group(first, "posterior") if str(name).endswith("__")]
    back = load_posterior(save_posterior(first, tmp_path / "fit.nc"))
    assert set(group_names(back)) == set(group_names(first))
    for name in group_names(first):
        xr.testing.assert_identical(group(back, name).drop_attrs(), group(first, name).drop_attrs())
    with pytest.raises(InputError, match="does not exist"):
        load_posterior(tmp_path / "other.nc")
    with pytest.raises(InputError, match=r"\.nc"):
        save_posterior(first, tmp_path / "fit.txt")


@pytest.mark.parametrize(("setting", "value"), [("sampler", "gibbs"), ("draws", 0), ("target_accept", 1.0)])
def test_wrong_settings(setting, value):
    with pytest.raises(InputError, match=setting):
        sample(belief_model(belief_data(small_study(), "weak")), **{setting: value})


def test_intervals_are_asked_for_by_probability_and_kind():
    x = np.random.default_rng(0).exponential(size=20_000)
    np.testing.assert_allclose(interval(x, probability=0.9, kind="eti"), (0.051, 3.0), atol=0.1)
    np.testing.assert_allclose(interval(x, probability=0.9, kind="hdi"), (0.0, 2.3), atol=0.1)
    with pytest.raises(InputError, match="kind"):
        interval(x, probability=0.9, kind="other")  # type: ignore[arg-type]
