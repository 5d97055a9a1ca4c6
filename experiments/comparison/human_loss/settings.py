"""Settings of human loss."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shannon_game.estimators.comparison import rounding_scheme
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.comparison.estimates import ComparisonSettings
from shannon_game.experiments.harness.bayes import PosteriorSettings, SamplerSettings
from shannon_game.inference.comparison.participant_fit import REPORTED
from shannon_game.inference.posterior.thresholds import GateThresholds
from shannon_game.inference.settings import Names, Positive, Probability, Settings, Text, numbers_of
from shannon_game.models import ParticipantPriors


class Top1Settings(Settings):
    """The share of people's most probable words that are right, as a soft constraint in rows of their own."""

    rate: Probability | None = None
    """Measured share; null only reports what the model implies. In the game of guessing the next token people scored
    0.286 on text like that of the comparison game (section 3 of its report)."""
    se: Positive = 0.06
    """How far the items of the study may be from it."""


class CurveSettings(Settings):
    """Assumed scales for which the gap is drawn, evenly spaced in their logarithm."""

    low: Positive = 0.1
    """The smallest."""
    high: Positive = 2.0
    """The largest."""
    points: Annotated[int, Field(ge=2)] = 25
    """How many."""

    @model_validator(mode="after")
    def _ascends(self) -> CurveSettings:
        if self.low >= self.high:
            raise InputError(f"is {self.low}, should be below high, {self.high}", field="low")
        return self

    @property
    def k0(self) -> NDArray[np.float64]:
        """The scales."""
        return np.geomspace(self.low, self.high, self.points)


class HumanLossSettings(ComparisonSettings, PosteriorSettings):
    """Settings of :func:`~shannon_game.experiments.comparison.human_loss.experiment.human_loss`."""

    sampler: SamplerSettings = SamplerSettings(name="pymc", draws=120, tune=20, target_accept=0.8)
    """How PyMC's NUTS draws from the posteriors; no other package can."""
    gate: Annotated[GateThresholds, numbers_of(GateThresholds)] = REPORTED
    """What the gap and k0 must reach; the run ends with exit code 3 where a fit misses it (r_hat, ess_bulk, ess_tail,
    divergent, bfmi)."""
    anchor: Literal["answers", "outcomes", "assumed"] | None = None
    """Where the scale of people's belief comes from: their free answers, which token was true, or an assumption; null
    takes the free answers of a study that has them, else the outcomes."""
    k0: Annotated[float, Field(ge=0.05, le=20)] = 1.0
    """The typical slope of reports on the log-odds of the belief where it is assumed; 1: reports are right on average
    in log-odds."""
    objective: Literal["rank", "pair"] = "rank"
    """How the outcomes fix the scale: by all tokens shown on an item together, or pair by pair."""
    grid: str | None = None
    """Name of the rounding whose values participants could report; null takes the scale that a simulated design names,
    else those of ``rounding``."""
    leave_out: Literal["auto"] | Names = "auto"
    """Participants to leave out in a second analysis: ``auto`` takes those with nearly all answers at the ends of the
    scale where the others have few there; [] makes no second analysis."""
    people: Text | None = None
    """Formula of what ln slope, bias and ln noise of participants depend on, such as "age + expertise": variables of
    the study's responses that every participant has one value of; covariates.csv has their effects."""
    top1: Top1Settings = Top1Settings()
    """The measured top-1 rate."""
    curve: CurveSettings = CurveSettings()
    """Assumed scales for which the gap is drawn."""
    sensitivity: bool = True
    """Leave out every single participant, and halve and double the standard deviations of the priors."""
    priors: Annotated[ParticipantPriors, numbers_of(ParticipantPriors)] = ParticipantPriors()
    """Weak priors, only those to change (:class:`~shannon_game.models.comparison.participants.ParticipantPriors`)."""

    @model_validator(mode="after")
    def _grid_exists(self) -> HumanLossSettings:
        if self.grid is not None:
            rounding_scheme(self.grid)
        return self
