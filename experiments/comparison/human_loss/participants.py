"""Fits of the participant model: everyone, without some, with other priors, at other scales."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from estimators.comparison import RoundingScheme
from estimators.layout import item_labels
from experiments.harness.bayes import FITS, SamplerSettings, sampler_seed, timed, with_all_groups
from experiments.harness.settings import rng_for
from inference.comparison.participant_fit import Anchor, ParticipantFit, compile_participants, fit_participants
from inference.comparison.participant_gap import loss_gap, tail_share
from inference.comparison.participant_recovery import SimulatedAnswers, answers_of, fitted_people
from inference.comparison.participant_sensitivity import evenly_spaced, scaled_priors, thinned_belief
from inference.posterior.convergence import GateThresholds
from inference.progress import advance
from models.comparison.participant_data import ParticipantData, without_participants
from models.comparison.participants import ParticipantPriors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inference.posterior.arviz_adapter import InferenceData
    from inference.posterior.sampling import CompiledModel

__all__ = ["PRIOR_FACTORS", "HumanFit", "Participants"]

FloatArray = NDArray[np.float64]

PRIOR_FACTORS = {"narrow": 0.5, "wide": 2.0}
"""Other priors of the sensitivity analysis, by how much wider they are."""

_CURVE_DRAWS = 500


@dataclass(frozen=True, eq=False)
class HumanFit:
    """A fit to the participants with what was computed from it.

    Attributes
    ----------
    what : str
        Which analysis it is.
    fit : ParticipantFit
    left_out : tuple of str
        Participants.
    priors : str
    shift_nats : ndarray, shape (item,)
        From the gap to the model that drew the candidates to that to the control.
    top1, tail_share : ndarray, shape (draw,)
        How often the belief's most probable token is the true one; the belief's share on tokens never drawn.
    k0 : ndarray, shape (scale,)
        Assumed scales of the curve.
    """

    what: str
    fit: ParticipantFit
    left_out: tuple[str, ...]
    priors: str
    shift_nats: FloatArray
    top1: FloatArray
    tail_share: FloatArray
    k0: FloatArray

    @property
    def gap_nats(self) -> FloatArray:
        """Mean gap to the control model, (draw,)."""
        gap: FloatArray = self.fit.gap_nats + self.shift_nats.mean()
        return gap

    @cached_property
    def curve_nats(self) -> FloatArray:
        """Mean gap to the control model if the typical slope were each k0, (k0, some draws)."""
        belief = thinned_belief(self.fit.belief, _CURVE_DRAWS)
        return np.array([loss_gap(belief, self.fit.scale / at).mean(axis=1) + self.shift_nats.mean() for at in self.k0])

    @property
    def above_floor_nats(self) -> FloatArray:
        """By how much the gap is above the least that the scales of the curve give, (some draws)."""
        own = self.gap_nats[evenly_spaced(self.gap_nats.size, _CURVE_DRAWS)]
        above: FloatArray = np.maximum(own - self.curve_nats.min(axis=0), 0)
        return above


@dataclass(frozen=True)
class Participants:
    """The participants of a study, and the compiled model that their fits share.

    Attributes
    ----------
    study : xarray.Dataset
    data : ParticipantData
    grid : RoundingScheme
        The values that participants could report.
    control : str
        The model to which gaps are.
    priors : ParticipantPriors
    sampler, short_sampler : SamplerSettings
        Of the main fits, and of those of the sensitivity analysis.
    gate : GateThresholds
    n_draws : int
        Draws that are kept.
    k0 : ndarray, shape (scale,)
        Assumed scales of the curve.
    seed : int
    save : bool
        Whether main fits leave their posterior in `posteriors`.
    posteriors : dict
        By what follows ``posterior_`` in the name of a file.
    """

    study: xr.Dataset
    data: ParticipantData
    grid: RoundingScheme
    control: str
    priors: ParticipantPriors
    sampler: SamplerSettings
    short_sampler: SamplerSettings
    gate: GateThresholds
    n_draws: int
    k0: FloatArray
    seed: int
    save: bool
    posteriors: dict[str, InferenceData] = field(default_factory=dict)

    @property
    def true_k0(self) -> float:
        """Geometric mean of the participants' slopes where a simulation knows them."""
        if "true_slope" not in self.study:
            return float("nan")
        slope = self.study["true_slope"].sel(participant_truth=self.data.participant).to_numpy()
        return float(np.exp(np.log(slope).mean()))

    @cached_property
    def program(self) -> CompiledModel:
        """Model of everyone's answers."""
        return compile_participants(self.data, self.priors)

    def main_fits(self, anchor: Anchor, assumed: Anchor, left_out: tuple[str, ...]) -> list[HumanFit]:
        """The analysis asked for, then without the unusual participants, then with the scale assumed."""
        found = [self.fit("everyone", anchor)]
        if left_out:
            found.append(self.fit("without", anchor, left_out=left_out))
        if anchor != assumed:
            found.append(self.fit("assumed", assumed))
        return found

    def prior_fits(self, anchor: Anchor) -> list[HumanFit]:
        """The analysis asked for under narrower and wider priors, by short fits."""
        return [
            self.fit(
                f"priors: {name}",
                anchor,
                priors=name,
                program=compile_participants(self.data, scaled_priors(self.priors, factor)),
                short=True,
            )
            for name, factor in PRIOR_FACTORS.items()
        ]

    def fit(
        self,
        what: str,
        anchor: Anchor,
        *,
        left_out: tuple[str, ...] = (),
        priors: str = "default",
        program: CompiledModel | None = None,
        short: bool = False,
    ) -> HumanFit:
        """Fit, and compute what tables and figures need while the model holds these data."""
        program = self.program if program is None else program
        purpose = f"human loss {what} {anchor.name} {' '.join(left_out)} {priors}"
        with timed(f"participants, {what}, anchor {anchor.name}"):
            fit = fit_participants(
                without_participants(self.data, left_out),
                priors=self.priors,
                anchor=anchor,
                compiled=program,
                thresholds=self.gate,
                keep=self.n_draws,
                seed=sampler_seed(self.seed, purpose),
                **(self.short_sampler if short else self.sampler).arguments,
            )
        advance(FITS)
        if self.save and not short:
            with timed(f"log-likelihood and predictions, {what}"):
                name = "human" if what == "everyone" else f"human_{what}"
                self.posteriors[name] = with_all_groups(fit.idata, program, self.seed, what)
        target = self.study["target_logprob"].assign_coords(item=item_labels(self.study)).sel(item=fit.data.item)
        return HumanFit(
            what=what,
            fit=fit,
            left_out=left_out,
            priors=priors,
            shift_nats=(target.sel(model=self.control) - target.sel(model=fit.data.generator)).to_numpy(),
            top1=fit.top1_rate(rng_for(self.seed, f"top1 {purpose}")),
            tail_share=tail_share(fit.belief, fit.temperature).mean(axis=1),
            k0=self.k0,
        )

    def as_people(self, human: HumanFit, player: str, times: int) -> Iterator[tuple[SimulatedAnswers, ParticipantFit]]:
        """Let people who report as the participants do, each time in another draw, believe what a player believes."""
        for at in evenly_spaced(human.fit.belief.n_draws, times).tolist():
            purpose = f"{player} as people, {human.what}, draw {at}"
            answers = answers_of(
                self.study,
                player,
                lambda _, at=at: fitted_people(human.fit, at),  # type: ignore[misc]
                grid=self.grid,
                rng=rng_for(self.seed, f"answers of {purpose}"),
            )
            with timed(purpose):
                fit = fit_participants(
                    without_participants(answers.data, human.left_out),
                    priors=self.priors,
                    anchor=replace(human.fit.anchor, k0=human.fit.scale),
                    compiled=self.program,
                    thresholds=self.gate,
                    keep=self.n_draws,
                    seed=sampler_seed(self.seed, purpose),
                    **self.short_sampler.arguments,
                )
            advance(FITS)
            yield answers, fit
