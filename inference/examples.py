"""Draws to try things on without a sampler."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace

from shannon_game.inference.posterior.arviz_adapter import InferenceData, from_draws
from shannon_game.inference.posterior.predictive import complete


def normal_model() -> pm.Model:
    """Four numbers from a normal of unknown mean and spread."""
    with pm.Model(coords={"row": range(4)}) as model:
        mean, spread = pm.Normal("mean", 0, 1), pm.HalfNormal("spread", 1)
        pm.Normal("y", mean, spread, observed=[0.1, -0.3, 0.4, 0.2], dims="row")
    return model


def normal_posterior() -> InferenceData:
    """All groups of a posterior of that model; the draws are from the prior."""
    model = normal_model()
    return complete(stand_in_posterior(model, n_draws=100), model, seed=1, n_prior=20, n_predictive=10)


def stand_in_posterior(model: pm.Model, *, n_draws: int = 8, seed: int = 0) -> InferenceData:
    """Draw parameters from their prior and pass them off as two chains of a posterior, for examples and tests.

    Examples
    --------
    >>> from shannon_game import inference, models
    >>> from shannon_game.estimators.guesses.examples import guess_study
    >>> model = models.accuracy_model(models.accuracy_data(guess_study()))
    >>> inference.stand_in_posterior(model).posterior["ability"].dims
    ('chain', 'draw', 'participant')
    """
    known = {rv: model.rvs_to_values[rv] for rv in model.observed_RVs}
    for rv in model.free_RVs:
        # an improper prior has no draws
        if isinstance(rv.owner.op, pm.Flat.rv_type):
            known[rv] = pt.zeros(rv.shape.eval())
    names = [variable.name for variable in (*model.free_RVs, *model.deterministics)]
    drawn = pm.draw(
        clone_replace([model[name] for name in names], known), 2 * n_draws, random_seed=seed, mode="FAST_COMPILE"
    )
    draws = {name: each.reshape(2, n_draws, *each.shape[1:]) for name, each in zip(names, drawn, strict=True)}
    energy = np.random.default_rng(seed).normal(size=(2, n_draws))
    return from_draws(model, draws, {"diverging": energy > np.inf, "energy": energy})
