r"""Posterior of the total variation distance between two samples of words over an unknown vocabulary.

Two samples of 20 answers from one Zipf distribution over 2,000 words have a TVD of .8, and no correction of the raw
number knows whether the many words that only one sample has are words that only one distribution has. What can be
known comes from the words that both have, and from how the answers of each repeat. The model states this as a
bivariate random measure, a compound random measure in the sense of Griffin and Leisen (2017):

Words are the points of three independent generalised gamma processes, with Lévy intensity
:math:`\nu(dz) = M z^{-1-d} e^{-z} dz`, whose discount *d* in (0, 1) gives power-law (Zipf-like) tails as in the
Pitman-Yor process: shared words (*M_s*, *d_s*), words of the first distribution only, of the second only (*M_1*,
*M_2*, *d_e*). A shared word of size *z* has weights :math:`z e^{\sigma x / 2}` and :math:`z e^{-\sigma x / 2}` with
*x* standard normal, so that both distributions differ by the same factor all along their ranks; the words of one
side, with a discount of their own, let the tails be more (or less) alike than the heads. Distributions are the
weights over their sums.

With auxiliary variables *u_1*, *u_2* for the sums (James, Lijoi and Prünster 2009) sizes are integrated out exactly
and *x* by Gauss-Hermite quadrature. Given the parameters, sizes of the words seen are gamma distributed, and all
words that were never seen enter the distance only through their total at each quadrature node, which is tempered
stable and drawn from the gamma distribution of the same mean and variance. Parameters vary over contexts around
population means that are learnt from all of them (``pooled``), which is what makes 20 answers a context enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimators.cpd import WordCounts, align, relative_frequencies
from estimators.errors import InputError

__all__ = ["PARAMETERS", "TvdPosterior", "WordPairPriors", "WordPairSettings", "tvd_posterior"]

Floats = NDArray[np.float64]

PARAMETERS = (
    "log_mass_shared",
    "log_mass_first",
    "log_mass_second",
    "logit_d_shared",
    "logit_d_exclusive",
    "log_sigma",
)
"""Parameters of each context, in the order of the draws."""

_N_NODES = 11
_N_PARAMETERS = len(PARAMETERS)
_ADAPT_TO = 0.4


@dataclass(frozen=True)
class WordPairPriors:
    """Weak priors of the parameters of a context, or of their population means.

    Parameters
    ----------
    mean, sd : mapping of str to float
        By parameter (:data:`PARAMETERS`), on the scale of its name.
    population_df : float
        Degrees of freedom of the inverse chi-squared prior of a population variance.
    population_scale : float
        Its scale, as a share of the sd above.
    """

    mean: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType(dict(zip(PARAMETERS, (1.0, -0.5, -0.5, -0.5, 0.0, -0.7), strict=True)))
    )
    sd: Mapping[str, float] = field(
        default_factory=lambda: MappingProxyType(dict(zip(PARAMETERS, (1.5, 1.5, 1.5, 1.0, 1.0, 0.8), strict=True)))
    )
    population_df: float = 3.0
    population_scale: float = 0.55


@dataclass(frozen=True)
class WordPairSettings:
    """Length of the Markov chains.

    Parameters
    ----------
    tune, draws : int
        Sweeps of each chain, before and after the proposals are fixed.
    thin : int
        Every so many sweeps are kept.
    chains : int
        At least 2, for the convergence checks.
    """

    tune: int = 300
    draws: int = 500
    thin: int = 2
    chains: int = 2

    def __post_init__(self) -> None:
        """Check the lengths."""
        for name, lowest in (("tune", 10), ("draws", 4), ("thin", 1), ("chains", 2)):
            value: Any = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
                raise InputError(f"is {value!r}, should be a whole number, {lowest} or larger", field=name)
        if self.draws // self.thin < 4:
            raise InputError(f"is {self.draws}, which leaves fewer than 4 with thin={self.thin}", field="draws")


@dataclass(frozen=True, eq=False)
class TvdPosterior:
    """Posterior draws of the distance.

    Parameters
    ----------
    tvd : ndarray of float, shape (chain, draw, context)
    population : ndarray of float, shape (chain, draw, parameter)
        Population means where contexts are pooled, else the means over contexts.
    n_first, n_second : ndarray of int, shape (context,)
        Answers behind it.
    """

    tvd: Floats
    population: Floats
    n_first: NDArray[np.int64]
    n_second: NDArray[np.int64]

    def interval(self, probability: float = 0.9) -> tuple[Floats, Floats]:
        """Equal-tailed interval of each context."""
        tail = (1 - probability) / 2
        lower, upper = np.quantile(self._flat(), [tail, 1 - tail], axis=0)
        return lower, upper

    def mean(self) -> Floats:
        """Posterior mean of each context."""
        return np.asarray(self._flat().mean(axis=0))

    def expected(self) -> Floats:
        """Draws of the mean over contexts: the expected TVD of these contexts. Shape (chain, draw)."""
        return np.asarray(self.tvd.mean(axis=2))

    def _flat(self) -> Floats:
        return self.tvd.reshape(-1, self.tvd.shape[-1])


@dataclass(frozen=True, eq=False)
class _Data:
    """Rows are the different pairs of counts in a context: words with the same pair have the same likelihood."""

    context: NDArray[np.int64]
    a: Floats
    b: Floats
    words: NDArray[np.int64]  # how many words have this pair
    n: int
    n_a: Floats
    n_b: Floats
    nodes: Floats
    log_weights: Floats

    def by_context(self, values: Floats) -> Floats:
        return np.bincount(self.context, weights=values, minlength=self.n).astype(float)

    def each_word(self) -> _Data:
        """The same with one row a word, for what differs between words of one pair of counts."""
        row = np.repeat(np.arange(len(self.words)), self.words)
        return replace(self, context=self.context[row], a=self.a[row], b=self.b[row], words=np.ones(len(row), np.int64))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parameters of all contexts, and what is used of them again and again."""

    log_mass: Floats  # (3, context): shared, first only, second only
    d_shared: Floats
    d_exclusive: Floats
    tilt: Floats  # (context, node): half the log-ratio of the two weights
    log_1p_u: tuple[Floats, Floats, Floats]  # shared (context, node), first only and second only (context,)


def tvd_posterior(
    first: WordCounts,
    second: WordCounts,
    *,
    rng: np.random.Generator,
    pooled: bool = True,
    priors: WordPairPriors | None = None,
    settings: WordPairSettings | None = None,
) -> TvdPosterior:
    """Sample the posterior of each context's total variation distance.

    Parameters
    ----------
    first, second : WordCounts
        Answers of the same contexts, in one coding of words: people's and a model's, or two halves of people's.
    rng : numpy.random.Generator
    pooled : bool, optional
        Learn the population of contexts from all of them. Without it every context has the weak priors only: for
        a single context, or where contexts have nothing in common.
    priors : WordPairPriors, optional
    settings : WordPairSettings, optional

    Returns
    -------
    TvdPosterior

    Raises
    ------
    InputError
        If a context has no answer on one side.
    """
    priors, settings = priors or WordPairPriors(), settings or WordPairSettings()
    data = _data(first, second)
    chains = [_chain(data, pooled, priors, settings, one) for one in rng.spawn(settings.chains)]
    return TvdPosterior(
        np.stack([tvd for tvd, _ in chains]),
        np.stack([population for _, population in chains]),
        first.totals,
        second.totals,
    )


def _data(first: WordCounts, second: WordCounts) -> _Data:
    both = align(relative_frequencies(first), relative_frequencies(second))
    totals = [first.totals, second.totals]
    for name, total in zip(("first", "second"), totals, strict=True):
        if (total == 0).any():
            raise InputError(f"has no answer in context {int(np.argmin(total))}; leave the context out", field=name)
    a, b = (np.rint(p * total[both.context]) for p, total in zip((both.p, both.q), totals, strict=True))
    cases, words = np.unique(
        np.stack([both.context, a.astype(np.int64), b.astype(np.int64)]), axis=1, return_counts=True
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(_N_NODES)
    return _Data(
        cases[0],
        cases[1].astype(float),
        cases[2].astype(float),
        words,
        both.n_contexts,
        totals[0].astype(float),
        totals[1].astype(float),
        nodes,
        np.log(weights / weights.sum()),
    )


def _parts(theta: Floats, data: _Data) -> _Parts:
    discounts = 1 / (1 + np.exp(-theta[3:5]))
    tilt = np.exp(theta[5])[:, None] * data.nodes / 2
    log_u = theta[6:8]
    shared = np.logaddexp(log_u[0][:, None] + tilt, log_u[1][:, None] - tilt)
    log_1p_u = (np.logaddexp(0, shared), np.logaddexp(0, log_u[0]), np.logaddexp(0, log_u[1]))
    return _Parts(theta[:3], discounts[0], discounts[1], tilt, log_1p_u)


def _word_terms(parts: _Parts, data: _Data) -> tuple[Floats, Floats]:
    """Log-likelihood of each row as a shared word at every node, and as a word of one side (-inf: both have it)."""
    from scipy.special import gammaln  # noqa: PLC0415 - half a second that importing this module does not need

    context, n = data.context, data.a + data.b
    left_shared, left_exclusive = n - parts.d_shared[context], n - parts.d_exclusive[context]
    shared = data.log_weights + (data.a - data.b)[:, None] * parts.tilt[context]
    shared -= left_shared[:, None] * parts.log_1p_u[0][context]
    shared += (parts.log_mass[0][context] + gammaln(left_shared))[:, None]
    side = np.where(data.b == 0, 1, 2)
    log_1p_u = np.where(side == 1, parts.log_1p_u[1][context], parts.log_1p_u[2][context])
    mass = np.where(side == 1, parts.log_mass[1][context], parts.log_mass[2][context])
    exclusive = mass - left_exclusive * log_1p_u + gammaln(left_exclusive)
    return shared, np.where((data.a > 0) & (data.b > 0), -np.inf, exclusive)


def _log_likelihood(theta: Floats, data: _Data) -> Floats:
    """Of the counts and the auxiliary variables, per context; constants left out."""
    from scipy.special import gammaln  # noqa: PLC0415

    parts = _parts(theta, data)
    shared, exclusive = _word_terms(parts, data)
    highest = shared.max(axis=1)
    rows = np.logaddexp(highest + np.log(np.exp(shared - highest[:, None]).sum(axis=1)), exclusive)
    d, e = parts.d_shared, parts.d_exclusive
    laplace_shared = (np.exp(data.log_weights + d[:, None] * parts.log_1p_u[0])).sum(axis=1) - 1
    laplace = np.exp(parts.log_mass[0] + gammaln(1 - d)) / d * laplace_shared
    for side in (1, 2):
        laplace += np.exp(parts.log_mass[side] + gammaln(1 - e)) / e * np.expm1(e * parts.log_1p_u[side])
    total: Floats = data.n_a * theta[6] + data.n_b * theta[7] - laplace + data.by_context(data.words * rows)
    return total


def _draw_tvd(theta: Floats, data: _Data, rng: np.random.Generator) -> Floats:
    """One draw of every context's distance, given its parameters."""
    parts = _parts(theta, data)
    shared, exclusive = _word_terms(parts, data)
    terms = np.concatenate([shared, exclusive[:, None]], axis=1)
    cumulative = np.exp(terms - terms.max(axis=1, keepdims=True)).cumsum(axis=1)
    node = (rng.random(len(terms))[:, None] * cumulative[:, -1:] > cumulative).sum(axis=1)
    is_exclusive = node == _N_NODES
    context = data.context
    tilt = parts.tilt[context, np.minimum(node, _N_NODES - 1)]
    first = np.where(is_exclusive, (data.b == 0).astype(float), np.exp(tilt))
    second = np.where(is_exclusive, (data.a == 0).astype(float), np.exp(-tilt))
    discount = np.where(is_exclusive, parts.d_exclusive[context], parts.d_shared[context])
    u = np.exp(theta[6:8])
    size = rng.standard_gamma(data.a + data.b - discount) / (1 + u[0][context] * first + u[1][context] * second)
    rest = _unseen(parts.log_mass[0][:, None] + data.log_weights, parts.d_shared[:, None], parts.log_1p_u[0], rng)
    rest_first = _unseen(parts.log_mass[1], parts.d_exclusive, parts.log_1p_u[1], rng)
    rest_second = _unseen(parts.log_mass[2], parts.d_exclusive, parts.log_1p_u[2], rng)
    up, down = np.exp(parts.tilt), np.exp(-parts.tilt)
    sum_first = data.by_context(first * size) + (rest * up).sum(axis=1) + rest_first
    sum_second = data.by_context(second * size) + (rest * down).sum(axis=1) + rest_second
    seen = np.abs(first * size / sum_first[context] - second * size / sum_second[context])
    unseen = rest * np.abs(up / sum_first[:, None] - down / sum_second[:, None])
    total = data.by_context(seen) + unseen.sum(axis=1) + rest_first / sum_first + rest_second / sum_second
    return np.asarray(total / 2)


def _unseen(log_mass: Floats, discount: Floats, log_1p_u: Floats, rng: np.random.Generator) -> Floats:
    """Total size of the words of a process that were never seen: gamma with the mean and variance of its law."""
    from scipy.special import gammaln  # noqa: PLC0415

    mean = np.exp(log_mass + gammaln(1 - discount) + (discount - 1) * log_1p_u)
    # variance over mean: Gamma(2 - d) / Gamma(1 - d) = 1 - d
    scale = (1 - discount) * np.exp(-log_1p_u)
    return np.asarray(rng.standard_gamma(mean / scale) * scale)


@dataclass
class _State:
    """Where a chain is: parameters of all contexts, their population, the log-likelihood, and the step sizes."""

    theta: Floats
    mean: Floats
    sd: Floats
    value: Floats
    step: Floats
    joint: Floats


@dataclass(frozen=True, eq=False)
class _Population:
    """Prior of means (normal) and of sds over contexts (their squares scaled inverse chi-squared), independent."""

    mean: Floats
    sd: Floats
    df: float
    scale: float

    def log_density(self, mean: Floats, sd: Floats) -> float:
        """Of the means and the logarithms of the sds."""
        spread = self.df * (self.scale * self.sd) ** 2
        far = ((mean - self.mean) / self.sd) ** 2
        return float(np.sum(-self.df * np.log(sd) - 0.5 * spread / sd**2 - 0.5 * far))

    def draw(self, theta: Floats, sd: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw means given sds, then sds given means, given the parameters of all contexts (each conjugate)."""
        n = theta.shape[1]
        precision = n / sd**2 + 1 / self.sd**2
        centre = (theta.sum(axis=1) / sd**2 + self.mean / self.sd**2) / precision
        mean = centre + rng.standard_normal(len(sd)) / np.sqrt(precision)
        squares = self.df * (self.scale * self.sd) ** 2 + ((theta - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(squares / rng.chisquare(self.df + n, size=len(sd)))


def _chain(
    data: _Data, pooled: bool, priors: WordPairPriors, settings: WordPairSettings, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Metropolis within Gibbs: each parameter of all contexts at once, then the population."""
    mean, sd = (np.array([values[name] for name in PARAMETERS]) for values in (priors.mean, priors.sd))
    prior = _Population(mean, sd, priors.population_df, priors.population_scale)
    theta = np.empty((_N_PARAMETERS + 2, data.n))
    # chains start apart, or they could not tell that they have not met
    apart = rng.standard_normal((_N_PARAMETERS, 1)) + 0.2 * rng.standard_normal((_N_PARAMETERS, data.n))
    theta[:_N_PARAMETERS] = mean[:, None] + 0.5 * sd[:, None] * apart
    theta[_N_PARAMETERS:] = np.log([data.n_a, data.n_b]) - 0.5
    step = np.full((3, _N_PARAMETERS), 0.3)
    state = _State(theta, mean.copy(), sd.copy(), _log_likelihood(theta, data), step, 0.1 * np.eye(_N_PARAMETERS))
    moves = _moves()
    own_step = np.full((len(moves), data.n), 0.5)
    each_word = data.each_word()
    kept, population, history = [], [], []
    for sweep in range(settings.tune + settings.draws):
        tuning = sweep < settings.tune
        _move_each(state, data, moves, own_step, rng, tuning=tuning)
        if pooled:
            state.mean, state.sd = prior.draw(state.theta[:_N_PARAMETERS], state.sd, rng)
            _shift_and_stretch(state, data, prior, rng, tuning=tuning)
            if tuning:
                history.append(state.mean.copy())
                if sweep in (settings.tune // 3, 2 * settings.tune // 3):
                    state.joint = _joint_directions(np.stack(history[len(history) // 2 :]))
        if not tuning and (sweep - settings.tune) % settings.thin == 0:
            kept.append(_draw_tvd(state.theta, each_word, rng))
            population.append(state.mean.copy() if pooled else state.theta[:_N_PARAMETERS].mean(axis=1))
    return np.stack(kept), np.stack(population)


def _joint_directions(history: Floats) -> Floats:
    """Principal directions of what the means have done, each as long as its sd."""
    covariance = np.cov(history.T) + 1e-4 * np.eye(_N_PARAMETERS)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(values)).T)


def _move_each(
    state: _State, data: _Data, moves: list[Floats], step: Floats, rng: np.random.Generator, *, tuning: bool
) -> None:
    """Random walk of every context by itself, along each direction in turn."""
    for m, direction in enumerate(moves):
        proposal = state.theta + direction[:, None] * (step[m] * rng.standard_normal(data.n))
        with np.errstate(over="ignore", invalid="ignore"):
            proposed = _log_likelihood(proposal, data)
        change = proposed - state.value + _log_prior(proposal, state.mean, state.sd)
        change -= _log_prior(state.theta, state.mean, state.sd)
        # a proposal far out overflows to NaN or inf, which is no better than impossible
        accepted = np.log(rng.random(data.n)) < np.where(np.isfinite(change), change, -np.inf)
        state.theta[:, accepted] = proposal[:, accepted]
        state.value = np.where(accepted, proposed, state.value)
        if tuning:
            step[m] *= np.exp((accepted - _ADAPT_TO) * 0.15)


def _shift_and_stretch(
    state: _State, data: _Data, prior: _Population, rng: np.random.Generator, *, tuning: bool
) -> None:
    """Shift parameters of all contexts with their means, and stretch them around their means with their sds.

    One context at a time a population that hardly varies hardly moves; these are the updates with contexts in units
    of the population (Yu and Meng 2011). Shifts go along each parameter, and along what the means have done together
    while tuning, because a larger shared mass does what a smaller discount does.
    """
    unit = np.eye(_N_PARAMETERS)
    for kind, directions in ((0, unit), (1, unit), (2, state.joint)):
        for j, direction in enumerate(directions):
            move = state.step[kind, j] * rng.standard_normal() * direction
            if kind == 1:
                centre, spread = state.mean, state.sd * np.exp(move)
            else:
                centre, spread = state.mean + move * (state.sd if kind == 0 else 1), state.sd
            proposal = state.theta.copy()
            units = (state.theta[:_N_PARAMETERS] - state.mean[:, None]) / state.sd[:, None]
            proposal[:_N_PARAMETERS] = centre[:, None] + units * spread[:, None]
            with np.errstate(over="ignore", invalid="ignore"):
                proposed = _log_likelihood(proposal, data)
            change = proposed.sum() - state.value.sum() + prior.log_density(centre, spread)
            change -= prior.log_density(state.mean, state.sd)
            accepted = bool(np.isfinite(change) and np.log(rng.random()) < change)
            if accepted:
                state.theta, state.mean, state.sd, state.value = proposal, centre, spread, proposed
            if tuning:
                state.step[kind, j] *= np.exp((accepted - _ADAPT_TO) * 0.2)


def _moves() -> list[Floats]:
    """Directions of the random walk: every parameter, both sums together, shared mass against its discount."""
    size = _N_PARAMETERS + 2
    directions = list(np.eye(size))
    sums, tail = np.zeros(size), np.zeros(size)
    sums[_N_PARAMETERS:] = 1
    tail[[0, 3]] = 1, -1
    return [*directions, sums, tail]


def _log_prior(theta: Floats, mean: Floats, sd: Floats) -> Floats:
    scaled = (theta[:_N_PARAMETERS] - mean[:, None]) / sd[:, None]
    return np.asarray(-0.5 * (scaled**2).sum(axis=0))
