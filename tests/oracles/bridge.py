"""Bridge, balance heuristic and chains of comparisons, written as their equations, token by token."""

from __future__ import annotations

import math


def bridge(drawn: list[float], answered: list[float], *, steps: int = 5000) -> float:
    """Iterate Meng and Wong's fixed point on r/g of one item's draws and answers; gives Z."""
    n_g, n_h = len(drawn), len(answered)
    s_g, s_h = n_g / (n_g + n_h), n_h / (n_g + n_h)
    z = 1.0
    for _ in range(steps):
        above = 0.0
        for ratio in drawn:  # r / g, so that g is 1
            above += ratio / (s_g * z + s_h * ratio)
        below = 0.0
        for ratio in answered:
            below += 1 / (s_g * z + s_h * ratio)
        new = (above / n_g) / (below / n_h)
        if abs(math.log(new / z)) < 1e-15:
            return new
        z = new
    return z


def balanced_mean(ratios: list[float], densities: list[list[float]], source: list[int]) -> float:
    """Sum of r(x) over what is expected of x in the whole sample; densities[k][j] is p_k of draw j."""
    counts = [source.count(k) for k in range(len(densities))]
    total = 0.0
    for j, ratio in enumerate(ratios):
        expected = 0.0
        for k, n in enumerate(counts):
            expected += n * densities[k][j]
        total += ratio / expected
    return total


def chain(edges: list[tuple[int, int, float]], *, steps: int = 20_000) -> dict[int, float]:
    """Relax every token to the mean of what its comparisons say (Gauss and Seidel); the target, -1, stays at 0."""
    value = {code: 0.0 for a, b, _ in edges for code in (a, b)}
    for _ in range(steps):
        moved = 0.0
        for code, old in list(value.items()):
            if code == -1:
                continue
            said = [value[b] + d for a, b, d in edges if a == code] + [value[a] - d for a, b, d in edges if b == code]
            new = sum(said) / len(said)
            moved = max(moved, abs(new - old))
            value[code] = new
        if moved < 1e-13:
            break
    return value
