"""Settings of the experiment on free answers and reports."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from estimators.comparison import rounding_scheme
from experiments.comparison.estimates import ComparisonSettings, RoundingSettings
from experiments.harness.bayes import PosteriorSettings, SamplerSettings
from inference.settings import numbers_of
from models.comparison.free_answers import FreeAnswerPriors
from models.comparison.participants import ParticipantPriors

__all__ = ["FreeAnswersSettings"]


class FreeAnswersSettings(ComparisonSettings, PosteriorSettings):
    """Settings of :func:`~experiments.comparison.free_answers.experiment.free_answers`."""

    sampler: SamplerSettings = SamplerSettings(draws=1500, tune=1500, target_accept=0.95)
    """What draws from the posterior."""
    grid: str = "slider"
    """Name of the rounding whose values participants could report (slider, slider_wide, choice, interface, ...)."""
    rounding: RoundingSettings = RoundingSettings(name="none")
    """What reports are rounded to before the bridge and equation 5 value them; the model takes them as they are."""
    max_at_ends: Annotated[float, Field(ge=0, le=1)] = 0.3
    """A larger share of comparisons at the ends of the scale gives a warning: an end only bounds a ratio."""
    priors: Annotated[FreeAnswerPriors, numbers_of(FreeAnswerPriors)] = FreeAnswerPriors()
    """Weak priors of the belief, only those to change (:class:`~models.comparison.free_answers.FreeAnswerPriors`)."""
    people_priors: Annotated[ParticipantPriors, numbers_of(ParticipantPriors)] = ParticipantPriors()
    """Weak priors of the participants, only those to change
    (:class:`~models.comparison.participants.ParticipantPriors`)."""

    @model_validator(mode="after")
    def _grid_exists(self) -> FreeAnswersSettings:
        _ = rounding_scheme(self.grid)
        return self
