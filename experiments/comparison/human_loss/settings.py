"""Settings of human loss."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from estimators.errors import InputError
from experiments.comparison.belief import BeliefSettings
from experiments.comparison.estimates import ComparisonSettings
from experiments.harness.bayes import ChainSettings, PosteriorSettings, SamplerSettings
from inference.comparison.participant_fit import Anchor
from inference.settings import Names, Positive, Probability, Settings, numbers_of
from models.comparison.belief import BeliefPriors
from models.comparison.participants import ParticipantPriors

__all__ = ["CurveSettings", "HumanLossSettings", "Top1Settings"]


class Top1Settings(Settings):
    """The share of people's most probable words that are right, as a soft constraint in rows of their own."""

    rate: Probability | None = None
    """Measured share; null only reports what the model implies. In the game of guessing the next token people scored
    .286 on text like that of the comparison game (section 3 of its report)."""
    se: Positive = 0.06
    """How far the items of the study may be from it."""


class CurveSettings(Settings):
    """Assumed scales for which the gap is drawn."""

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
        """The scales, evenly spaced in their logarithm."""
        return np.geomspace(self.low, self.high, self.points)


class HumanLossSettings(ComparisonSettings, PosteriorSettings):
    """Settings of :func:`~experiments.comparison.human_loss.experiment.human_loss`."""

    sampler: SamplerSettings = SamplerSettings(name="hmc", draws=4000, tune=500, target_accept=0.8)
    """What draws from the posterior of the participants; its name and cores hold for every fit."""
    player_sampler: ChainSettings = ChainSettings(draws=2500, tune=500, target_accept=0.8)
    """Chains of the fits to language models as players."""
    short_sampler: ChainSettings = ChainSettings(draws=400, tune=400, chains=2, target_accept=0.8)
    """Chains of the fits of the sensitivity analysis."""
    anchor: Literal["outcomes", "assumed"] = "outcomes"
    """Where the scale of the participants' belief comes from: which token was true, or an assumption."""
    k0: Annotated[float, Field(ge=0.05, le=20)] = 1.0
    """The typical slope of reports on the log-odds of the belief where it is assumed; 1: reports are right on average
    in log-odds."""
    objective: Literal["rank", "pair"] = "rank"
    """How the outcomes fix the scale: by all tokens shown on an item together, or pair by pair."""
    grid: str | None = None
    """Name of the rounding whose values participants could report; null takes those of ``rounding``."""
    leave_out: Literal["auto"] | Names = "auto"
    """Participants to leave out in a second analysis: ``auto`` takes those with nearly all answers at the ends of the
    scale where the others have few there; [] makes no second analysis."""
    top1: Top1Settings = Top1Settings()
    """The measured top-1 rate."""
    curve: CurveSettings = CurveSettings()
    """Assumed scales for which the gap is drawn."""
    n_draws: Annotated[int, Field(ge=100)] = 2000
    """Draws for which everything beside convergence is computed (gap, curve, top-1 rate, tokens never drawn)."""
    sensitivity: bool = True
    """Leave out every single participant, halve and double the scales of the priors."""
    max_refits: Annotated[int, Field(ge=0)] = 3
    """Of the participants whose importance weights are no good, how many are left out by a new, short fit; the worst
    first."""
    n_simulated: Annotated[int, Field(ge=0)] = 5
    """How often people are simulated who report as the participants do and believe what the weakest of the players
    believes; their posterior, by short fits, has the bias and the noise that the participants' has. 0: never."""
    save_posterior: bool = True
    """Write the posteriors of the participant model to posterior_*.nc."""
    priors: Annotated[ParticipantPriors, numbers_of(ParticipantPriors)] = ParticipantPriors()
    """Weak priors of the participant model, only those to change
    (:class:`~models.comparison.participants.ParticipantPriors`)."""
    player_priors: Annotated[BeliefPriors, numbers_of(BeliefPriors)] = BeliefPriors()
    """Weak priors of the belief model for the language models, only those to change
    (:class:`~models.comparison.belief.BeliefPriors`)."""

    @property
    def anchors(self) -> tuple[Anchor, Anchor]:
        """The one asked for, and the one that assumes the scale; they can be the same."""
        assumed = Anchor("assumed", k0=float(self.k0))
        return assumed if self.anchor == "assumed" else Anchor("outcomes", objective=self.objective), assumed

    @property
    def of_players(self) -> BeliefSettings:
        """Settings for the language models as players."""
        shared = set(HumanLossSettings.model_fields) & set(BeliefSettings.model_fields)
        own = {
            "sampler": self.sampler.with_chains(self.player_sampler),
            "priors": self.player_priors,
            "save_posterior": False,
        }
        return BeliefSettings(**{name: getattr(self, name) for name in shared} | own)
