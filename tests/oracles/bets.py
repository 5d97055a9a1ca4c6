"""Bets, slowly: losses answer by answer in plain Python, and Shannon's sums as he wrote them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def losses(study: Any, model: str) -> list[float]:
    """Realised losses with the unnamed words spread by a model, from the definition."""
    at = study["model"].values.tolist().index(model)
    found = []
    for answer in range(study.sizes["response"]):
        item = study["item"].values.tolist().index(study["response_item"].values[answer])
        target = study["target"].values[item]
        stakes: dict[str, float] = {}
        mass = 0.0
        for bet in range(study.sizes["bet"]):
            if study["bet_response"].values[bet] == answer:
                stakes[study["bet_word"].values[bet]] = float(study["bet_stake"].values[bet])
                mass += math.exp(study["bet_logprob"].values[at, bet])
        if target in stakes:
            share = stakes[target]
        else:
            share = (1 - sum(stakes.values())) * math.exp(study["target_logprob"].values[at, item]) / (1 - mass)
        found.append(-math.log(share))
    return found


def shannon_bounds(share: Sequence[float]) -> tuple[float, float]:
    """Both bounds of the entropy from shares of ranks 1, 2, ...: the sums of Shannon (1951), in nats."""
    q = [*share, 0.0]
    lower = sum(r * (q[r - 1] - q[r]) * math.log(r) for r in range(1, len(q)))
    upper = -sum(each * math.log(each) for each in share if each > 0)
    return lower, upper


def two_way_variance(values: Sequence[float], person: Sequence[Any], item: Sequence[Any]) -> float:
    """Variance of a mean clustered two ways, from three loops over clusters."""
    mean = sum(values) / len(values)

    def one_way(label: Sequence[Any]) -> float:
        total: dict[Any, float] = {}
        for value, cluster in zip(values, label, strict=True):
            total[cluster] = total.get(cluster, 0.0) + value - mean
        n = len(total)
        return n / (n - 1) * sum(each**2 for each in total.values()) / len(values) ** 2

    parts = one_way(person), one_way(item), one_way(list(zip(person, item, strict=True)))
    return max(parts[0] + parts[1] - parts[2], parts[0], parts[1])


def recalibrated(stakes: Sequence[float], back_off: Sequence[float], exponent: float, share: float) -> list[float]:
    """Probabilities of the cells of an answer: stakes to a power, made a sum of 1, mixed with a back-off."""
    power = [stake**exponent if stake > 0 else 0.0 for stake in stakes]
    return [(1 - share) * each / sum(power) + share * other for each, other in zip(power, back_off, strict=True)]
