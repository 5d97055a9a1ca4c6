r"""How often people guess the next token: participants, texts, context and practice in one hierarchical model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
from numpy.typing import NDArray

from shannon_game.models.guesses.accuracy_data import AccuracyData
from shannon_game.models.guesses.accuracy_priors import AccuracyPriors

_TYPICAL_SPREAD = 0.2  # of log-odds; only the sampler's coordinates depend on it


def accuracy_model(data: AccuracyData, priors: AccuracyPriors | None = None) -> pm.Model:
    """Build the model of right and wrong guesses; docs/mathematics/guesses_ranks_bets.md has it.

    Practice and context must be in the model together: people begin with the first tokens of their first text, where
    nobody can know what comes. A random effect of the single position is not: nearly every position was seen by
    one participant, so that it could not be told from the chance of a single guess (a Bernoulli variable has no
    other variance).

    Returns
    -------
    pymc.Model
        Dims ``participant``, ``document``, ``band``, ``row``; observed variable ``hits``. Population: ``intercept``,
        ``practice_mean``, ``ability_spread``, ``practice_spread``, ``document_spread``, ``context_step`` (and
        ``surprisal_slope``). Effects: ``ability``, ``practice`` (participant; the latter with its mean),
        ``document_effect``, ``context_effect``.

    Examples
    --------
    >>> model = models.accuracy_model(models.accuracy_data(guesses.examples.guess_study()))
    >>> model.named_vars_to_dims["ability"], model.named_vars_to_dims["hits"]
    (('participant',), ('row',))
    """
    p = priors or AccuracyPriors()
    coords = {"participant": data.participant, "document": data.document, "band": data.band}
    with pm.Model(coords={**coords, "row": np.arange(data.n.size)}) as model:
        person, place = pm.Data("person", data.person, dims="row"), pm.Data("place", data.place, dims="row")
        context, amount = pm.Data("context", data.context, dims="row"), pm.Data("amount", data.practice, dims="row")
        n = pm.Data("n", data.n, dims="row")
        intercept = pm.Normal("intercept", p.intercept_mean, p.intercept)
        of_person, of_place = _information(data)
        ability = _spread_effect("ability", (p.ability_spread, p.log_spread), "participant", of_person)
        document = _spread_effect(
            "document_effect", (p.document_spread, p.log_spread), "document", of_place, spread="document_spread"
        )
        practice_mean = pm.Normal("practice_mean", 0, p.practice)
        practice = _spread_effect("practice", (p.practice_spread, p.log_spread), "participant", mean=practice_mean)
        logit: Any = intercept + ability[person] + practice[person] * amount + document[place]
        if data.band.size > 1:
            logit = logit + _walk(data, p)[context]
        if data.surprisal is not None:
            slope = pm.Normal("surprisal_slope", p.surprisal_mean, p.surprisal)
            logit = logit + slope * pm.Data("surprisal", data.surprisal, dims="row")
        pm.Binomial("hits", n=n, logit_p=logit, observed=data.hits, dims="row")
    return model


def _information(data: AccuracyData) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How much the guesses say of each participant and document, as precisions of log-odds, roughly."""
    cell, row = np.unique(np.stack([data.person, data.place]), axis=1, return_inverse=True)
    precise = 1 / (1 / (0.2 * np.bincount(row.ravel(), weights=data.n)) + _TYPICAL_SPREAD**2)
    sizes = data.participant.size, data.document.size
    person, place = (
        np.bincount(at, weights=precise, minlength=n).astype(float) for at, n in zip(cell, sizes, strict=True)
    )
    return person, place


def _spread_effect(
    name: str,
    prior: tuple[float, float],
    dim: str,
    information: NDArray[np.float64] | None = None,
    *,
    spread: str | None = None,
    mean: Any = 0.0,
) -> Any:
    """Normal effects around `mean`, with a log-normal spread of a median and a standard deviation of the logarithm."""
    sd = pm.LogNormal(spread or f"{name}_spread", np.log(prior[0]), prior[1])
    if information is None:
        unit, step = pm.Normal(f"{name}_unit", 0, 1, dims=dim), sd
    else:
        share = information / (information + 1 / _TYPICAL_SPREAD**2)
        centred = pm.Data(f"{name}_centred", share, dims=dim)
        unit, step = pm.Normal(f"{name}_unit", 0, sd**centred, dims=dim), sd ** (1 - centred)
    return pm.Deterministic(name, mean + step * unit, dims=dim)


def _walk(data: AccuracyData, p: AccuracyPriors) -> Any:
    """Random walk over bands, around its mean over the guesses."""
    step = pm.HalfNormal("context_step", p.context_step)
    unit = pm.Normal("context_unit", 0, 1, shape=data.band.size - 1)
    # a sum of steps as a matrix: from the first band up to each, minus the same for the average guess
    upward = np.tril(np.ones((data.band.size, data.band.size - 1)), k=-1)
    effect = step * ((upward - data.band_share @ upward) * unit).sum(axis=1)
    return pm.Deterministic("context_effect", effect, dims="band")
