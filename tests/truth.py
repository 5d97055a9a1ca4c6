"""How far known true values are from a posterior, as one number whose distribution is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.inference.posterior.arviz_adapter import ess_bulk

FAR = 4.0
"""A calibrated posterior has a larger :func:`distance` about once in 10,000 studies."""


def smallest_ess(draws: ArrayLike) -> float:
    """Smallest effective sample size of quantities with dims (chain, draw, quantity); chains that disagree have few."""
    columns = np.asarray(draws, dtype=float)
    columns = columns.reshape(*columns.shape[:2], -1)
    return min(ess_bulk(columns[..., k]) for k in range(columns.shape[2]))


def distance(draws: ArrayLike, truth: ArrayLike) -> float:
    """z-score of the Mahalanobis distance of the true values from the posterior mean.

    Parameters that share people, questions or a scale are no independent trials: the covariance of the draws says how
    much they share. A calibrated posterior's own draws are as far from its mean as the truth is. The cube root of a
    squared distance is nearly normal (Wilson and Hilferty 1931), so that the mean and standard deviation over the draws
    turn it into a z-score, also where the posterior is not normal.

    Draws, (chain, draw) or (chain, draw, parameter), need 100 effective ones and 10 a parameter: the error of mean and
    covariance then adds .3 to the z-score at most. Divergent draws do not count against it: the distance shows what
    they would hide.
    """
    true = np.atleast_1d(np.asarray(truth, dtype=float))
    ess = smallest_ess(draws)
    assert ess >= max(100, 10 * true.size), f"{ess:.0f} effective draws do not tell how far {true.size} parameters are"
    flat = np.asarray(draws, dtype=float).reshape(-1, true.size)
    precision = np.linalg.inv(np.atleast_2d(np.cov(flat.T)))
    off = np.vstack([flat, true]) - flat.mean(axis=0)
    cube_root = np.cbrt(np.einsum("ij,jk,ik->i", off, precision, off))
    return float((cube_root[-1] - cube_root[:-1].mean()) / cube_root[:-1].std())
