r"""What stakes are worth: every participant's are raised to a power and mixed with a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from shannon_game.models.bets.recalibration_data import RecalibrationData
from shannon_game.models.bets.recalibration_priors import RecalibrationPriors


def recalibration_model(data: RecalibrationData, priors: RecalibrationPriors | None = None) -> pm.Model:
    """Build the model of what comes, given stakes; docs/mathematics/guesses_ranks_bets.md has it.

    An exponent below 1 says that stakes are too bold, above 1 too timid; the share mixed in says how often what comes
    has nothing to do with them. With the same mixture for every cell (``mix="cells"``) nothing is mixed in that the
    participant did not know. Where the target was not named, the back-off's share of it among unnamed words is a
    constant, and no part of the likelihood.

    Returns
    -------
    pymc.Model
        Dims ``participant``, ``answer``, ``cell``; observed variable ``came``. Population: ``exponent_mean`` (of ln k),
        ``exponent_spread``, ``mixing_mean`` (log-odds), ``mixing_spread``; by participant: ``log_exponent``,
        ``mixing_share``.

    Examples
    --------
    >>> model = models.recalibration_model(models.recalibration_data(bets.examples.bet_study()))
    >>> model.named_vars_to_dims["log_exponent"], model.named_vars_to_dims["came"]
    (('participant',), ('answer',))
    """
    p = priors or RecalibrationPriors()
    coords = {"participant": data.participant, "answer": data.response, "cell": np.arange(data.stake.shape[1])}
    with pm.Model(coords=coords) as model:
        person = pm.Data("person", data.person, dims="answer")
        mixed = pm.Data("mixed", data.mixed, dims=("answer", "cell"))
        staked = (data.stake > 0).astype(float)
        # the power of 0 is 0, and has no derivative that is a number: such cells are kept out of it
        log_stake = pm.Data("log_stake", np.log(np.where(staked > 0, data.stake, 1.0)), dims=("answer", "cell"))
        is_staked = pm.Data("is_staked", staked, dims=("answer", "cell"))
        log_exponent = _effect("log_exponent", (0.0, p.exponent), (p.exponent_spread, p.log_spread), "exponent")
        logit = _effect("mixing_logit", (p.mixing_mean, p.mixing), (p.mixing_spread, p.log_spread), "mixing")
        mixing = pm.Deterministic("mixing_share", pm.math.invlogit(logit), dims="participant")
        power = is_staked * pt.exp(pt.exp(log_exponent)[person][:, None] * log_stake)
        share = mixing[person][:, None]
        probability = (1 - share) * power / power.sum(axis=1, keepdims=True) + share * mixed
        pm.Categorical("came", p=probability, observed=data.came, dims="answer")
    return model


def _effect(name: str, mean: tuple[float, float], spread: tuple[float, float], prefix: str) -> Any:
    """Normal effects of participants, non-centred: most have tens of answers, each of which says little."""
    middle = pm.Normal(f"{prefix}_mean", *mean)
    sd = pm.LogNormal(f"{prefix}_spread", np.log(spread[0]), spread[1])
    unit = pm.Normal(f"{prefix}_unit", 0, 1, dims="participant")
    return pm.Deterministic(name, middle + sd * unit, dims="participant")
