"""Time the gap and its diagnostics against log-means written by hand, and the bootstrap at full size, in one process.

Usage: python tests/benchmarks/estimators_by_hand.py [--large]

The hand version knows that the items are sorted and that terms are finite; it computes the log-means and both standard
errors in five passes and no diagnostics. Both sides take turns, and a ratio is the median over turns. Times are those
of the processor, with one thread. ``--large`` adds a bootstrap of 10,000 people and 100,000 items, whose cells would
take 16 GB.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from shannon_game.estimators.comparison import cluster_bootstrap, estimate_gap, half_sample_bootstrap

ROWS = (1_000, 10_000, 100_000, 1_000_000)
TURNS = 15
TERMS_AN_ITEM = 20  # on average, from 1 to 39


def by_hand(log_term: np.ndarray, item: np.ndarray) -> tuple[float, float, float]:
    """Gap and both standard errors, of items that are sorted."""
    start = np.flatnonzero(np.concatenate([[True], item[1:] != item[:-1]]))
    n = np.diff(start, append=item.size)
    largest = np.maximum.reduceat(log_term, start)
    weight = np.exp(log_term - np.repeat(largest, n))
    mean = np.add.reduceat(weight, start) / n
    variance = np.add.reduceat((weight - np.repeat(mean, n)) ** 2, start) / n
    value = np.log(mean) + largest
    return (
        float(value.mean()),
        float(value.std() / np.sqrt(value.size)),
        float(np.sqrt((variance / n / mean**2).sum()) / value.size),
    )


def seconds(function: Callable[[], object]) -> float:
    """Processor time of one call."""
    begin = time.process_time()
    function()
    return time.process_time() - begin


def study(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Terms of items of unequal size."""
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(rows), rng.integers(1, 2 * TERMS_AN_ITEM, rows))[:rows]
    return rng.normal(0, 1.5, rows), item


def compare(rows: int) -> str:
    """One line of the table."""
    log_term, item = study(rows)
    shuffled = np.random.default_rng(1).permutation(rows)
    gap = estimate_gap(log_term, item)
    for ours, theirs in zip(
        (gap.gap_nats, gap.se_items_nats, gap.se_samples_nats), by_hand(log_term, item), strict=True
    ):
        if abs(ours - theirs) > 1e-12:
            sys.exit(f"error: the two sides disagree by {abs(ours - theirs):.1e} nats at {rows} rows")
    sides: dict[str, Callable[[], object]] = {
        "hand": lambda: by_hand(log_term, item),
        "gap": lambda: estimate_gap(log_term, item),
        "diagnosed": lambda: estimate_gap(log_term, item).diagnostics,
        "jackknife": lambda: estimate_gap(log_term, item, estimator="jackknife"),
        "psis": lambda: estimate_gap(log_term, item, estimator="psis"),
        "unsorted": lambda: estimate_gap(log_term[shuffled], item[shuffled]).diagnostics,
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    repeats = max(1, 100_000 // rows)
    for _ in range(TURNS):
        for name, side in sides.items():
            times[name].append(seconds(lambda side=side: [side() for _ in range(repeats)]) / repeats)  # type: ignore[misc]
    ratios = [
        statistics.median(one / hand for one, hand in zip(times[name], times["hand"], strict=True))
        for name in sides
        if name != "hand"
    ]
    return (
        f"| {rows:,} | {1000 * statistics.median(times['hand']):.2f} | " + " | ".join(f"{r:.1f}" for r in ratios) + " |"
    )


def bootstraps(people: int, items: int, rows: int, replicates: int) -> None:
    """Time both bootstraps of a study whose answers are spread at random."""
    rng = np.random.default_rng(0)
    term, item, person = rng.normal(0, 1.5, rows), rng.integers(0, items, rows), rng.integers(0, people, rows)
    print(f"\n{rows:,} answers of {people:,} people to {items:,} items, {replicates:,} replicates:")
    for function in (half_sample_bootstrap, cluster_bootstrap):
        took = seconds(
            lambda function=function: function(  # type: ignore[misc]
                term, item, person, n_replicates=replicates, rng=np.random.default_rng(1)
            )
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {function.__name__}: {took:.1f} s, the process has had at most {peak:.0f} MB")


def main() -> None:
    """Print the table and the times of the bootstrap."""
    bootstraps(200, 5_000, 100_000, 10_000)
    if "--large" in sys.argv[1:]:
        bootstraps(10_000, 100_000, 1_000_000, 200)
    print("\n| rows | by hand, ms | gap | with diagnostics | jackknife | psis | not sorted, with diagnostics |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for rows in ROWS:
        print(compare(rows), flush=True)


if __name__ == "__main__":
    main()
