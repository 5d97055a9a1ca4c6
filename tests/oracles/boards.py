"""Scores of models beside people by plain loops over words and answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

Words = Mapping[str, int]


def modes(words: Words) -> dict[str, float]:
    top = max(words.values())
    best = [word for word, n in words.items() if n == top]
    return {word: 1 / len(best) for word in best}


def tvd(first: Words, other: Words) -> float:
    n = sum(first.values())
    return sum(abs(first.get(word, 0) - other.get(word, 0)) for word in {*first, *other}) / n / 2


def jensen_shannon(first: Words, other: Words) -> float:
    n, total = sum(first.values()), 0.0
    for word in {*first, *other}:
        p, q = first.get(word, 0) / n, other.get(word, 0) / n
        total += sum(side * math.log(2 * side / (p + q)) / 2 for side in (p, q) if side)
    return total


def cross_entropy(first: Words, q: Mapping[str, float]) -> float:
    return -sum(n * math.log(q[word]) for word, n in first.items()) / sum(first.values())


def modal(first: Words, other: Words) -> float:
    ours, theirs = modes(first), modes(other)
    return sum(share * theirs.get(word, 0.0) for word, share in ours.items())


def unigram(answers: Sequence[Words], texts: Sequence[str], text: str) -> dict[str, float]:
    every = Counter[str]()
    others = Counter[str]()
    for words, its in zip(answers, texts, strict=True):
        every.update(words)
        others.update(words if its != text else {})
    return {word: (others[word] + 1) / (others.total() + len(every)) for word in every}


def kneser_ney_unigram(words: Sequence[str], n_sentences: int) -> dict[str, float]:
    """One order alone, with the sentence's end and the unknown word, given that a word follows."""
    counts = Counter(words)
    counts["</s>"] = n_sentences
    once, twice = (sum(n == k for n in counts.values()) for k in (1, 2))
    discount = once / (once + 2 * twice) if once and twice else 0.75
    total, even = counts.total(), 1 / (len(counts) + 1)
    rest = discount * len(counts) / total * even
    p = {word: max(n - discount, 0) / total + rest for word, n in counts.items()}
    begins = 1 - p.pop("</s>")
    return {word: value / begins for word, value in {**p, "": rest}.items()}


def loss(reports: Sequence[tuple[int, float, float]]) -> dict[int, float]:
    """By item, from (item, probability of the target, ln g of the candidate)."""
    ratios: dict[int, list[float]] = {}
    for item, report, candidate in reports:
        ratios.setdefault(item, []).append((1 - report) / report / math.exp(candidate))
    return {item: math.log(sum(its) / len(its)) for item, its in ratios.items()}


def points(reports: Sequence[tuple[int, float, float]]) -> dict[int, float]:
    """By item, from (item, probability of the target, ln g of the target)."""
    earned: dict[int, list[float]] = {}
    for item, report, target in reports:
        earned.setdefault(item, []).append(1000 * math.exp(target) * math.log(2 * report))
    return {item: sum(its) / len(its) for item, its in earned.items()}
