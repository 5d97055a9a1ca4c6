"""How often the most frequent word of n people is right, by every ensemble there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations


def accuracy(answers: Sequence[str], n: int, right: str | None = None) -> float:
    """Mean over ensembles, and without a right word over every person who is not in the ensemble."""
    scores = []
    for chosen in combinations(range(len(answers)), n):
        said = Counter(answers[person] for person in chosen)
        modes = [word for word, count in said.items() if count == max(said.values())]
        wanted = [right] if right is not None else [answers[at] for at in range(len(answers)) if at not in chosen]
        scores += [(word in modes) / len(modes) for word in wanted]
    return sum(scores) / len(scores)
