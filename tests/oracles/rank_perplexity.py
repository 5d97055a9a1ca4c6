"""The thesis's scores, one token at a time and straight from their definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence


def rank_of(reference: str, ranked: Sequence[str]) -> int | None:
    for number, token in enumerate(ranked, start=1):
        if token.strip() == reference.strip():
            return number
    return None


def scores(reference: str, ranked: Sequence[str]) -> dict[str, float]:
    r, length = rank_of(reference, ranked), len(ranked)
    found = {
        "linear": 0.0 if r is None else (length - r + 1) / length,
        "reciprocal": 0.0 if r is None else 1 / r,
        "exponential_01": 0.0 if r is None else math.exp(-0.1 * (r - 1)),
        "exponential_03": 0.0 if r is None else math.exp(-0.3 * (r - 1)),
    }
    return {**found, "average": sum(found.values()) / 4}


def perplexity(
    references: Sequence[str], rankings: Sequence[Sequence[str]], logprobs: Sequence[Sequence[float]]
) -> float:
    total = 0.0
    for reference, ranked, values in zip(references, rankings, logprobs, strict=True):
        r = rank_of(reference, ranked)
        total += values[-1] - 3 if r is None else values[r - 1]
    return math.exp(-total / len(references))
