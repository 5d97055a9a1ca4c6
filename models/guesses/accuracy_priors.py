"""Priors of the accuracy model; they need no sampler."""

from __future__ import annotations

from dataclasses import dataclass

from shannon_game.models.priors import check_priors


@dataclass(frozen=True)
class AccuracyPriors:
    """Scales of the priors of :func:`~shannon_game.models.guesses.accuracy.accuracy_model`, all on log-odds.

    Attributes
    ----------
    intercept_mean, intercept : float
        Normal for the typical participant in a typical text, at the study's mean practice and context: -1 is 27%.
    ability_spread, document_spread, practice_spread : float
        Medians of log-normals for the standard deviations over participants, documents, and participants' practice
        effects. People and texts do differ, so that zero is left out.
    log_spread : float
        Standard deviation of the logarithm of each: with 0.7, 90% within a factor of 3.2.
    practice : float
        Normal around 0 for what the first 1,000 guesses change in the typical participant.
    context_step : float
        Half-normal for the standard deviation of the steps from one length of context to its double.
    surprisal_mean, surprisal : float
        Normal for the change for each nat of the target's surprisal under a language model.
    """

    intercept_mean: float = -1.0
    intercept: float = 1.0
    ability_spread: float = 0.3
    document_spread: float = 0.3
    practice_spread: float = 0.15
    log_spread: float = 0.7
    practice: float = 0.5
    context_step: float = 0.3
    surprisal_mean: float = -0.5
    surprisal: float = 0.5

    def __post_init__(self) -> None:
        check_priors(self, "accuracy priors", any_sign=("intercept_mean", "surprisal_mean"))
