"""Equations 3-5 and their resampling written as loops over questions and answers, slowly and obviously."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence


def round_half_even_tenths(p: float) -> float:
    """The game's interface: Python's round() of 10 p, then 0 shown as 1% and 1 as 99%."""
    tenths = round(p * 10) / 10
    return min(max(tenths, 0.01), 0.99)


def nearest(values: Sequence[float]) -> Callable[[float], float]:
    """Nearest value, the lowest one on a tie; .4 - .3 and .5 - .4 differ in the last bit and are a tie."""
    return lambda p: min(values, key=lambda value: (round(abs(p - value), 12), value))


def terms_by_item(answers: Sequence[tuple[int, float, float, float]]) -> dict[int, list[float]]:
    """Group eq. 4's terms; an answer is (item, p, g(y), g(x))."""
    terms: dict[int, list[float]] = defaultdict(list)
    for item, p, target, candidate in answers:
        terms[item].append(target / candidate * (1 / p - 1))
    return dict(terms)


def gap_and_errors(terms: dict[int, list[float]]) -> tuple[float, float, float]:
    """Eq. 5 with the two standard errors of the paper's figure bars."""
    logs, contributions = [], []
    for values in terms.values():
        mean = sum(values) / len(values)
        logs.append(math.log(mean))
        sd = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        contributions.append((sd / math.sqrt(len(values)) / mean / len(terms)) ** 2)
    gap = sum(logs) / len(logs)
    sd_items = math.sqrt(sum((value - gap) ** 2 for value in logs) / len(logs))
    return gap, sd_items / math.sqrt(len(logs)), math.sqrt(sum(contributions))


def expected_counts_by_enumeration(probability: Sequence[float], n: int) -> list[float]:
    """Mean count of every token over all sequences of n draws in which each token occurs."""
    size = len(probability)
    total = 0.0
    sums = [0.0] * size
    for draws in itertools.product(range(size), repeat=n):
        if len(set(draws)) < size:
            continue
        weight = math.prod(probability[x] for x in draws)
        total += weight
        for x in range(size):
            sums[x] += weight * draws.count(x)
    return [value / total for value in sums]


def replicate_gap(
    answers: Sequence[tuple[int, int, float]], people: dict[int, int], items: dict[int, int] | None = None
) -> float:
    """Gap of one bootstrap replicate; an answer is (item, participant, w), a weight says how often each was drawn."""
    drawn: dict[int, list[float]] = defaultdict(list)
    for item, person, w in answers:
        drawn[item].extend([w] * people.get(person, 0))
    numerator = denominator = 0.0
    for item, values in drawn.items():
        if values:
            weight = 1 if items is None else items.get(item, 0)
            numerator += weight * math.log(sum(values) / len(values))
            denominator += weight
    return numerator / denominator
