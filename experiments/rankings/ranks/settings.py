"""Settings of the experiment on ranks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shannon_game.experiments.harness.bayes import PosteriorSettings, SamplerSettings
from shannon_game.experiments.rankings.settings import ListSettings
from shannon_game.inference.settings import Count, numbers_of
from shannon_game.models.rankings.slope_priors import RankPriors


class RanksSettings(PosteriorSettings, ListSettings):
    """Settings of :func:`~shannon_game.experiments.rankings.ranks.experiment.ranks`."""

    censoring: Literal["below_last", "bound", "uniform", "exact"] = "below_last"
    """Probability of a token outside the list: below_last (the thesis: the last one's, times exp(-offset_nats)),
    bound (the most that the list leaves), uniform (what is left, shared by vocab_size), exact (a whole vocabulary)."""
    offset_nats: float = 3.0
    """See below_last."""
    vocab_size: Count | None = None
    """See uniform."""
    posterior: bool = True
    """Fit the regression (extra bayes), about a minute; false: scores only, in seconds."""
    score: Literal["average", "linear", "reciprocal", "top_1"] = "average"
    """Score in which slopes and power are told; average is of linear, reciprocal and two exponential ones."""
    n_draws: Count = 400
    """Posterior draws behind predictions and power."""
    power_windows: Annotated[tuple[Annotated[int, Field(ge=3)], ...], Field(min_length=1)] = (
        *(8, 16, 32, 64, 128, 256, 512),
        1024,
    )
    """Windows of a new study, in all, spread evenly over the lengths."""
    power_tokens: Count | None = None
    """Tokens a window of a new study; null: as many as here."""
    priors: Annotated[RankPriors, numbers_of(RankPriors)] = RankPriors()
    """Scales of the priors; only those to change."""
    sampler: SamplerSettings = SamplerSettings(draws=1500, tune=800)
    """What draws from the posterior."""
