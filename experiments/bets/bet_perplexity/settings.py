"""Settings of the experiment on bets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shannon_game.estimators.bets.calibration import STAKE_EDGES
from shannon_game.experiments.harness.bayes import PosteriorSettings, SamplerSettings
from shannon_game.inference.settings import Count, OneOrMoreNames, numbers_of
from shannon_game.models.bets.recalibration_priors import RecalibrationPriors


class BetsSettings(PosteriorSettings):
    """Settings of :func:`~shannon_game.experiments.bets.bet_perplexity.experiment.bet_perplexity`."""

    back_offs: OneOrMoreNames | None = None
    """What spreads the stake on anything else over words not named, the main one first: generator, any model of the
    study, uniform. null takes all models, the generator first, and uniform where the vocabulary's size is known."""
    vocab_size: Count | None = None
    """Words of the vocabulary, for uniform and for Shannon's upper bound; null takes that of a simulated study."""
    zero: Literal["refuse", "count"] = "refuse"
    """Answers that put nothing on what came, whose loss is infinite: refuse them, or leave them out of means and count
    them. The recalibration takes them either way."""
    edges: tuple[Annotated[float, Field(ge=0, le=1)], ...] = STAKE_EDGES
    """Edges of the bins of stakes, rising from 0 to 1."""
    posterior: bool = True
    """Recalibrate the stakes of every participant (extra bayes); false: means and standard errors only, in seconds."""
    mix: Literal["cells", "back_off"] = "cells"
    """What recalibration mixes with stakes: cells, the same for every word named and anything else; or what the main
    back-off gives them, so that the loss is of people and the model together."""
    priors: Annotated[RecalibrationPriors, numbers_of(RecalibrationPriors)] = RecalibrationPriors()
    """Scales of the priors; only those to change."""
    sampler: SamplerSettings = SamplerSettings(draws=1000, tune=1000)
    """What draws from the posterior."""
