"""Settings of the accuracy experiment."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shannon_game.experiments.harness.bayes import PosteriorSettings, SamplerSettings
from shannon_game.experiments.harness.text_models import TextSettings
from shannon_game.inference.settings import Count, Counts, Names, Probability, numbers_of
from shannon_game.models.guesses.accuracy_priors import AccuracyPriors


class AccuracySettings(PosteriorSettings, TextSettings):
    players: Names | None = None
    """Language models of the study to show; null takes all."""
    min_answers: Count = 50
    """Guesses that a participant needs for the histogram, and to be a candidate for the best one."""
    interval: Probability = 0.9
    """Probability inside every interval."""
    n_replicates: Count = 2000
    """Replicates of the bootstrap over participants and documents."""
    ensemble: Counts | None = None
    """Numbers of people whose most frequent guess is scored, such as [1,5,20], in contexts where so many guessed; null
    takes 1, 3, 5, 10, 20, 50 and 100 as far as half of the contexts with several people have them."""
    practice_starts: tuple[Annotated[int, Field(ge=0)], ...] = (0, 10, 30, 100, 300, 1000)
    """First numbers of earlier guesses of the bins of the practice curve."""
    posterior: bool = True
    """Fit the model of what people differ by (extra bayes); false: shares and bootstrap only, in seconds."""
    tokens: Literal["visible", "word"] = "visible"
    """Tokens that the posterior is of: visible (all in the study), or word."""
    surprisal: str | None = None
    """Language model of the study whose surprisal of the target is a predictor; null for none."""
    n_predictive: Count = 400
    """Posterior draws behind the predicted hits."""
    priors: Annotated[AccuracyPriors, numbers_of(AccuracyPriors)] = AccuracyPriors()
    """Scales of the priors; only those to change."""
    # on the public game the worst effective sample size is then two to three times the gate's
    sampler: SamplerSettings = SamplerSettings(draws=2000, tune=1000)
    """What draws from the posterior."""
    answers: Literal["tokens", "text"] = "tokens"
    """How language models that run here play: tokens (the most probable token), or text (asked for the next word in
    words, as one behind an endpoint always is)."""
    live_guesses: Count | None = 2500
    """Guesses, drawn at random, at whose positions language models that run play; null takes all."""
    items_per_batch: Count = 64
    """Most positions of a batch: what a killed run loses."""
