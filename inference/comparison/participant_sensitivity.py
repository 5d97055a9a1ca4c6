r"""How much of a result about participants hangs on one of them, on the priors, or on a bias that all share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import xarray as xr
from scipy.special import logsumexp

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError
from shannon_game.inference.comparison.participant_fit import ParticipantFit, tail_scales
from shannon_game.inference.comparison.participant_gap import loss_gap
from shannon_game.inference.posterior.arviz_adapter import from_groups, group
from shannon_game.inference.posterior.gaussian import Gaussian, fit_gaussian, nearby_mode
from shannon_game.models.comparison.participant_data import ParticipantData, with_rows
from shannon_game.models.comparison.participants import ParticipantPriors, set_priors

_LEAST_LEFT = 100
"""Draws that a posterior must be worth once it is weighted."""
_SCALES = (
    *("log_spread", "slope", "slope_change", "spread_slope", "ratio", "ratio_slope", "level", "target", "target_slope"),
    *("entropy_slope", "entropy_weight", "entropy_target"),
    *("log_target_spread", "log_k0", "log_sd", "log_noise", "logit_lapse", "covariate"),
    *("bias_mean", "bias_mean_alone"),
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


def pooled_gap(fits: Sequence[ParticipantFit]) -> tuple[FloatArray, IntArray]:
    r"""Pool the beliefs of camps with weights :math:`w_c`, their shares of the people.

    Draws of each item's gap, :math:`-\ln \sum_c w_c e^{-\mathrm{gap}_c}`, nats, (draw, item), with what the law's form
    may be off by; and the positions of the items, those of which every camp says something.
    """
    position = reduce(np.intersect1d, [fit.data.position for fit in fits])
    n = min(fit.belief.n_draws for fit in fits)
    people = np.array([fit.data.participant.size for fit in fits], dtype=float)
    own = np.stack([fit.item_gap_nats[:n, np.isin(fit.data.position, position)] for fit in fits])
    # the law is off by the same for all
    off = (fits[0].gap_nats - fits[0].item_gap_nats.mean(axis=1))[:n, None]
    found: FloatArray = off - logsumexp(-own, axis=0, b=(people / people.sum())[:, None, None])
    return found, position


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


class _Nearby:
    """Draws of the gap near the mode of the model once it is changed a little, with the same random numbers for all.

    They are as far from those of the fit itself as its Gaussian's median is from its median.
    """

    def __init__(self, fit: ParticipantFit, rng: np.random.Generator, n_draws: int) -> None:
        self.fit, self.n, self.seed = fit, 4 * max(n_draws // 4, 1), int(rng.integers(2**31))
        self.program, self.whole = fit.compiled.program, fit.compiled.gaussian
        fit.compiled.again()
        self._off = 0.0
        self._off = float(np.median(fit.gap_nats) - np.median(self.gap(self.whole)))

    def gap(self, gaussian: Gaussian) -> FloatArray:
        """Draws around the mode of a Gaussian."""
        rng = np.random.default_rng(self.seed)
        belief = self.fit.compiled.belief(self.n, rng, gaussian)
        found: FloatArray = loss_gap(belief, self.fit.anchor.temperature(belief, rng)).mean(axis=1) + self._off
        return found


def leave_one_out(fit: ParticipantFit, rng: np.random.Generator, *, n_draws: int = 40) -> Iterator[WithoutOne]:
    """Leave out the reports of every participant in turn, without a new fit.

    The mode is found again without these reports, from the mode of the whole fit and in its directions, which takes
    few steps; the curvature is that of the whole fit. Draws of the belief are then made without the reports of that
    participant, with the same random numbers for all.
    """
    data = fit.data
    if data.participant.size < 2:
        raise InputError("has one participant, without whom there is nothing", source=f"study {data.study!r}")
    near = _Nearby(fit, rng, n_draws)
    for number, name in enumerate(data.participant.tolist()):
        others = data.row_participant != number
        fit.compiled.set_windows(near.whole.mode, data=with_rows(data, others))
        moved = replace(near.whole, mode=nearby_mode(near.program, near.whole))
        yield WithoutOne(str(name), int((~others).sum()), near.gap(moved))
    fit.compiled.again()


def with_priors(
    fit: ParticipantFit, priors: ParticipantPriors, rng: np.random.Generator, *, n_draws: int = 200
) -> FloatArray:
    """Draw the gap as it would be under other priors, without new chains, nats, (draw,).

    The mode and the Gaussian around it are found again, from those of the fit. Weights of the fit's own draws would be
    of no use: with half the standard deviations of some twenty parameters of the law a few draws have all the weight.
    """
    near = _Nearby(fit, rng, n_draws)
    set_priors(near.program.model, priors, fit.data)
    try:
        return near.gap(fit_gaussian(near.program, near=near.whole, before=fit.compiled.set_windows))
    finally:
        fit.compiled.again()


def without_shared_bias(fit: ParticipantFit, rng: np.random.Generator) -> ParticipantFit | None:
    r"""Give the posterior had the biases no mean of their own, from a fit in which they have one; None where it cannot.

    Draws are drawn again by the ratio of the two priors of the mean bias :math:`\bar b` of `n` participants,

    .. math:: \frac{N(\bar b; 0, s^2/n)}{N(\bar b; 0, s^2/n + \tau^2)},

    which is bounded, so that no draw has most of the weight by its tail: what can fail is that too few draws are left.
    """
    posterior, n = group(fit.idata, "posterior"), fit.data.participant.size
    if n < 2:
        return None
    mean = (posterior["bias_mean"] + posterior["bias_own"].mean("participant")).to_numpy().ravel()
    own = posterior["bias_sd"].to_numpy().ravel() ** 2 / n
    both = own + fit.priors.of(fit.data).bias_mean ** 2
    log_weight = (np.log(both / own) + mean**2 / both - mean**2 / own) / 2
    weight = np.exp(log_weight - log_weight.max())
    left = weight.sum() ** 2 / (weight**2).sum()
    if left < _LEAST_LEFT:
        return None
    places = (rng.random() + np.arange(weight.size)) / weight.size
    kept = np.minimum(np.searchsorted(np.cumsum(weight / weight.sum()), places), weight.size - 1)
    chain, draw = np.divmod(kept, posterior.sizes["draw"])
    drawn = posterior.isel(chain=xr.DataArray(chain, dims="kept"), draw=xr.DataArray(draw, dims="kept"))
    drawn = drawn.drop_vars(["chain", "draw"]).expand_dims("chain").rename(kept="draw")
    share, found = left / weight.size, fit.convergence
    belief = fit.belief.at(kept)
    tail_scale = tail_scales(fit.data, rng, kept.size, shared_bias=False)
    return replace(
        fit,
        idata=from_groups({"posterior": drawn}),
        convergence=replace(found, ess_bulk_min=share * found.ess_bulk_min, ess_tail_min=share * found.ess_tail_min),
        belief=belief,
        temperature=fit.temperature[kept],
        item_gap_nats=loss_gap(belief, fit.temperature[kept], tail_scale),
        tail_scale=tail_scale,
        discrepancy=fit.discrepancy[kept],
    )
