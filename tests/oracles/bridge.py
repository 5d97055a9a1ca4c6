"""The scaled bridge and the balance heuristic, written as their equations, token by token."""

from __future__ import annotations

import math

from shannon_game.estimators.comparison import TokenPool


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


def scaled_bridge_scores(
    pool: TokenPool, log_ratio: list[float], slope: float, gaps: list[float]
) -> tuple[list[float], float]:
    """Scores of every item's gap and of the slope: 0 where `slope` and `gaps` solve the equations."""
    tokens = range(pool.item.size)
    reports = [[d for d, at in zip(log_ratio, pool.report_token, strict=True) if at == x] for x in tokens]
    seen = [x for x in tokens if reports[x]]
    mean = {x: math.fsum(reports[x]) / len(reports[x]) for x in seen}
    squares = math.fsum((d - mean[x]) ** 2 for x in seen for d in reports[x])
    noise = squares / sum(len(reports[x]) - 1 for x in seen)
    inside = {q: [x for x in seen if pool.item[x] == q] for q in range(pool.n_items)}
    level = {q: sum(mean[x] for x in those) / len(those) for q, those in inside.items() if those}
    place = {q: sum(pool.offset_nats[x] for x in those) / len(those) for q, those in inside.items() if those}
    d = {x: mean[x] - level[pool.item[x]] for x in seen}
    o = {x: pool.offset_nats[x] - place[pool.item[x]] for x in seen}
    line = sum(d[x] * o[x] for x in seen) / sum(o[x] ** 2 for x in seen)
    off = {x: d[x] - line * o[x] for x in seen}
    total = sum(each**2 for each in off.values()) / sum(len(those) - 1 for those in inside.values() if those)
    error = {x: noise / len(reports[x]) for x in seen}
    spread = max(total - sum(error.values()) / len(seen), 0.05 * total)
    of_gap, of_slope = [0.0] * pool.n_items, 0.0
    for q, gap in enumerate(gaps):
        those = [x for x in tokens if pool.item[x] == q]
        # the share of answers is of all draws and answers, the equations are of those whose token is known
        share = math.log(sum(pool.n_answered[x] for x in those) / sum(pool.n_drawn[x] for x in those))
        for x in those:
            if not (pool.is_target[x] or x in mean):
                continue
            best, left = 0.0, 0.0
            if x in mean:
                worth = spread / (spread + error[x])
                best, left = level[q] + line * o[x] + worth * off[x], spread * (1 - worth)
            flatter = 1 / math.sqrt(1 + 16**2 * 3 / (15 * math.pi) ** 2 * left / slope**2)
            chance = 1 / (1 + math.exp(-flatter * (best / slope + pool.offset_nats[x] + share - gap)))
            score = flatter * (pool.n_answered[x] * (1 - chance) - pool.n_drawn[x] * chance)
            of_gap[q] += score
            of_slope += score * best
    return of_gap, of_slope
