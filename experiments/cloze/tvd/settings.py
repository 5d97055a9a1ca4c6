"""Settings of ``+exp=tvd``."""

from __future__ import annotations

from shannon_game.experiments.cloze.settings import OracleSettings
from shannon_game.experiments.harness.bayes import PosteriorSettings, SamplerSettings
from shannon_game.inference.settings import Count, Settings


class BayesianTvdSettings(Settings):
    """The Bayesian TVD, on request: needs the extra bayes, minutes a player."""

    n_contexts: Count | None = None
    """Contexts drawn at random for each player, such as 40; null for no Bayesian TVD."""
    more_draws: Count = 4
    """What misses the gate is sampled again with so many times the draws (1: never)."""


class TvdSettings(OracleSettings, PosteriorSettings):
    """Settings of :func:`tvd`."""

    sampler: SamplerSettings = SamplerSettings(name="hmc", draws=4000, tune=1000, target_accept=0.9)
    """What draws from the posterior of the Bayesian TVD."""
    bayes: BayesianTvdSettings = BayesianTvdSettings()
    """The Bayesian TVD."""
