"""Every model gives a posterior with all groups; a likelihood beside the program is that of its reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytest

from shannon_game import inference, models
from shannon_game.estimators.cloze.examples import cloze_study
from shannon_game.estimators.cloze.study_words import study_words
from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.guesses.examples import guess_study
from shannon_game.estimators.rankings.examples import ranking_study
from shannon_game.inference.posterior.arviz_adapter import group, group_names
from shannon_game.models.cloze.ard_columns import measured_error

GROUPS = {
    *("posterior", "sample_stats", "log_likelihood", "posterior_predictive"),
    *("prior", "prior_predictive", "observed_data", "constant_data"),
}


@cache
def data_of(name: str) -> Any:
    kind = name.partition(" ")[0]
    if kind == "calibration":
        return models.favoured_outcomes(comparison_study())
    if kind == "accuracy":
        return models.accuracy_data(guess_study())
    if kind == "ranks":
        return models.rank_data(ranking_study(), ranking_study()["reference_rank"], 3)
    if kind == "ard":
        columns = models.clean_columns(
            cloze_study(),
            ["mixture"],
            ("human_entropy", "word_num"),
            rng=np.random.default_rng(0),
            target_answers=10,
            oracle_answers=5,
        )
        return models.ard_data(
            columns.target,
            columns.predictors,
            text=columns.text,
            item=columns.item,
            measured=measured_error(columns, ["human_entropy"]),
        )
    none = WORD_RULES["none"]
    words = study_words(cloze_study(), human=none, model=none, corpus=none)
    return models.word_pair_data(words.answers(), words.models["mixture"].counts)


BUILDERS: dict[str, Callable[[Any], pm.Model]] = {
    "calibration llo": lambda data: models.calibration_model(data, "llo"),
    "calibration beta": lambda data: models.calibration_model(data, "beta"),
    "accuracy": models.accuracy_model,
    "ard": models.ard_model,
    "ranks": models.rank_slope_model,
    "word_pairs": models.word_pair_model,
}


@cache
def model_of(name: str) -> pm.Model:
    return BUILDERS[name](data_of(name))


@pytest.mark.parametrize("name", BUILDERS)
def test_a_posterior_has_all_groups(name: str) -> None:
    model = model_of(name)
    idata = inference.stand_in_posterior(model, n_draws=3)
    before = group(idata, "posterior").copy()
    # one evaluation each is not worth a compiler
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        assert inference.complete(idata, model, seed=1, n_prior=5, n_predictive=4) is idata
    assert set(group_names(idata)) >= GROUPS
    assert before.identical(group(idata, "posterior"))
    observed = group(idata, "observed_data")
    assert observed.data_vars
    assert set(group(idata, "posterior_predictive")) == set(group(idata, "prior_predictive")) == set(observed)
    for variable, values in observed.items():
        assert not [dim for dim in values.dims if "_dim_" in dim]
        for predictive, shape in (("posterior_predictive", (2, 2)), ("prior_predictive", (1, 5))):
            drawn = group(idata, predictive)[variable]
            assert drawn.dims == ("chain", "draw", *values.dims)
            assert drawn.shape == (*shape, *values.shape)
            assert np.isfinite(drawn).all()
            assert drawn.std() > 0
    for values in group(idata, "log_likelihood").values():
        assert values.shape[:2] == (2, 3)
        assert values.dims[:2] == ("chain", "draw")
        assert not [dim for dim in values.dims if "_dim_" in dim]
        assert np.isfinite(values).all()
    assert {rv.name for rv in model.free_RVs} - set(group(idata, "prior")) <= {"scale", "unit"}


def test_simulated_word_pairs_have_the_sizes_and_repeats_of_the_model() -> None:
    """The mean number of shared answers of the simulator against the exact two-point moments of the process."""
    rng = np.random.default_rng(0)
    # shared words only, alike on both sides: a normalised generalised gamma process with discount d and mass M
    theta = np.tile([[1.0], [-30.0], [-30.0], [0.0], [0.0], [-30.0]], 4000)
    ones = np.ones(4000)
    data = models.cloze.tvd.simulate_with_sums(theta, ones, ones, rng)[0]
    same = (data.a * data.b * data.words).sum() / 4000
    # P(two answers agree) = integral of u E[sum z^2 e^{-u S}] du
    u = np.linspace(0, 400, 400_001)
    mass, d = np.e, 0.5
    psi = mass * np.sqrt(np.pi) / d * ((1 + u) ** d - 1)
    wanted = np.trapezoid(u * mass * np.sqrt(np.pi) * (1 - d) * (1 + u) ** (d - 2) * np.exp(-psi), u)
    assert same == pytest.approx(wanted, abs=4 * np.sqrt(wanted * (1 - wanted) / 4000))
