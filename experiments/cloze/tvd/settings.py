"""Settings of ``+exp=tvd``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shannon_game.estimators.cloze import DISTANCES
from shannon_game.experiments.cloze.live_words import LiveWordSettings
from shannon_game.experiments.cloze.settings import OracleSettings
from shannon_game.experiments.harness.bayes import PosteriorSettings, SamplerSettings
from shannon_game.experiments.harness.language_models import Engines
from shannon_game.inference.settings import Count, Counts, Names, Settings, UserPath, one_or_more


class BayesianTvdSettings(Settings):
    """The Bayesian TVD, on request: needs the extra bayes, minutes per player."""

    n_contexts: Count | None = None
    """Contexts drawn at random for each player, such as 40; null for no Bayesian TVD."""
    more_draws: Count = 4
    """What misses the gate is sampled again with so many times the draws, then with twice as many (1: never), and after
    divergent draws with half the distance of target_accept to 1."""


class TvdSettings(OracleSettings, LiveWordSettings, PosteriorSettings):
    """Settings of :func:`~shannon_game.experiments.cloze.tvd.experiment.tvd`; one of its ways at most."""

    models: Engines = Field(default_factory=dict)
    """Take the exact probabilities of these live models instead of stored words; on the command line model=[smollm2]
    (extra lm)."""
    items_per_batch: Count = 32
    """Most items of a batch: what a killed run loses."""
    n: Counts | None = None
    """Compare these numbers of a model's samples, such as [10,20,40,100], with all of them."""
    n_repeats: Count = 5
    """Draws of each of these sizes."""
    ensemble: Counts | None = None
    """Score the most frequent word of so many people, such as [1,5,20], and of everybody: how often it is the word of
    the text, and another person's answer."""
    item: Annotated[Names, Field(min_length=1)] | None = None
    """Show the words of these contexts: the study's own ids, "TEXT:WORD", "TEXT" for every context of a text, a list of
    them, or disputed for the three on which people disagree most."""
    n_words: Count = 15
    """Most probable words of each player that are shown."""
    distance: Annotated[tuple[Literal[tuple(DISTANCES)], ...], one_or_more] = ()  # type: ignore[valid-type]
    """Further distances of the samples, a column distance_NAME each."""
    vectors: UserPath | None = None
    """File of word vectors, a word and its numbers a line (word2vec, GloVe, fastText): adds the energy distance."""
    sampler: SamplerSettings = SamplerSettings(draws=1000, tune=1000, target_accept=0.9)
    """What draws from the posterior of the Bayesian TVD."""
    bayes: BayesianTvdSettings = BayesianTvdSettings()
    """The Bayesian TVD."""
