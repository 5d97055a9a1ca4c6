"""Slow, obvious versions of what the estimators of cloze studies compute, on lists of strings."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence


def cpd(words: Sequence[str]) -> dict[str, float]:
    return {word: count / len(words) for word, count in Counter(words).items()}


def tvd(first: Sequence[str], second: Sequence[str]) -> float:
    p, q = cpd(first), cpd(second)
    return sum(abs(p.get(word, 0) - q.get(word, 0)) for word in {*p, *q}) / 2


def entropy(words: Sequence[str]) -> float:
    return -sum(p * math.log(p) for p in cpd(words).values())


def published_split(words: Sequence[str], seed: int, size: int) -> tuple[list[str], list[str]]:
    """Re-seed, drop one of an odd number, sample oracle 1, and leave the rest as oracle 2."""
    left = list(words)
    random.seed(seed)
    if len(left) % 2:
        left.remove(random.sample(left, 1)[0])
    first = random.sample(left, size)
    second = list(left)
    for word in first:
        second.remove(word)
    return first, second
