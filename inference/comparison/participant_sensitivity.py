r"""How much of a result about participants hangs on one of them, on the priors, or on tokens that nobody saw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit, logsumexp

from estimators.display import Result
from estimators.errors import InputError
from inference.comparison.participant_fit import ParticipantFit
from inference.comparison.participant_gap import SharedBelief, loss_gap, outcome_temperature, shared_belief
from inference.posterior.arviz_adapter import group, psis_weights
from inference.posterior.item_draws import thinned
from models.comparison.kernels import answers_log_density
from models.comparison.participant_data import ParticipantData, without_participants
from models.comparison.participants import FAR, SLOPE_BOUND, ParticipantPriors

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "WithoutOne",
    "evenly_spaced",
    "leave_one_out",
    "scaled_priors",
    "thinned_belief",
    "unusual_participants",
    "weighted_quantile",
]

FloatArray = NDArray[np.float64]

_UNITS = ("slope_unit", "bias_unit", "noise_unit", "lapse_unit")
_BIAS_DF = 4
_POINTS = 128
_WIDER = 1.4

_SCALES = (
    *("mu", "a", "b", "b2", "sigma", "omega", "c", "t_b", "kap", "log_rho", "ga", "delta"),
    *("slope_spread", "bias_spread", "log_noise", "noise_spread", "logit_lapse", "lapse_spread"),
)


def unusual_participants(data: ParticipantData, *, mostly: float = 0.8, typically: float = 0.3) -> list[str]:
    """Name those who answer with the ends of the scale as a rule, where the others hardly do.

    The ends carry little of how strongly somebody believes: who always answers "99%" says only which option. The rule
    looks at how the scale is used, not at whether the answers were right, so that leaving somebody out by it does not
    select for the result.

    Parameters
    ----------
    data : ParticipantData
    mostly : float
        Share of a participant's answers in the lowest or the highest box above which the use is unusual ...
    typically : float
        ... if the median participant's share is below this one; where everybody lives at the ends, it marks nobody.

    Returns
    -------
    list of str
        In the order of the data.

    Raises
    ------
    InputError
        If a share is not between 0 and 1.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import comparison_study
    >>> inference.unusual_participants(models.participant_data(comparison_study()))
    []
    """
    for name, share in (("mostly", mostly), ("typically", typically)):
        if not 0 < share < 1:
            raise InputError(f"is {share}, should be between 0 and 1", field=name)
    at_end = np.isin(data.row_box, (0, len(data.box_edges) - 1))
    n_answers = np.bincount(data.row_participant, minlength=data.participant.size)
    n_ends = np.bincount(data.row_participant[at_end], minlength=data.participant.size)
    there = np.flatnonzero(n_answers)
    share_ends = n_ends[there] / n_answers[there]
    if np.median(share_ends) >= typically:
        return []
    return [str(name) for name in data.participant[there[share_ends > mostly]]]


def scaled_priors(priors: ParticipantPriors, factor: float) -> ParticipantPriors:
    """Multiply every standard deviation and every scale of a half-normal; medians, means and shapes stay.

    Parameters
    ----------
    priors : ParticipantPriors
    factor : float
        Above 1 for weaker priors.

    Returns
    -------
    ParticipantPriors

    Raises
    ------
    InputError
        If the factor is not positive.

    Examples
    --------
    >>> import inference, models
    >>> weaker = inference.scaled_priors(models.ParticipantPriors(), 2)
    >>> weaker.sigma, weaker.noise_median
    (3.0, 0.9)
    """
    if not (np.isfinite(factor) and factor > 0):
        raise InputError(f"is {factor}, should be a positive number", field="factor")
    return replace(priors, **{name: factor * getattr(priors, name) for name in _SCALES})


def weighted_quantile(draws: FloatArray, probability: Sequence[float], weight: FloatArray | None = None) -> FloatArray:
    """Quantiles of draws that may carry weights."""
    if weight is None:
        plain: FloatArray = np.quantile(draws, probability)
        return plain
    order = np.argsort(draws)
    mass = weight[order]
    # every draw stands for the middle of its mass
    at = (np.cumsum(mass) - mass / 2) / mass.sum()
    found: FloatArray = np.interp(probability, at, draws[order])
    return found


def evenly_spaced(n_draws: int, n_kept: int) -> NDArray[np.intp]:
    """Positions of about `n_kept` evenly spaced draws."""
    return np.unique(np.linspace(0, n_draws - 1, min(n_kept, n_draws)).round().astype(np.intp))


def thinned_belief(belief: SharedBelief, n_draws: int) -> SharedBelief:
    """About `n_draws` evenly spaced draws of a belief; each has a value for thousands of tokens."""
    at = evenly_spaced(belief.n_draws, n_draws)
    by_draw = ("pair_log_ratio", "rest_log_ratio", "tail_log_ratio", "item_left", "item_right")
    return replace(belief, **{name: getattr(belief, name)[at] for name in by_draw})


@dataclass(frozen=True, eq=False, repr=False)
class WithoutOne(Result):
    """The gap as it would be without a participant.

    Attributes
    ----------
    participant : str
    n_answers : int
    pareto_k : float
        Of the importance weights; above .7 they are not to be believed. NaN after a fit without the participant.
    gap_nats : ndarray, shape (draw,)
    weight : ndarray, shape (draw,)
        Of the draws; they sum to one.
    """

    participant: str
    n_answers: int
    pareto_k: float
    gap_nats: FloatArray
    weight: FloatArray

    def headline(self) -> str:
        """Who is left out, and what the gap is then."""
        gap = weighted_quantile(self.gap_nats, [0.5], self.weight)[0]
        return f"{self.participant!r} ({self.n_answers} answers), gap {gap:.3f} nats, Pareto k {self.pareto_k:.2f}"

    def summary(self) -> pd.DataFrame:
        """Weighted median and 90% interval of the gap, nats."""
        found = weighted_quantile(self.gap_nats, [0.5, 0.05, 0.95], self.weight)
        return pd.DataFrame([found], index=[self.participant], columns=["median", "lower", "upper"])


def leave_one_out(fit: ParticipantFit, rng: np.random.Generator, *, n_draws: int = 500) -> Iterator[WithoutOne]:
    r"""Leave out every participant in turn, without a new fit.

    The draws get the weights :math:`1 / p(\text{answers of } u \mid \text{what all share})`, smoothed (PSIS). The
    participant's own slope, bias, noise and lapse are integrated out: given them, the likelihood of one's own answers
    would make nearly all weights useless, as without the answers they fall back to their prior. The integral is a
    sum over points from a mixture of that prior and a normal around the posterior, the same points for every draw. What
    is centred over participants stays centred as it was. The belief is then completed anew without the answers, and the
    anchor solved anew. Where the answers still pull what all share too far, :math:`\hat k` says so, and only a fit
    without the participant helps.

    Parameters
    ----------
    fit : ParticipantFit
    rng : numpy.random.Generator
    n_draws : int
        Draws for which the gap is computed; the weights are smoothed over all draws.

    Yields
    ------
    WithoutOne

    Examples
    --------
    >>> import inference, models
    >>> import numpy as np
    >>> from estimators.comparison.examples import comparison_study
    >>> data = models.participant_data(comparison_study())
    >>> fit = inference.fit_participants(data, draws=50, tune=100, chains=2, seed=1, progress=False)
    >>> without = list(inference.leave_one_out(fit, np.random.default_rng(0), n_draws=10))
    >>> [found.participant for found in without] == data.participant.tolist()
    True
    """
    data, posterior = fit.data, group(fit.idata, "posterior")
    flat = {
        str(name): posterior[name].transpose("chain", "draw", ...).to_numpy().reshape(fit.belief.n_draws, -1)
        for name in posterior.data_vars
    }
    few = thinned(posterior, n_draws)
    used = np.tile(np.isin(posterior["draw"].values, few["draw"].values), posterior.sizes["chain"])
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    for number in np.flatnonzero(data.answers):
        name = str(data.participant[number])
        log_ratio = -_own_log_likelihood(flat, data, int(number), rng)
        weight, pareto_k = psis_weights(log_ratio.reshape(shape))
        belief = _without(fit.belief, few, used, without_participants(data, [name]), rng)
        gap = loss_gap(belief, _temperature(fit, belief, rng)).mean(axis=1)
        kept = weight.ravel()[used]
        n_answers = int((data.row_participant == number).sum())
        yield WithoutOne(name, n_answers, pareto_k, gap, kept / kept.sum())


def _without(
    belief: SharedBelief, few: xr.Dataset, used: NDArray[np.bool_], rest: ParticipantData, rng: np.random.Generator
) -> SharedBelief:
    """Complete the belief anew where answers are gone; what nobody was asked about keeps its draws."""
    none = {
        name: getattr(rest, name)[:0] for name in ("rest_item", "rest_log_g", "tail_item", "tail_log_g", "tail_mass")
    }
    asked = shared_belief(few, replace(rest, **none), rng)
    return SharedBelief(
        rest,
        asked.pair_log_ratio,
        belief.rest_log_ratio[used],
        belief.tail_log_ratio[used],
        asked.item_left,
        asked.item_right,
    )


def _temperature(fit: ParticipantFit, belief: SharedBelief, rng: np.random.Generator) -> FloatArray | float:
    if fit.anchor.name != "outcomes":
        return 1.0
    weight = rng.exponential(size=(belief.n_draws, belief.data.item.size))
    return outcome_temperature(belief, weight, objective=fit.anchor.objective)


def _own_log_likelihood(
    draws: dict[str, FloatArray], data: ParticipantData, number: int, rng: np.random.Generator
) -> FloatArray:
    """Log-probability of a participant's answers given what all share, (draw,)."""
    own = {name: draws[name][:, [number]] for name in (*_UNITS, "slope", "bias")}
    slope_unit, bias_unit, noise_unit, lapse_unit, log_weight = _points([own[name] for name in _UNITS], rng)

    def deviation(unit: FloatArray) -> FloatArray:
        bounded: FloatArray = SLOPE_BOUND * np.tanh(draws["slope_spread"] * unit / SLOPE_BOUND)
        return bounded

    # where the centre is, the participant's own value tells
    k = own["slope"] * np.exp(deviation(slope_unit) - deviation(own["slope_unit"]))
    bias = own["bias"] + draws["bias_spread"] * (bias_unit - own["bias_unit"])
    noise = np.exp(draws["log_noise"] + draws["noise_spread"] * noise_unit)
    lapse = expit(draws["logit_lapse"] + draws["lapse_spread"] * lapse_unit)
    row = np.flatnonzero(data.row_participant == number)
    pair, box = data.row_pair[row], data.row_box[row]
    item, log_g = data.pair_item[pair], data.pair_log_g[pair]
    spread = draws["s"][:, item]
    log_odds = draws["A"][:, item] + (draws["b"] + draws["t_b"] * draws["zeta"][:, item]) * (log_g + 5)
    log_odds += draws["b2"] * np.maximum(-log_g - 7, 0) + data.pair_log_g_ratio[pair]
    several = pair < data.n_shared
    log_odds[:, several] += spread[:, several] * draws["e_unit"][:, pair[several]]
    answers = answers_log_density(
        np.stack(np.broadcast_arrays(k, bias, noise, lapse)),
        np.stack([draws["half"][:, 0], draws["ga"][:, 0]]),
        log_odds,
        np.where(several, 0.0, spread),
        np.clip(data.box_edges[box], -FAR, FAR),
        box == data.half_box,
        len(data.box_edges),
    )
    total = log_weight + answers
    found: FloatArray = logsumexp(total, axis=1)
    return found


def _points(posterior: list[FloatArray], rng: np.random.Generator) -> list[FloatArray]:
    """Points for the participant's four standardised parameters, and the log-weight of each: five of (1, point).

    Half are from the prior (three standard normals and a Student t), half from normals around the posterior.
    """
    priors: list[Any] = [stats.t(_BIAS_DF) if name == "bias_unit" else stats.norm() for name in _UNITS]
    around = [stats.norm(draws.mean(), _WIDER * draws.std()) for draws in posterior]
    near = np.arange(_POINTS) % 2 == 0
    points = [
        np.where(near, close.rvs(_POINTS, random_state=rng), prior.rvs(_POINTS, random_state=rng))
        for close, prior in zip(around, priors, strict=True)
    ]
    log_prior = sum(prior.logpdf(x) for prior, x in zip(priors, points, strict=True))
    log_near = sum(close.logpdf(x) for close, x in zip(around, points, strict=True))
    log_weight = log_prior - np.logaddexp(log_prior, log_near) + np.log(2 / _POINTS)
    return [*(x[None, :] for x in points), log_weight[None, :]]
