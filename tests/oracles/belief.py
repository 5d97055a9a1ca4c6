"""The belief model written out with loops and SciPy's own distributions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import integrate, stats


def log_two_piece(e: float, s_left: float, s_right: float) -> float:
    """Log-density of the two-piece normal with mean zero, from the definition."""
    mode = -np.sqrt(2 / np.pi) * (s_right - s_left)
    s = s_left if e < mode else s_right
    return float(np.log(2 * s / (s_left + s_right)) + stats.norm.logpdf(e, mode, s))


def density(e: float, s_left: float, s_right: float) -> float:
    return float(np.exp(log_two_piece(e, s_left, s_right)))


def box_probability(low: float, high: float, s_left: float, s_right: float) -> float:
    mode = -np.sqrt(2 / np.pi) * (s_right - s_left)
    low, high = max(low, mode - 12 * s_left), min(high, mode + 12 * s_right)
    if low >= high:
        return 0.0
    cuts = [cut for cut in (mode,) if low < cut < high]
    edges = [low, *cuts, high]
    return sum(integrate.quad(density, a, b, (s_left, s_right), epsabs=1e-13, limit=200)[0] for a, b in pairwise(edges))


def mean_and_scales(
    point: Mapping[str, Any], data: Any, q: int, log_g: float, frequency: float
) -> tuple[float, float, float]:
    s = scale(point, data, q)
    slope = point["b"] + point["t_b"] * point["zeta"][q]
    mean = point["A"][q] + slope * (log_g + 5) + point["b2"] * max(-log_g - 7, 0)
    mean += (point["d"] + point["t_d"] * point["xi"][q]) * frequency
    return mean, s * np.exp(point["ga"]), s * np.exp(-point["ga"])


def scale(point: Mapping[str, Any], data: Any, q: int) -> float:
    spread = point["sigma"] * np.exp(point["omega"] * point["z"][q] + point["c"] * (data.surprisal[q] - 4))
    return float(np.sqrt(spread**2 + 0.02**2))


def place(point: Mapping[str, Any], data: Any, q: int) -> float:
    """Where A_q is expected."""
    p = np.exp(data.target_log_g[q])
    logit = min(max(np.log(p / (1 - p)), -16), 9)
    where = point["mu"] + point["a"] * (logit + 3) - point["t_b"] * point["zeta"][q] * (logit + 5)
    return float(where - point["kap"] * scale(point, data, q) ** 2 / 2)


def log_density(point: Mapping[str, Any], data: Any) -> float:
    """Log-density of priors and answers at a point (A itself, not its standardised deviation; no Jacobians)."""
    total = 0.0
    for name, sd in (("mu", 1), ("a", 0.3), ("b", 0.3), ("b2", 0.3), ("c", 0.15), ("d", 0.3)):
        total += stats.norm.logpdf(point[name], 0, sd)
    for name in ("ga", "delta"):
        total += stats.norm.logpdf(point[name], 0, 0.15)
    total += stats.norm.logpdf(point["kap"], 0.7, 0.6)
    for name, sd in (("sigma", 1.5), ("omega", 0.4)):
        total += stats.halfnorm.logpdf(point[name], scale=sd)
    for name, sd in (("t_b", 0.2), ("t_d", 0.15)):
        total += stats.gamma.logpdf(point[name], 2, scale=sd / 3)
    total += stats.lognorm.logpdf(point["rho"], 0.5)
    for q in range(len(data.item)):
        total += sum(stats.norm.logpdf(point[name][q]) for name in ("z", "zeta", "xi"))
        total += stats.t.logpdf(point["A"][q], 3, place(point, data, q), point["rho"] * scale(point, data, q))
    pairs = (data.pair_item, data.pair_log_g, data.pair_frequency, data.pair_lower, data.pair_upper)
    for q, log_g, frequency, lower, upper in zip(*pairs, strict=True):
        mean, s_left, s_right = mean_and_scales(point, data, q, log_g, frequency)
        if lower == upper:
            total += log_two_piece(lower - mean, s_left, s_right)
        else:
            total += np.log(box_probability(lower - mean, upper - mean, s_left, s_right) + 1e-12)
    return total
