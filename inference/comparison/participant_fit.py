r"""Fit the participant model and fix the one scale that reports cannot give.

``assumed``: k0, the typical slope of reports on the log-odds of the belief, is a number somebody believes in; 1 says
that reports are right on average in log-odds, as the estimator of equation 5 does.

``outcomes`` (a *cut* posterior): which of two tokens came from the text is known, and so is the generator of the other,
so that the labels fix the temperature c that makes the shared, de-noised belief fit them
(:func:`~inference.comparison.participant_gap.outcome_temperature`). The labels may not be added to the likelihood of
the reports, which is given which token is the target already. A first, short fit at k0 = 1 finds about which scale is
meant; the fit proper is made at that scale, where the priors of the belief mean what they say; every draw of it then
gets its own c, with Bayesian-bootstrap weights over items, so that the interval has the uncertainty of c in it. What
comes out is the loss of the shared belief after the one temperature that best fits which tokens were true. It is near
the least loss that any temperature gives that belief, not that itself, as tokens shown stand for the whole
distribution; and it is the participants' loss if they are calibrated in log-loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from estimators.display import Result, interval_rows
from estimators.errors import InputError, unknown_choice
from inference.comparison.participant_gap import (
    OBJECTIVES,
    SharedBelief,
    loss_gap,
    outcome_temperature,
    shared_belief,
    top1_rate,
)
from inference.posterior.arviz_adapter import InferenceData, group, thin
from inference.posterior.convergence import Convergence, GateThresholds, check_convergence
from inference.posterior.sampling import CompiledModel, sample, written_model
from models.comparison.participant_data import ParticipantData
from models.comparison.participant_density import participant_density
from models.comparison.participants import ParticipantPriors, participant_model, set_participant_data

__all__ = ["ANCHORS", "Anchor", "ParticipantFit", "compile_participants", "fit_participants", "top1_weights"]

FloatArray = NDArray[np.float64]

ANCHORS = ("outcomes", "assumed")
"""Where the scale of the belief comes from."""

_SCALES = (0.05, 20.0)
_NEAR_ENOUGH = 5.0


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
        For ``outcomes``; one of :data:`~inference.comparison.participant_gap.OBJECTIVES`.
    """

    name: str = "outcomes"
    k0: float = 1.0
    objective: str = "rank"

    def __post_init__(self) -> None:
        if self.name not in ANCHORS:
            raise unknown_choice("anchor", self.name, ANCHORS)
        if self.objective not in OBJECTIVES:
            raise unknown_choice("objective of the outcome anchor", self.objective, OBJECTIVES)
        if not (np.isfinite(self.k0) and _SCALES[0] <= self.k0 <= _SCALES[1]):
            raise InputError(f"is {self.k0}, should be from {_SCALES[0]} to {_SCALES[1]}", source="anchor", field="k0")


@dataclass(frozen=True, eq=False, repr=False)
class ParticipantFit(Result):
    """A posterior of the participant model, its scale fixed.

    Attributes
    ----------
    data : ParticipantData
    anchor : Anchor
    scale : float
        k0 at which the model was fitted.
    idata : arviz.InferenceData
    convergence : Convergence
    belief : SharedBelief
    temperature : ndarray, shape (draw,)
        c that the anchor gives on top of `scale`; all ones for ``assumed``.
    item_gap_nats : ndarray, shape (draw, item)
        R_q at that temperature.
    """

    data: ParticipantData
    anchor: Anchor
    scale: float
    idata: InferenceData
    convergence: Convergence
    belief: SharedBelief
    temperature: FloatArray
    item_gap_nats: FloatArray

    @property
    def gap_nats(self) -> FloatArray:
        """Mean over the items, (draw,)."""
        mean: FloatArray = self.item_gap_nats.mean(axis=1)
        return mean

    @property
    def k0(self) -> FloatArray:
        """Typical slope of the reports on the log-odds of the belief, (draw,)."""
        k0: FloatArray = self.scale / self.temperature
        return k0

    def gap_at(self, k0: float) -> FloatArray:
        """Gap in nats if the typical slope were `k0`, whatever the anchor, (draw,)."""
        mean: FloatArray = loss_gap(self.belief, self.scale / k0).mean(axis=1)
        return mean

    def top1_rate(self, rng: np.random.Generator) -> FloatArray:
        """Share of items whose target is the mode of the shared belief, (draw,)."""
        return top1_rate(self.belief, rng)

    def headline(self) -> str:
        """Say the gap and whether to believe it."""
        gap, of = np.median(self.gap_nats), f"{self.data.answers.sum()} participants, {self.data.item.size} items"
        said = f"loss gap {gap:.3f} nats, anchor {self.anchor.name!r}, {of}, convergence {self.convergence.headline()}"
        # held the truth in 38 of 104 simulated fits
        return f"{said}; of comparisons alone, its interval is not to be relied on"

    def summary(self) -> pd.DataFrame:
        """Median and 90% interval of the gap, the slope of the reports and the temperature."""
        return interval_rows({"gap_nats": self.gap_nats, "k0": self.k0, "temperature": self.temperature})


def compile_participants(data: ParticipantData, priors: ParticipantPriors | None = None) -> CompiledModel:
    """Build the participant model with its density as it was written out, for several fits.

    Parameters
    ----------
    data, priors
        See :func:`models.participant_model`.

    Returns
    -------
    CompiledModel
        For :func:`fit_participants`.
        Takes other answers to the same questions, and other scales.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import comparison_study
    >>> data = models.participant_data(comparison_study())
    >>> compiled = inference.compile_participants(data)
    >>> anchor = inference.Anchor("assumed", k0=0.8)
    >>> fit = inference.fit_participants(
    ...     data, compiled=compiled, anchor=anchor, draws=50, tune=100, chains=2, seed=1, progress=False
    ... )
    >>> float(fit.k0[0])
    0.8
    """
    return written_model(participant_model(data, priors), participant_density(data, priors))


def fit_participants(
    data: ParticipantData,
    *,
    priors: ParticipantPriors | None = None,
    anchor: Anchor | None = None,
    compiled: CompiledModel | None = None,
    thresholds: GateThresholds | None = None,
    keep: int | None = None,
    seed: int = 0,
    **settings: Any,
) -> ParticipantFit:
    """Fit the participant model.

    Parameters
    ----------
    data : ParticipantData
    priors : ParticipantPriors, optional
        Not used where `compiled` is given, which has its own.
    anchor : Anchor, optional
        By default the outcomes.
    compiled : CompiledModel, optional
        From :func:`compile_participants`, for the same questions and participants.
    thresholds : GateThresholds, optional
    keep : int, optional
        About as many draws, evenly spaced, are kept once convergence has been judged on all of them; every draw of
        the gap costs thousands of tokens.
    seed : int
    **settings
        Of :func:`inference.posterior.sampling.sample`: sampler (here by default ``hmc``), draws, tune, chains, cores,
        target_accept, progress.

    Returns
    -------
    ParticipantFit

    Raises
    ------
    InputError
        For unknown settings, or a compiled model of other questions.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import comparison_study
    >>> data = models.participant_data(comparison_study())
    >>> fit = inference.fit_participants(data, draws=50, tune=100, chains=2, seed=1, progress=False)
    >>> fit.gap_nats.shape, list(fit.summary().index)
    ((100,), ['gap_nats', 'k0', 'temperature'])
    """
    anchor = anchor or Anchor()
    program = compiled or compile_participants(data, priors)
    settings = {"sampler": "hmc", **settings}
    seeds = np.random.SeedSequence(seed).spawn(4)

    scale = anchor.k0
    if anchor.name == "outcomes":
        for attempt in range(2):
            set_participant_data(program.model, data, scale=scale)
            settings_first = {"chains": 1, "draws": 100, "tune": settings.get("tune", 1000) // 2}
            first = sample(program, **{**settings, **settings_first}, seed=_integer(seeds[attempt]))
            belief = shared_belief(group(first, "posterior"), data, np.random.default_rng(seeds[attempt].spawn(1)[0]))
            found = outcome_temperature(belief, np.ones(data.item.size), objective=anchor.objective)
            step = float(np.median(found))
            scale = float(np.clip(scale / step, *_SCALES))
            # at a scale that is off by so much the priors, meant for the right one, do not distort c by more than 10%
            if 1 / _NEAR_ENOUGH < step < _NEAR_ENOUGH:
                break

    set_participant_data(program.model, data, scale=scale)
    idata = sample(program, **settings, seed=_integer(seeds[2]))
    fixed: list[str] = []
    if len(data.participant) == 1:
        # one participant is the typical one: its slope is the scale itself and its bias 0, in every draw
        drawn = group(idata, "posterior")
        fixed = [name for name in ("slope", "bias") if np.ptp(drawn[name].values) == 0]
    convergence = check_convergence(idata, thresholds, fixed=fixed)
    if keep is not None:
        idata = thin(idata, keep)
    rng = np.random.default_rng(seeds[3])
    belief = shared_belief(group(idata, "posterior"), data, rng)
    temperature = np.ones(belief.n_draws)
    if anchor.name == "outcomes":
        weight = rng.exponential(size=(belief.n_draws, data.item.size))
        temperature = outcome_temperature(belief, weight, objective=anchor.objective)
    return ParticipantFit(
        data=data,
        anchor=anchor,
        scale=scale,
        idata=idata,
        convergence=convergence,
        belief=belief,
        temperature=temperature,
        item_gap_nats=loss_gap(belief, temperature),
    )


def _integer(seed: np.random.SeedSequence) -> int:
    return int(np.random.default_rng(seed).integers(2**31))


def top1_weights(model_rate: Sequence[float] | FloatArray, rate: float, se: float) -> FloatArray:
    r"""Weights of posterior draws under the soft constraint that people's most probable word is right at a known rate.

    .. math:: w_i \propto \exp\left(-\frac{(r_i - r)^2}{2\, \mathrm{se}^2}\right)

    Parameters
    ----------
    model_rate : array_like, shape (draw,)
        :meth:`ParticipantFit.top1_rate`.
    rate, se : float
        Measured share of right guesses, and how far it can be from that on these items.

    Returns
    -------
    ndarray, shape (draw,)
        They sum to one.

    Raises
    ------
    InputError
        If the rate is no share or its error not positive.

    Examples
    --------
    >>> import inference
    >>> inference.top1_weights([0.3, 0.4, 0.5], 0.4, 0.05).round(3).tolist()
    [0.107, 0.787, 0.107]
    """
    if not 0 < rate < 1:
        raise InputError(f"is {rate}, should be between 0 and 1", field="top1.rate")
    if not (np.isfinite(se) and se > 0):
        raise InputError(f"is {se}, should be a positive number", field="top1.se")
    log_weight = -((np.asarray(model_rate, dtype=float) - rate) ** 2) / (2 * se**2)
    weight = np.exp(log_weight - log_weight.max())
    normalised: FloatArray = weight / weight.sum()
    return normalised
