r"""How a report comes from the belief's log-odds: likelihoods that :func:`participant_model` takes, ours and yours.

A report likelihood is a function of :class:`People` that makes its parameters and returns a function of :class:`Asked`,
which gives the probability of the values that were reported. PyTensor has the gradient. One that pulls probabilities
toward one half:

>>> import pymc as pm
>>> import pytensor.tensor as pt
>>> from shannon_game.models.comparison.reports import Asked, People
>>> def toward_half(people: People):
...     slope, bias, noise = people.linear()
...     lapses, pull = people.lapses(), pm.Beta("pull", 1, 4)
...
...     def probability(asked: Asked):
...         k, b, s = asked.by_person(slope, bias, noise)
...         said = (1 - pull) * pt.sigmoid(k * (asked.log_odds + b)) + pull / 2
...         return asked.box(pt.log(said) - pt.log1p(-said), s, lapses)
...
...     return probability
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy.special import ndtr

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import unknown_choice
from shannon_game.models.compiled import compiled
from shannon_game.models.outside import Spread

_END, _CELLS = 8.0, 4096
_AT = np.linspace(-_END, _END, _CELLS + 1)
_CDF = ndtr(_AT)
_PDF = np.exp(-(_AT**2) / 2) / math.sqrt(2 * math.pi)
_PDF[[0, -1]] = 0.0
_PER_UNIT = _CELLS / (2 * _END)
_PLAYER_LAPSE = 1e-6


@dataclass(frozen=True, eq=False)
class People:
    """Who reports: makes participants' parameters, as a report likelihood asks for them, in the model being built.

    Attributes
    ----------
    n : int
        Participants; the model's dim ``participant`` has their names.
    priors : object
        Numbers of :class:`~shannon_game.models.ParticipantPriors`, as tensors.
    log_k0 : TensorVariable
        Logarithm of the geometric mean of slopes, a parameter or given.
    narrowest_nats : float
        Least standard deviation on the scale of the belief that the grid of log-ratios can tell.
    spreads : list of Spread
        Standard deviations over participants that were made, which the search for the mode treats as such.
    """

    n: int
    priors: Any
    log_k0: Any
    narrowest_nats: float
    covariates: FloatArray | None = None
    spreads: list[Spread] = field(default_factory=list)

    def each(self, name: str, mean: Any, sd: Any, *, centred: bool = True, zero_sum: bool = False) -> Any:
        """A parameter of every participant, normal around `mean` with a standard deviation of median `sd`, (person,).

        The standard deviation is the parameter ``NAME_sd``; covariates have effects ``NAME_effect``.
        """
        found = mean * np.ones(self.n)
        if self.n > 1:
            spread = pm.LogNormal(f"{name}_sd", pt.log(sd), self.priors.log_sd)
            if zero_sum:
                own, member = pm.ZeroSumNormal(f"log_{name}", spread, dims="participant"), f"log_{name}_zerosum__"
            elif centred:
                own, member = pm.Normal(f"{name}_own", 0, spread, dims="participant"), f"{name}_own"
            else:
                own, member = pm.Normal(f"{name}_own", 0, 1, dims="participant"), f"{name}_own"
            found = mean + (own if centred else spread * own)
            self.spreads.append(Spread(f"{name}_sd_log__", member, centred))
        if self.covariates is not None:
            found = found + self.covariates @ pm.Normal(f"{name}_effect", 0, self.priors.covariate, dims="covariate")
        return pt.as_tensor(found)

    def linear(self, bias_mean: Any = 0.0) -> tuple[Any, Any, Any]:
        """Slope, bias and noise of every participant."""
        p = self.priors
        log_noise = pm.Normal("log_noise", pt.log(p.noise), p.log_noise)
        slope = pt.exp(self.each("slope", self.log_k0, p.slope_sd, zero_sum=True))
        bias = self.each("bias", bias_mean, p.bias_sd)
        # less noise than the grid of log-ratios can tell would find modes between its places
        least = slope * self.narrowest_nats
        noise = pt.sqrt(pt.sqr(pt.exp(self.each("noise", log_noise, p.noise_sd, centred=False))) + pt.sqr(least))
        named = {"slope": slope, "bias": bias, "noise": noise}
        slope, bias, noise = (pm.Deterministic(name, one, dims="participant") for name, one in named.items())
        return slope, bias, noise

    def lapses(self, *, each: bool = False) -> Lapses:
        """Rate of lapses, of all participants or of each, and the share of lapses that are 50%."""
        p = self.priors
        typical = pm.Normal("logit_lapse", pt.log(p.lapse / (1 - p.lapse)), p.logit_lapse)
        logit = self.each("lapse", typical, p.lapse_sd) if each else typical
        rate = pm.Deterministic("lapse", pm.math.sigmoid(logit), dims="participant" if each else None)
        return Lapses(rate, pm.Beta("half", p.half_alpha, p.half_beta))


@dataclass(frozen=True, eq=False)
class Lapses:
    """Rate of reports that ignore the belief, () or (person,), and the share of them that are 50%; others are any."""

    rate: Any
    half: Any


@dataclass(frozen=True, eq=False)
class Asked:
    """Reports, and log-odds at which their probabilities are wanted; all broadcast against (report, place).

    Attributes
    ----------
    log_odds : TensorVariable
        The shared belief's in the target against the other token, nats.
    low, high : TensorVariable
        Ends of what was reported, in log-odds.
    at_half : TensorVariable
        1 where 50% was reported.
    person : TensorVariable, shape (report,)
        Positions along ``participant``.
    log_g_ratio : TensorVariable, shape (report, 1)
        ln g(y)/g(x): the log-odds of the generator.
    n_boxes : int
        Values of the scale.
    """

    log_odds: Any
    low: Any
    high: Any
    at_half: Any
    person: Any
    log_g_ratio: Any
    n_boxes: int

    def by_person(self, *values: Any) -> tuple[Any, ...]:
        """Values of participants, (person,), as those of reports, (report, 1)."""
        return tuple(value[self.person][:, None] for value in values)

    def box(self, mean: Any, noise: Any, lapses: Lapses) -> Any:
        """Probability of what was reported: normal noise around a mean, in log-odds, or a lapse."""
        rate = lapses.rate if lapses.rate.ndim == 0 else self.by_person(lapses.rate)[0]
        given = [pt.atleast_2d(pt.as_tensor(x)) for x in (mean, noise, self.low, self.high)]
        found: Any = normal_interval(*given)
        inside = found[0]
        return (1 - rate) * inside + rate * (lapses.half * self.at_half + (1 - lapses.half) / self.n_boxes)


ReportLikelihood = Callable[[People], Callable[[Asked], Any]]


def linear(people: People) -> Callable[[Asked], Any]:
    """Linear in log-odds, with a slope, a bias and noise of every participant; the default."""
    return _linear(people, people.lapses)


def shared_bias(people: People) -> Callable[[Asked], Any]:
    """Biases have a mean, which only free answers speak against (``bias_mean``)."""
    mean = pm.Normal("bias_mean", 0, people.priors.bias_mean)
    return _linear(people, people.lapses, mean)


def own_lapses(people: People) -> Callable[[Asked], Any]:
    """Every participant has a lapse rate of her own, around a typical one."""
    return _linear(people, lambda: people.lapses(each=True))


def _linear(people: People, make_lapses: Callable[[], Lapses], bias_mean: Any = 0.0) -> Callable[[Asked], Any]:
    slope, bias, noise = people.linear(bias_mean)
    lapses = make_lapses()

    def probability(asked: Asked) -> Any:
        k, b, s = asked.by_person(slope, bias, noise)
        return asked.box(k * (asked.log_odds + b), s, lapses)

    return probability


def pulled(people: People) -> Callable[[Asked], Any]:
    """The probability that is reported is a mixture with one half, of share ``pull``."""
    slope, bias, noise = people.linear()
    lapses, pull = people.lapses(), pm.Beta("pull", 1, 4)

    def probability(asked: Asked) -> Any:
        k, b, s = asked.by_person(slope, bias, noise)
        said = (1 - pull) * pt.sigmoid(k * (asked.log_odds + b)) + pull / 2
        return asked.box(pt.log(said) - pt.log1p(-said), s, lapses)

    return probability


def prospect(people: People) -> Callable[[Asked], Any]:
    """Probabilities are weighted as in prospect theory (Tversky and Kahneman 1992), with exponent ``gamma``."""
    slope, bias, noise = people.linear()
    # from 0.3, below which the weights do not grow with the probability, to 1.2
    lapses, gamma = people.lapses(), pm.Deterministic("gamma", 0.3 + 0.9 * pm.Beta("gamma_share", 3, 1.5))

    def probability(asked: Asked) -> Any:
        k, b, s = asked.by_person(slope, bias, noise)
        yes, no = -pt.softplus(-asked.log_odds), -pt.softplus(asked.log_odds)
        log_weight = gamma * yes - pt.logaddexp(gamma * yes, gamma * no) / gamma
        weighted = log_weight - pt.log(-pt.expm1(pt.minimum(log_weight, -1e-12)))
        return asked.box(k * (weighted + b), s, lapses)

    return probability


def equation_6(people: People) -> Callable[[Asked], Any]:
    """Equation 6: every participant uses what she knows of the generator with a weight of her own, around a mean."""
    slope, bias, noise = people.linear()
    lapses = people.lapses()
    weight = people.each("weight", pm.Normal("weight_mean", 0, 0.5), 0.2)
    weight = pm.Deterministic("weight", weight, dims="participant")

    def probability(asked: Asked) -> Any:
        k, b, s, w = asked.by_person(slope, bias, noise, weight)
        return asked.box(k * (asked.log_odds - w * asked.log_g_ratio + b), s, lapses)

    return probability


def player(people: People) -> Callable[[Asked], Any]:
    """A language model, which has no bias or lapses, and no more noise than the grid of log-ratios needs."""
    lapses = Lapses(pt.as_tensor(_PLAYER_LAPSE), pt.as_tensor(0.5))
    return lambda asked: asked.box(asked.log_odds, people.narrowest_nats, lapses)


REPORTS: dict[str, ReportLikelihood] = {
    one.__name__: one for one in (linear, shared_bias, pulled, prospect, own_lapses, equation_6)
}
"""Report likelihoods of ours by name."""


def report_likelihood(report: str | ReportLikelihood) -> ReportLikelihood:
    """Ours of a name, or what was given."""
    if isinstance(report, str) and report not in REPORTS:
        raise unknown_choice("report likelihood", report, REPORTS)
    return REPORTS[report] if isinstance(report, str) else report


@compiled
def _of(x: FloatArray, i: int, j: int) -> float:
    return x[min(i, x.shape[0] - 1), min(j, x.shape[1] - 1)]  # type: ignore[no-any-return]


@compiled
def _interval(mean, noise, low, high, out, d_mean, d_noise):  # noqa: PLR0917
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            here, per_sd = _of(mean, i, j), 1 / _of(noise, i, j)
            out[i, j] = d_mean[i, j] = d_noise[i, j] = 0.0
            for sign, end in ((1.0, _of(high, i, j)), (-1.0, _of(low, i, j))):
                z = (end - here) * per_sd
                # between the places of the tables on [-8, 8], and their ends beyond
                place = min(max((z + _END) * _PER_UNIT, 0.0), _CELLS - 1e-9)
                k = int(place)
                density = sign * (_PDF[k] + (place - k) * (_PDF[k + 1] - _PDF[k])) * per_sd
                out[i, j] += sign * (_CDF[k] + (place - k) * (_CDF[k + 1] - _CDF[k]))
                d_mean[i, j] -= density
                d_noise[i, j] -= density * z


class NormalInterval(Op):
    """Probability of a normal, of a mean and a standard deviation, between two numbers; and its derivatives by these.

    Tables have the normal distribution; ends of intervals are no parameters.
    """

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """Mean, standard deviation, lower and upper ends, (report, place); any may be broadcast."""
        four = [pt.as_tensor(x, dtype="float64") for x in inputs]
        shape = tuple(1 if all(x.type.broadcastable[at] for x in four) else None for at in range(2))
        return Apply(self, four, [pt.tensor(dtype="float64", shape=shape) for _ in range(3)])

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:  # noqa: ARG002
        """Compute."""
        found = np.empty((3, *np.broadcast_shapes(*(x.shape for x in inputs))))
        _interval(*(np.ascontiguousarray(x) for x in inputs), *found)
        for cell, value in zip(output_storage, found, strict=True):
            cell[0] = value

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        """Give the gradients of the first output."""
        own = []
        for x, derivative in zip(inputs[:2], outputs[1:], strict=True):
            axes = [at for at in range(2) if x.type.broadcastable[at] and not outputs[0].type.broadcastable[at]]
            by_place = cotangents[0] * derivative
            own.append(by_place.sum(axis=axes, keepdims=True) if axes else by_place)
        return [*own, *(disconnected_type() for _ in range(2))]

    def connection_pattern(self, node: Apply[Any]) -> list[list[bool]]:  # noqa: ARG002
        """Ends of intervals have no gradient."""
        return [[at < 2] * 3 for at in range(4)]

    L_op = pullback  # type: ignore[assignment]


normal_interval = NormalInterval()
