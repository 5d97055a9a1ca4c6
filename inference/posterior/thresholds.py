"""What a posterior must reach, and what samples it; no package of the extra bayes is needed to say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SamplerName = Literal["nutpie", "pymc", "numpyro", "blackjax"]
"""NUTS by these packages; ``numpyro`` and ``blackjax`` come with the extra ``samplers``."""


@dataclass(frozen=True)
class GateThresholds:
    """What a posterior must reach.

    Attributes
    ----------
    r_hat : float
        Largest rank-normalised R-hat (Vehtari et al. 2021).
    ess_bulk, ess_tail : float
        Smallest effective sample sizes; 100 a chain with four chains.
    divergent : int
        Most divergent transitions.
    bfmi : float
        Smallest energy Bayesian fraction of missing information of a chain.
    """

    r_hat: float = 1.01
    ess_bulk: float = 400.0
    ess_tail: float = 400.0
    divergent: int = 0
    bfmi: float = 0.3
