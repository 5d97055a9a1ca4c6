r"""Where the scale of people's belief comes from.

``answers``: free answers are draws of the belief, so that k0, the typical slope of reports on its log-odds, is a
parameter like the others.

``assumed``: k0 is a number somebody believes in; 1 says that reports are right on average in log-odds, as the estimator
of equation 5 does.

``outcomes`` (a *cut* posterior): which of the tokens came from the text is known, and so is the generator of the
others, so that these labels fix the temperature that makes the shared, de-noised belief fit them
(:func:`~shannon_game.inference.comparison.participant_gap.outcome_temperature`). They may not be added to the
likelihood of the reports, which is given which token is the target already. A first fit at an assumed k0 finds about
which scale is meant; the fit proper is made at that scale; every draw of it then gets its own temperature, with
Bayesian-bootstrap weights over items. What comes out is the loss of the shared belief at the temperature that best fits
which tokens were true, and the loss of that belief itself if people are calibrated in log-loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.inference.comparison.participant_gap import OBJECTIVES, SharedBelief, outcome_temperature

AnchorName = Literal["answers", "outcomes", "assumed"]
ANCHORS = get_args(AnchorName)
"""Where the scale of the belief comes from."""
SCALES = (0.05, 20.0)
"""Least and largest k0."""


class AnchorKind(NamedTuple):
    """Whether a fit is at one k0, whether outcomes give its draws a temperature, and how figure and report name it."""

    fixes_k0: bool
    of_outcomes: bool
    label: str
    rests_on: str


_CALIBRATED = "the assumption that the shared belief is calibrated, as which token was true fixes its scale"
KINDS: dict[str, AnchorKind] = {
    "answers": AnchorKind(False, False, "scale from free answers", "free answers as draws of that belief"),
    "outcomes": AnchorKind(True, True, "scale from outcomes", _CALIBRATED),
    "assumed": AnchorKind(True, False, "report slope {:g} assumed", "an assumed scale of reports"),
}


@dataclass(frozen=True)
class Anchor:
    """Where the scale comes from.

    Attributes
    ----------
    name : str
        One of :data:`ANCHORS`.
    k0 : float
        Typical slope of the reports, for ``assumed``; for ``outcomes`` the scale of the first fit.
    objective : str
        For ``outcomes``; one of :data:`~shannon_game.inference.comparison.participant_gap.OBJECTIVES`.
    """

    name: str = "outcomes"
    k0: float = 1.0
    objective: str = "rank"

    def __post_init__(self) -> None:
        if self.name not in ANCHORS:
            raise unknown_choice("anchor", self.name, ANCHORS)
        if self.objective not in OBJECTIVES:
            raise unknown_choice("objective of the outcome anchor", self.objective, OBJECTIVES)
        if not (np.isfinite(self.k0) and SCALES[0] <= self.k0 <= SCALES[1]):
            raise InputError(f"is {self.k0}, should be from {SCALES[0]} to {SCALES[1]}", source="anchor", field="k0")

    @property
    def kind(self) -> AnchorKind:
        """What depends on the name."""
        return KINDS[self.name]

    def temperature(self, belief: SharedBelief, rng: np.random.Generator) -> FloatArray:
        """Draw what log-ratios are multiplied by, (draw,)."""
        if not self.kind.of_outcomes:
            return np.ones(belief.n_draws)
        return outcome_temperature(belief, rng.exponential(size=belief.target.shape), objective=self.objective)
