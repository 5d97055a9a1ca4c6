"""Draws to try things on without a sampler."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import xarray as xr
from pytensor.graph.replace import clone_replace

from inference.posterior.arviz_adapter import InferenceData, from_groups

__all__ = ["stand_in_posterior"]


def stand_in_posterior(model: pm.Model, *, n_draws: int = 8, seed: int = 0) -> InferenceData:
    """Draw the parameters of a model from their prior and pass the draws off as two chains of a posterior.

    For examples and tests: it has the variables and dims of a real posterior, and takes about a second.

    Parameters
    ----------
    model : pymc.Model
    n_draws : int
        Of each chain.
    seed : int

    Returns
    -------
    arviz.InferenceData
        Groups posterior and sample_stats.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.guesses.examples import guess_study
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
    variables = {}
    for name, values in zip(names, drawn, strict=True):
        own = model.named_vars_to_dims.get(name) or [f"{name}_dim_{axis}" for axis in range(values.ndim - 1)]
        variables[name] = (("chain", "draw", *own), values.reshape(2, n_draws, *values.shape[1:]))
    used = {dim for dims, _ in variables.values() for dim in dims}
    coords = {dim: np.asarray(labels) for dim, labels in model.coords.items() if dim in used and labels is not None}
    chains = {"chain": np.arange(2), "draw": np.arange(n_draws)}
    energy = np.random.default_rng(seed).normal(size=(2, n_draws))
    stats = {"diverging": (("chain", "draw"), energy > np.inf), "energy": (("chain", "draw"), energy)}
    posterior = xr.Dataset(variables, coords={**chains, **coords})
    return from_groups({"posterior": posterior, "sample_stats": xr.Dataset(stats, coords=chains)})
