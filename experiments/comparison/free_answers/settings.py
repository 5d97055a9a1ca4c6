"""Settings of the experiment on free answers and reports."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveFloat, model_validator

from estimators.comparison import rounding_scheme
from experiments.comparison.estimates import ComparisonSettings, RoundingSettings
from experiments.harness.bayes import PosteriorSettings, SamplerSettings
from inference.settings import Settings, numbers_of
from models.comparison.free_answers import FreeAnswerPriors
from models.comparison.participants import ParticipantPriors

__all__ = ["FreeAnswersSettings"]


class OtherGap(Settings):
    """A gap that was found by other means."""

    gap_nats: float
    """To the same generator."""
    se_nats: PositiveFloat
    """Its standard error."""


class FreeAnswersSettings(ComparisonSettings, PosteriorSettings):
    """Settings of :func:`~experiments.comparison.free_answers.experiment.free_answers`."""

    sampler: SamplerSettings = SamplerSettings(name="hmc", draws=2000, tune=1000, target_accept=0.8)
    """What draws from the posterior."""
    grid: str = "slider"
    """Name of the rounding whose values participants could report (slider, slider_wide, choice, interface, ...)."""
    rounding: RoundingSettings = RoundingSettings(name="none")
    """What reports are rounded to before the bridge and equation 5 value them; the model takes them as they are."""
    max_at_ends: Annotated[float, Field(ge=0, le=1)] = 0.3
    """A larger share of comparisons at the ends of the scale gives a warning: an end only bounds a ratio."""
    answer_exponent: PositiveFloat | tuple[PositiveFloat, PositiveFloat] = 1.0
    """tau, where free answers are draws of the tau-th power of belief: a number, or two between which ln tau is taken
    for uniform. Answers and reports alone cannot tell it."""
    other_gaps: dict[str, OtherGap] = Field(default_factory=dict)
    """People's gap by other means on such items, such as bets, to compare; by name."""
    priors: Annotated[FreeAnswerPriors, numbers_of(FreeAnswerPriors)] = FreeAnswerPriors()
    """Weak priors of the belief, only those to change (:class:`~models.comparison.free_answers.FreeAnswerPriors`)."""
    people_priors: Annotated[ParticipantPriors, numbers_of(ParticipantPriors)] = ParticipantPriors()
    """Weak priors of the participants, only those to change
    (:class:`~models.comparison.participants.ParticipantPriors`)."""

    @model_validator(mode="after")
    def _grid_exists(self) -> FreeAnswersSettings:
        _ = rounding_scheme(self.grid)
        if isinstance(self.answer_exponent, tuple) and self.answer_exponent[0] > self.answer_exponent[1]:
            raise ValueError(f"answer_exponent is {list(self.answer_exponent)}, the lower bound should come first")
        return self
