"""What human loss estimates: its analyses, the row of each, and the posteriors behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import pandas as pd

from shannon_game.estimators.comparison import RoundingScheme, rounding_scheme
from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.comparison.estimates import XLABEL, EstimateRow
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import ConvergenceRow
from shannon_game.inference.comparison.anchors import Anchor
from shannon_game.models.comparison.participant_data import ParticipantData

KIND = "kind"
"""Column of the analyses themselves, for figures and sentences; no file has it."""
NO_ROUNDING = rounding_scheme("none")


class Analysis(Enum):
    """One way to estimate a loss: what its row is called, and by which method."""

    PLAYER = "{}, rounding {}", "model of players"
    EVERYONE = "everyone", "model of people"
    NO_SHARED_BIAS = "no_shared_bias", "model of people"
    WITHOUT = "without", "model of people"
    CAMP = "camp {}", "model of people"
    POOLED = "camps pooled", "model of people"
    ANCHOR = "{}", "model of people"
    OUTCOMES = "outcomes", "model of people"
    TOP1 = "{}, top-1 rate", "model of people"
    BRIDGE = "scaled bridge", "scaled bridge"
    WITHOUT_ONE = "without one", "mode without one"
    PRIORS = "priors: {}", "mode under other priors"

    def __init__(self, pattern: str, method: str) -> None:
        self.pattern, self.method = pattern, method


FITTED = [one for one in Analysis if one.method in (Analysis.EVERYONE.method, Analysis.PLAYER.method)]
"""Analyses whose posterior was sampled."""
SENSITIVITY = [Analysis.WITHOUT_ONE, Analysis.PRIORS]


class _PosteriorRow(EstimateRow, last=ConvergenceRow):
    """What a posterior, or a closed form, says of a loss, beside equation 5."""

    rounding: str = column.context("grid to which probability judgements are rounded", setting="rounding")
    gap_nats: float = column.beside("gap_median_nats", "equation 5: loss minus the generator's", unit="nats")
    perplexity: float = column.beside("perplexity_median", "equation 5: exp(gap + L_G)", label=XLABEL, scale="log")
    true_gap_nats: float = column.truth("gap_median_nats", unit="nats")
    true_perplexity_asked: float = column.truth(
        "perplexity_median", "exp(true gap on the items asked + L_G): what it should be"
    )
    error_nats: float = column.detail("equation 5: gap minus the true gap on the same items", unit="nats")
    verdict: str = column.detail("whether the responses per item are enough for equation 5")
    analysis: str = column.key("what is estimated, under which assumption")
    method: str = column.context("model, approximation or closed form of the analysis")
    anchor: str = column.context("where the scale of people's belief comes from")
    left_out: str = column.detail("participants left out")
    left_out_label: str = column.detail("participants left out, by their short names")
    priors: str = column.context("standard deviations of the priors")
    top1_rate_given: float = column.context("top-1 rate near which draws are weighted")
    gap_median_nats: float = column.estimate(
        "posterior loss of the shared belief minus the generator's, over all items", unit="nats", interval="gap_{}_nats"
    )
    perplexity_median: float = column.headline(
        "posterior perplexity per token", label=XLABEL, scale="log", interval="perplexity_posterior_{}"
    )
    error_median_nats: float = column.error("perplexity_median", "median gap minus the true gap", unit="nats")
    gap_items_with_data_median_nats: float = column.estimate(
        "gap over the items with a report or an answer", unit="nats", interval="gap_items_with_data_{}_nats"
    )
    individual_gap_upper_median_nats: float = column.estimate(
        "upper bound of the mean gap of people one by one: all noise is private belief; at least the gap",
        unit="nats",
        interval="individual_gap_upper_{}_nats",
    )
    k0_median: float = column.headline("typical slope of reports on the log-odds of the belief", interval="k0_{}")
    k0_true: float = column.truth("k0_median", "geometric mean of the slopes of those who compared")
    alarms: str = column.detail("what checks of the model's assumptions on people say; empty where none rings")
    tail_share_median: float = column.estimate("share of the belief on tokens never drawn", interval="tail_share_{}")
    tail_factor: float = column.detail(
        "factor by which the belief on tokens never drawn has to grow until the gap passes that of the weakest model"
    )
    top1_model_median: float = column.estimate(
        "share of items whose most probable token of the belief is the true one", interval="top1_model_{}"
    )


class HumanLossRow(_PosteriorRow):
    """One analysis of people, or one language model under one rounding."""

    tail_factors: float = column.detail("tail_factor of this model", family="tail_factor_{}")


def main_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Rows without the sensitivity analysis, people first."""
    kept = table[~table[KIND].isin(SENSITIVITY)]
    return kept.sort_values("player", key=lambda name: name != HUMAN, kind="stable")


@dataclass(frozen=True, eq=False)
class Case:
    """One analysis: of whose answers, where its scale comes from, under which priors, and without whom."""

    analysis: Analysis
    data: ParticipantData
    player: str = HUMAN
    rounding: RoundingScheme = NO_ROUNDING
    anchor: Anchor | None = None
    priors: str = "default"
    left_out: Sequence[str] = ()
    covariates: pd.DataFrame | None = None
    report: str = "linear"
    of: str = ""
    """What tells it from others of its analysis: the number of a camp, the name of an anchor or of a row."""

    @property
    def label(self) -> str:
        """What the column ``analysis`` says."""
        of = (self.player, self.rounding.name) if self.data.is_player else (self.of,)
        return self.analysis.pattern.format(*of)

    @property
    def name(self) -> str:
        """What its progress, its random numbers and its warnings are called."""
        return self.label if self.data.is_player else f"people, {self.label}"

    @property
    def file(self) -> str:
        """Name of its posterior, if it is kept; one without a shared bias is another's, weighted."""
        if self.data.is_player or self.analysis is Analysis.NO_SHARED_BIAS:
            return ""
        return HUMAN if self.analysis is Analysis.EVERYONE else f"{HUMAN}_{self.label.replace(' ', '_')}"
