"""Posterior of the total variation distance between two samples of words over an unknown vocabulary.

Given the parameters of :func:`shannon_game.models.cloze.tvd.word_pair_model`, sizes of the words seen are gamma
distributed. Words never seen enter through their total at each quadrature node: tempered stable, drawn from the gamma
distribution of the same mean and variance. Where the distributions of a context may be equal, some of its draws are
exactly zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, gammaln

from shannon_game.estimators.arrays import FloatArray
from shannon_game.inference.posterior.arviz_adapter import InferenceData, from_groups, group, group_names
from shannon_game.models.cloze.tvd import LARGEST_LOG, LEAST_DISCOUNT, NODE_LOG_WEIGHTS, NODES, WordPairData

# cells of x in which a word's ratio is drawn, in sds of what its counts say
_STEP = 0.4
_GRID = _STEP * np.arange(-12, 13)


@dataclass(frozen=True, eq=False)
class TvdPosterior:
    """Posterior of the distance: ``tvd`` by context, ``expected_tvd``, their mean, and the population."""

    idata: InferenceData

    @property
    def tvd(self) -> FloatArray:
        """Draws, shape (chain, draw, context)."""
        return np.asarray(group(self.idata, "posterior")["tvd"].transpose("chain", "draw", "context"), dtype=float)

    def interval(self, probability: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed interval of each context."""
        tail = (1 - probability) / 2
        lower, upper = np.quantile(self.tvd, [tail, 1 - tail], axis=(0, 1))
        return lower, upper

    def mean(self) -> FloatArray:
        """Posterior mean of each context."""
        draws = self.tvd
        return np.asarray(draws.reshape(-1, draws.shape[-1]).mean(axis=0))

    def expected(self) -> FloatArray:
        """Draws of the mean over contexts: the expected TVD of these contexts. Shape (chain, draw)."""
        return np.asarray(self.tvd.mean(axis=2))

    def judged(self) -> InferenceData:
        """What the convergence gate should judge: all but distances that are 0 in every draw, which have no R-hat."""
        posterior = group(self.idata, "posterior")
        moves = (posterior["tvd"] > 0).any(("chain", "draw")).to_numpy()
        kept = posterior.isel(context=np.flatnonzero(moves))
        groups = {"posterior": kept if moves.any() else kept.drop_vars(["tvd", "expected_tvd"])}
        return from_groups(groups | {"sample_stats": group(self.idata, "sample_stats")})


def tvd_posterior(idata: InferenceData, data: WordPairData, *, rng: np.random.Generator) -> TvdPosterior:
    """Draw every context's distance, once for each posterior draw of the parameters, given which it is random."""
    posterior = group(idata, "posterior")
    theta = posterior["theta"].transpose("chain", "draw", "parameter", "context").to_numpy()
    log_u = posterior["log_u"].transpose("chain", "draw", "side", "context").to_numpy()
    both = np.concatenate([theta, log_u], axis=2)
    unseen = posterior["unseen"].transpose("chain", "draw").to_numpy()
    tvd = np.stack(
        [[_draw_tvd(*one, data, rng) for one in zip(*chain, strict=True)] for chain in zip(both, unseen, strict=True)]
    )
    dims = ("chain", "draw", "context")
    equal = expit(posterior["log_odds_equal"].transpose(*dims).to_numpy())
    tvd[rng.random(equal.shape) < equal] = 0.0
    kept = [str(name) for name in posterior.data_vars if str(name).startswith(("population_", "share_"))]
    drawn = posterior[kept].assign(tvd=(dims, tvd), expected_tvd=(dims[:2], tvd.mean(axis=2)))
    groups = {name: group(idata, name) for name in group_names(idata)} | {"posterior": drawn}
    return TvdPosterior(from_groups(groups))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Parameters of all contexts, and what is used of them again and again."""

    log_mass: FloatArray  # (3, context): shared, first only, second only
    d_shared: FloatArray
    d_exclusive: FloatArray
    tilt: FloatArray  # (context, node): half the log-ratio of the two weights
    log_1p_u: tuple[FloatArray, FloatArray, FloatArray]  # shared (context, node), first only and second only (context,)


def _parts(theta: FloatArray) -> _Parts:
    discounts = 1 / (1 + np.exp(-theta[3:5]))
    tilt = np.clip(np.exp(theta[5])[:, None] * NODES / 2, -LARGEST_LOG, LARGEST_LOG)
    log_u = theta[6:8]
    shared = np.logaddexp(log_u[0][:, None] + tilt, log_u[1][:, None] - tilt)
    log_1p_u = (np.logaddexp(0, shared), np.logaddexp(0, log_u[0]), np.logaddexp(0, log_u[1]))
    return _Parts(theta[:3], discounts[0], discounts[1], tilt, log_1p_u)


def _word_terms(
    parts: _Parts, sigma: FloatArray, log_u: FloatArray, data: WordPairData
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log-likelihood of each row as a shared word on a grid, as a word of one side (-inf: both have it); half of it."""
    context, a, b, n = data.context, data.a, data.b, data.a + data.b
    sigma = sigma[context]
    information = sigma**2 * (a + 0.5) * (b + 0.5) / (n + 1)
    ratio = (np.log((a + 0.5) / (b + 0.5)) - (log_u[0] - log_u[1])[context]) / sigma
    middle, width = information * ratio / (1 + information), 1 / np.sqrt(1 + information)
    x = middle[:, None] + width[:, None] * _GRID
    half = np.clip(sigma[:, None] * x / 2, -LARGEST_LOG, LARGEST_LOG)
    left_shared, left_exclusive = n - parts.d_shared[context], n - parts.d_exclusive[context]
    log_rate = np.logaddexp(0, np.logaddexp(log_u[0][context][:, None] + half, log_u[1][context][:, None] - half))
    shared = (a - b)[:, None] * half - left_shared[:, None] * log_rate - x**2 / 2
    shared += (np.log(width * _STEP / np.sqrt(2 * np.pi)) + parts.log_mass[0][context] + gammaln(left_shared))[:, None]
    side = np.where(b == 0, 1, 2)
    log_1p_u = np.where(side == 1, parts.log_1p_u[1][context], parts.log_1p_u[2][context])
    mass = np.where(side == 1, parts.log_mass[1][context], parts.log_mass[2][context])
    exclusive = mass - left_exclusive * log_1p_u + gammaln(left_exclusive)
    return shared, np.where((a > 0) & (b > 0), -np.inf, exclusive), half


def _draw_tvd(theta: FloatArray, log_times: float, data: WordPairData, rng: np.random.Generator) -> FloatArray:
    """Draw every context's distance, given its parameters, that it is not 0, and how different unseen words are."""
    parts = _parts(theta)
    shared, exclusive, half = _word_terms(parts, np.exp(theta[5]), theta[6:8], data)
    terms = np.concatenate([shared, exclusive[:, None]], axis=1)
    cumulative = np.exp(terms - terms.max(axis=1, keepdims=True)).cumsum(axis=1)
    # from here on every word is a row
    row = np.repeat(np.arange(len(data.words)), data.words)
    cell = (rng.random(len(row))[:, None] * cumulative[row, -1:] > cumulative[row]).sum(axis=1)
    is_exclusive = cell == len(_GRID)
    step = half[row, 1] - half[row, 0]
    tilt = half[row, np.minimum(cell, len(_GRID) - 1)] + step * (rng.random(len(row)) - 0.5)
    context, a, b = data.context[row], data.a[row], data.b[row]
    first = np.where(is_exclusive, (b == 0).astype(float), np.exp(tilt))
    second = np.where(is_exclusive, (a == 0).astype(float), np.exp(-tilt))
    discount = np.where(is_exclusive, parts.d_exclusive[context], parts.d_shared[context])
    u = np.exp(theta[6:8])
    size = rng.standard_gamma(a + b - discount) / (1 + u[0][context] * first + u[1][context] * second)
    rest = _unseen(parts.log_mass[0][:, None] + NODE_LOG_WEIGHTS, parts.d_shared[:, None], parts.log_1p_u[0], rng)
    rest_first = _unseen(parts.log_mass[1], parts.d_exclusive, parts.log_1p_u[1], rng)
    rest_second = _unseen(parts.log_mass[2], parts.d_exclusive, parts.log_1p_u[2], rng)
    up, down = np.exp(parts.tilt), np.exp(-parts.tilt)
    n = data.n_contexts
    sum_first = np.bincount(context, first * size, n) + (rest * up).sum(axis=1) + rest_first
    sum_second = np.bincount(context, second * size, n) + (rest * down).sum(axis=1) + rest_second
    seen = np.abs(first * size / sum_first[context] - second * size / sum_second[context])
    one, other = rest * up / sum_first[:, None], rest * down / sum_second[:, None]
    alone = rest_first / sum_first + rest_second / sum_second
    apart = np.exp(log_times) * (np.abs(one - other).sum(axis=1) + alone)
    at_most = (one + other).sum(axis=1) + alone
    return np.asarray((np.bincount(context, seen, n) + np.minimum(apart, at_most)) / 2)


def _unseen(log_mass: FloatArray, discount: FloatArray, log_1p_u: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Total size of the words of a process that were never seen: gamma with the mean and variance of its law."""
    # a discount of 1 within rounding has no variance
    discount = np.minimum(discount, 1 - LEAST_DISCOUNT)
    mean = np.exp(log_mass + gammaln(1 - discount) + (discount - 1) * log_1p_u)
    # variance over mean: Gamma(2 - d) / Gamma(1 - d) = 1 - d
    scale = (1 - discount) * np.exp(-log_1p_u)
    # a scale below all floats leaves the mean alone
    varies = (scale > 0) & (mean > 0)
    shape = np.divide(mean, scale, out=np.ones_like(mean), where=varies)
    return np.where(varies, rng.standard_gamma(shape) * scale, mean)
