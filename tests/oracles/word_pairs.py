"""The word pair model's likelihood, written for NumPy a second time; and its pieces by numerical integration."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import norm

from shannon_game.models.cloze.tvd import WordPairData


def log_likelihood(
    theta: np.ndarray, log_u: np.ndarray, log_u_equal: np.ndarray, share_equal: float, data: WordPairData
) -> np.ndarray:
    """Of contexts that may have equal distributions."""
    return np.logaddexp(
        np.log(share_equal) + equal(theta, log_u_equal, data), np.log1p(-share_equal) + different(theta, log_u, data)
    )


def equal(theta: np.ndarray, log_u: np.ndarray, data: WordPairData) -> np.ndarray:
    """As `different`, of distributions that are one: the two samples are one sample, dealt out."""
    u = np.exp(log_u).sum(axis=0)
    total = (data.n_a * log_u[0]) + (data.n_b * log_u[1])
    for c in range(data.n_contexts):
        mass, d = np.exp(theta[0, c]), expit(theta[3, c])
        # the words' sizes on a log grid, seen ones and those that were not
        z = np.exp(np.linspace(-60, 4, 20_001))
        density = mass * z**-d * np.exp(-z)
        total[c] -= np.trapezoid(density * -np.expm1(-u[c] * z), np.log(z))
        for row in np.flatnonzero(data.context == c):
            n = data.a[row] + data.b[row]
            terms = np.log(mass) + (n - d) * np.log(z) - (1 + u[c]) * z
            one = terms.max() + np.log(np.trapezoid(np.exp(terms - terms.max()), np.log(z)))
            total[c] += data.words[row] * one
    return total


def different(theta: np.ndarray, log_u: np.ndarray, data: WordPairData) -> np.ndarray:
    """Of the counts and the auxiliary variables, per context, word by word; constants left out."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(11)
    log_weights = np.log(weights / weights.sum())
    total = np.zeros(data.n_contexts)
    for c in range(data.n_contexts):
        log_mass, d, e, sigma = theta[:3, c], expit(theta[3, c]), expit(theta[4, c]), np.exp(theta[5, c])
        u = np.exp(log_u[:, c])
        rate = 1 + u[0] * np.exp(sigma * nodes / 2) + u[1] * np.exp(-sigma * nodes / 2)
        value = data.n_a[c] * log_u[0, c] + data.n_b[c] * log_u[1, c]
        value -= np.exp(log_mass[0] + gammaln(1 - d)) / d * (np.exp(log_weights) * (rate**d - 1)).sum()
        for side in (0, 1):
            value -= np.exp(log_mass[1 + side] + gammaln(1 - e)) / e * ((1 + u[side]) ** e - 1)
        for row in np.flatnonzero(data.context == c):
            a, b = data.a[row], data.b[row]
            # far more nodes than any count here needs
            x = np.linspace(-9, 9, 4001)
            fine = 1 + u[0] * np.exp(sigma * x / 2) + u[1] * np.exp(-sigma * x / 2)
            terms = norm.logpdf(x) + (a - b) * sigma * x / 2 - (a + b - d) * np.log(fine)
            one = log_mass[0] + gammaln(a + b - d) + logsumexp(terms) + np.log(x[1] - x[0])
            if a == 0 or b == 0:
                side = 0 if b == 0 else 1
                alone = log_mass[1 + side] + gammaln(a + b - e) - (a + b - e) * np.log1p(u[side])
                one = np.logaddexp(one, alone)
            value += data.words[row] * one
        total[c] = value
    return total
