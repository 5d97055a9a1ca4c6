"""The relevance regression against densities written out row by row, its rows, and what users get wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.stats import kstest, norm, t

from shannon_game.estimators.cloze.simulation import ClozeSimulation, simulate_cloze_study
from shannon_game.estimators.cloze.study_words import study_words
from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.models.cloze.ard import ard_model
from shannon_game.models.cloze.ard_columns import _disjoint, clean_columns, measured_error
from shannon_game.models.cloze.ard_data import ArdData, Measured, ard_data, recording_limits
from shannon_game.models.cloze.ard_priors import ArdPriors
from tests.oracles.ard import censored_logit_normal, measured_and_true, ordered_beta

NONE = WORD_RULES["none"]
PREDICTORS = ("human_entropy", "model_entropy", "oracle_tvd", "word_num")


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    settings = ClozeSimulation(n_items=24, items_per_text=6, n_answers=40, vocab_size=100)
    return simulate_cloze_study(settings, np.random.default_rng(0))


def some_data(rng: np.random.Generator, *, n: int = 30, noisy: int = 2, ends: bool = True) -> ArdData:
    x = rng.normal(size=(n, 3)) @ np.array([[1, 0.5, 0.3], [0, 1, 0.4], [0, 0, 1]])
    target = rng.uniform(0.05, 0.95, n)
    if ends:
        target[:3] = 0, 1, 1
    root = rng.normal(size=(n, noisy, noisy)) * 0.3
    names = ("a", "b", "c")
    measured = (
        Measured(("c", "a", "b")[:noisy], root @ root.transpose(0, 2, 1) + 0.05 * np.eye(noisy)) if noisy else None
    )
    # labels in the order of the rows
    item = [f"i{number:03d}" for number in range(n)]
    text = [f"t{number % 4}" for number in range(n)]
    return ard_data(target, dict(zip(names, x.T, strict=True)), text=text, item=item, measured=measured)


def values_of(model: pm.Model, seed: int) -> dict[str, np.ndarray]:
    """Any values of the free variables, on their own scale."""
    draw = pm.draw(model.free_RVs, random_seed=seed)
    return {rv.name: np.asarray(value) for rv, value in zip(model.free_RVs, draw, strict=True)}


def at(model: pm.Model, outputs: list[Any], point: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Evaluate expressions of the model's variables at a point, observations as they are."""
    from pytensor import function
    from pytensor.graph.replace import clone_replace

    given = {model[name]: model[name].type(f"{name}_given") for name in point}
    seen = {rv: model.rvs_to_values[rv] for rv in model.observed_RVs}
    compiled = function(
        list(given.values()), clone_replace(outputs, {**given, **seen}), mode="FAST_COMPILE", on_unused_input="ignore"
    )
    return [np.asarray(value) for value in compiled(*(point[name] for name in point))]


def log_densities(model: pm.Model, point: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    inner = {}
    for rv in model.free_RVs:
        transform = model.rvs_to_transforms[rv]
        value = point[rv.name]
        key = model.rvs_to_values[rv].name
        inner[key] = value if transform is None else transform.forward(value, *rv.owner.inputs).eval()
    compiled = model.compile_logp(vars=model.observed_RVs, sum=False, jacobian=False, mode="FAST_COMPILE")
    return {rv.name: value for rv, value in zip(model.observed_RVs, compiled(inner), strict=True)}


@pytest.mark.parametrize("noisy", [1, 2, 3])
def test_measurements_and_true_values_are_the_joint_normal_s(noisy: int) -> None:
    data = some_data(np.random.default_rng(1), noisy=noisy)
    model = ard_model(data)
    point = values_of(model, 3)
    expected, mean, covariance = measured_and_true(data, point)
    found = log_densities(model, point)
    measured = sum(found[f"measured_{name}"].sum() for name in data.noisy)
    assert measured == pytest.approx(expected, rel=1e-8)
    # eta at unit deviates says mean and root of the conditional covariance
    weight = np.array([point["coefficient"][data.predictor.index(name)] for name in data.noisy])
    exact = [at for at, name in enumerate(data.predictor) if name not in data.noisy]
    rest = point["intercept"] + data.x[:, exact] @ point["coefficient"][exact]
    rest = rest + (point["text_spread"] * point["text_unit"])[data.text_of_row]
    for unit in (np.zeros_like(point["latent_unit"]), point["latent_unit"]):
        eta = at(model, [model["eta"]], {**point, "latent_unit": unit})[0]
        root = np.linalg.cholesky(covariance)
        truth = mean + np.einsum("ikm,mi->ik", root, unit)
        np.testing.assert_allclose(eta, rest + truth @ weight, rtol=1e-8)


@pytest.mark.parametrize("likelihood", ["beta", "logit_normal", "gaussian"])
def test_likelihoods_are_the_reference_s(likelihood: str) -> None:
    data = some_data(np.random.default_rng(2), noisy=0)
    model = ard_model(data, likelihood=likelihood)
    point = values_of(model, 5)
    eta = at(model, [model["eta"]], point)[0]
    if likelihood == "beta":
        shape = [float(point[name]) for name in ("concentration", "edge_low", "edge_high")]
        expected = [ordered_beta(y, e, *shape) for y, e in zip(data.target, eta, strict=True)]
    elif likelihood == "gaussian":
        expected = norm.logpdf(data.target, eta, point["noise"])
    else:
        limits = recording_limits(data.target)
        expected = [
            censored_logit_normal(y, e, float(point["noise"]), limits) for y, e in zip(data.target, eta, strict=True)
        ]
    np.testing.assert_allclose(log_densities(model, point)["target"], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("likelihood", ["beta", "logit_normal", "gaussian"])
def test_draws_follow_the_density(likelihood: str) -> None:
    """Shares of simulated targets below some values, against the density integrated; 20,000 draws, s.e. .0035."""
    data = some_data(np.random.default_rng(3), noisy=0, ends=likelihood != "gaussian")
    model = ard_model(data, likelihood=likelihood, priors=ArdPriors(coefficient=0.05))
    point = values_of(model, 11)
    point["coefficient"] = np.array([0.3, -0.2, 0.1])
    point["intercept"] = np.array(0.4)
    if likelihood == "beta":
        point |= {"concentration": np.array(6.0), "edge_low": np.array(2.5), "edge_high": np.array(2.0)}
    else:
        point["noise"] = np.array(0.8 if likelihood == "logit_normal" else 0.2)
    fixed = pm.do(model, {name: point[name] for name in point})
    drawn = pm.draw(fixed["target"], draws=700, random_seed=2).ravel()
    eta = at(model, [model["eta"]], point)[0]
    if likelihood == "gaussian":
        assert drawn.mean() == pytest.approx(eta.mean(), abs=0.006)
        assert (drawn - np.tile(eta, 700)).std() == pytest.approx(0.2, rel=0.02)
        return
    limits = recording_limits(data.target)

    def density(y: float) -> float:
        log = [
            ordered_beta(y, e, 6.0, 2.5, 2.0) if likelihood == "beta" else censored_logit_normal(y, e, 0.8, limits)
            for e in eta
        ]
        return float(np.exp(log).mean())

    first, last = (0.0, 1.0) if likelihood == "beta" else limits
    middle = first + (np.arange(150) + 0.5) / 150 * (0.5 - first)
    below = density(0.0) + sum(density(y) for y in middle) * (0.5 - first) / 150
    assert (drawn == 0).mean() == pytest.approx(density(0.0), abs=0.008)
    assert (drawn == 1).mean() == pytest.approx(density(1.0), abs=0.008)
    assert (drawn < 0.5).mean() == pytest.approx(below, abs=0.012)
    assert drawn[(drawn > 0) & (drawn < 1)].max() <= last
    assert ((drawn >= 0) & (drawn <= 1)).all()


def test_the_ard_prior_is_a_student_t() -> None:
    priors = ArdPriors(coefficient=0.3, coefficient_shape=2.0)
    model = ard_model(some_data(np.random.default_rng(4), noisy=0), priors=priors)
    drawn = pm.draw(model["coefficient"], draws=8000, random_seed=1).ravel()
    assert kstest(drawn, t(df=4, scale=0.3).cdf).pvalue > 0.001


def test_errors_are_in_units_of_the_standardised_predictors_in_their_order() -> None:
    predictors = {"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]}
    covariance = np.array([[[0.4, 0.1], [0.1, 0.3]]]) * np.arange(1, 4)[:, None, None]
    data = ard_data([0.1, 0.5, 0.9], predictors, text=["s", "t", "t"], measured=Measured(("b", "a"), covariance))
    assert data.noisy == ("a", "b")
    sd = np.std(list(predictors.values()), axis=1)
    np.testing.assert_allclose(data.error_covariance, covariance[:, ::-1, ::-1] / np.outer(sd, sd))


def test_clean_rows_come_from_disjoint_people(study: xr.Dataset) -> None:
    columns = clean_columns(study, ["mixture"], PREDICTORS, rng=np.random.default_rng(1))
    assert columns.target.shape == (24,)
    assert columns.covariance.shape == (24, 2, 2)
    answers = study_words(study, human=NONE, model=NONE, corpus=NONE).answers()
    parts = _disjoint(answers, 18, 18, np.random.default_rng(1))
    assert [set(part.totals) for part in parts] == [{18}, {18}]
    rest = answers.count.copy()
    for part in parts:
        at = {place: row for row, place in enumerate(zip(answers.context, answers.word, strict=True))}
        rest[[at[place] for place in zip(part.context, part.word, strict=True)]] -= part.count
    assert rest.min() >= 0


def test_rows_of_several_models_share_their_items(study: xr.Dataset) -> None:
    columns = clean_columns(study, ["mixture", "factors"], PREDICTORS, rng=np.random.default_rng(1))
    data = ard_data(
        columns.target,
        columns.predictors,
        text=columns.text,
        item=columns.item,
        player=columns.player,
        measured=measured_error(columns, ["human_entropy", "oracle_tvd"]),
    )
    assert data.groups == ("text", "item", "player")
    assert data.item.size == 24
    assert data.target.size == 48
    assert data.noisy == ("human_entropy", "oracle_tvd")
    some = columns.take(columns.text == "1")
    assert some.covariance.shape[0] == np.unique(some.item).size


@pytest.mark.parametrize("likelihood", ["beta", "gaussian"])
def test_the_horseshoe_is_bounded_by_its_slab(likelihood: str) -> None:
    model = ard_model(some_data(np.random.default_rng(4), noisy=0), prior="horseshoe", likelihood=likelihood)
    scale, slab = pm.draw([model["scale"], model["slab_variance"]], draws=500, random_seed=1)
    assert (scale <= np.sqrt(slab)[:, None] + 1e-12).all()
