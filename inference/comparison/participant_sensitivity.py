r"""How much of a result about participants hangs on one of them, or on the priors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError
from shannon_game.inference.comparison.participant_fit import ParticipantFit
from shannon_game.inference.comparison.participant_gap import loss_gap, outcome_temperature
from shannon_game.inference.posterior.gaussian import Gaussian, nearby_mode
from shannon_game.models.comparison.participant_data import ParticipantData, with_rows
from shannon_game.models.comparison.participants import ParticipantPriors, set_windows

_SCALES = (
    *("log_spread", "slope", "slope_change", "spread_slope", "ratio", "ratio_slope", "level", "target", "target_slope"),
    *("entropy_slope", "entropy_weight", "entropy_target"),
    *("log_target_spread", "log_k0", "log_sd", "log_noise", "logit_lapse", "covariate", "bias_mean"),
)


def unusual_participants(data: ParticipantData, *, mostly: float = 0.8, typically: float = 0.3) -> list[str]:
    """Name those who answer anything: the ends of the scale as a rule, or 50%, where the others hardly do.

    The ends carry little of how strongly somebody believes: who always answers "99%" says only which option. The rule
    looks at how the scale is used, not at whether the answers were right, so that leaving somebody out by it does not
    select for the result. A share of answers in the lowest or the highest box above `mostly` is unusual if the median
    participant's is below `typically`; likewise a share in the box of one half.
    """
    for name, share in (("mostly", mostly), ("typically", typically)):
        if not 0 < share < 1:
            raise InputError(f"is {share}, should be between 0 and 1", field=name)
    n_answers = np.bincount(data.row_participant, minlength=data.participant.size)
    there, odd = np.flatnonzero(n_answers), np.zeros(data.participant.size, dtype=bool)
    for boxes in ((0, len(data.box_edges) - 1), (data.half_box,)):
        n_inside = np.bincount(data.row_participant, np.isin(data.row_box, boxes), data.participant.size)
        inside = n_inside[there] / n_answers[there]
        if np.median(inside) < typically:
            odd[there[inside > mostly]] = True
    return [str(name) for name in data.participant[odd]]


def scaled_priors(priors: ParticipantPriors, factor: float) -> ParticipantPriors:
    """Multiply every standard deviation; medians and places stay, and so do what nothing is learned about."""
    if not (np.isfinite(factor) and factor > 0):
        raise InputError(f"is {factor}, should be a positive number", field="factor")
    return replace(priors, **{name: factor * getattr(priors, name) for name in _SCALES})


@dataclass(frozen=True, eq=False, repr=False)
class WithoutOne(Result):
    """The gap as it would be without the reports of a participant."""

    participant: str
    n_answers: int
    gap_nats: FloatArray


def leave_one_out(fit: ParticipantFit, rng: np.random.Generator, *, n_draws: int = 40) -> Iterator[WithoutOne]:
    """Leave out the reports of every participant in turn, without a new fit.

    The mode is found again without these reports, from the mode of the whole fit and in its directions, which takes
    few steps; the curvature is that of the whole fit. Draws of the belief are then made without the reports of that
    participant, with the same random numbers for all.
    """
    data, compiled = fit.data, fit.compiled
    if data.participant.size < 2:
        raise InputError("has one participant, without whom there is nothing", source=f"study {data.study!r}")
    model, whole, n = compiled.program.model, compiled.gaussian, 4 * max(n_draws // 4, 1)
    seed = int(rng.integers(2**31))

    def gap(gaussian: Gaussian) -> FloatArray:
        own = np.random.default_rng(seed)
        belief = compiled.belief(n, own, gaussian)
        temperature = np.ones(n)
        if fit.anchor.name == "outcomes":
            weight = own.exponential(size=belief.target.shape)
            temperature = outcome_temperature(belief, weight, objective=fit.anchor.objective)
        found: FloatArray = loss_gap(belief, temperature).mean(axis=1)
        return found

    def wanted() -> list[FloatArray]:
        return compiled.program.wanted(whole.mode)

    off = np.median(fit.gap_nats) - np.median(gap(whole))
    for number, name in enumerate(data.participant.tolist()):
        others = data.row_participant != number
        set_windows(model, wanted, data=with_rows(data, others))
        without = gap(replace(whole, mode=nearby_mode(compiled.program, whole))) + off
        yield WithoutOne(str(name), int((~others).sum()), without)
    set_windows(model, wanted)
