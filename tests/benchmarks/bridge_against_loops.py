"""Time the bridge and the chains of comparisons against plain Python loops over the same numbers, in one process.

Usage: python tests/benchmarks/bridge_against_loops.py [N_ITEMS]

Prints seconds of both and their ratio, and how far the numbers are apart.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from estimators.comparison import bridge_log_means, combine_comparisons
from tests.oracles.bridge import bridge, chain

N_DRAWN, N_ANSWERS, N_TOKENS = 10, 10, 15


def time_bridge(n_items: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Seconds of the toolkit and of the loop, and the largest difference of ln Z, nats."""
    weight = rng.normal(0.0, 1.5, (n_items, N_DRAWN + N_ANSWERS))
    answered = np.tile(np.arange(N_DRAWN + N_ANSWERS) >= N_DRAWN, n_items)
    item = np.repeat(np.arange(n_items), N_DRAWN + N_ANSWERS)
    lists = np.exp(weight).tolist()
    start = time.perf_counter()
    fast = bridge_log_means(weight.ravel(), item, answered).value
    middle = time.perf_counter()
    slow = np.log([bridge(row[:N_DRAWN], row[N_DRAWN:]) for row in lists])
    return middle - start, time.perf_counter() - middle, float(np.abs(fast - slow).max())


def time_chains(n_items: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Seconds of the toolkit and of the loop, and the largest difference of a log-ratio, nats."""
    candidate = np.tile(np.arange(N_TOKENS), n_items)
    reference = np.tile(np.arange(-1, N_TOKENS - 1), n_items)
    step = rng.normal(0.0, 2.0, candidate.size)
    item = np.repeat(np.arange(n_items), N_TOKENS)
    edges = list(zip(candidate.tolist(), reference.tolist(), step.tolist(), strict=True))
    start = time.perf_counter()
    fast = combine_comparisons(item, candidate, reference, step).log_ratio
    middle = time.perf_counter()
    slow = []
    for q in range(n_items):
        found = chain(edges[q * N_TOKENS : (q + 1) * N_TOKENS])
        slow += [found[token] for token in range(N_TOKENS)]
    return middle - start, time.perf_counter() - middle, float(np.abs(fast - np.array(slow)).max())


def main() -> None:
    """Print one line each."""
    n_items = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name, measure in (("bridge", time_bridge), ("chains", time_chains)):
        fast, slow, apart = measure(n_items, np.random.default_rng(0))
        print(f"{name}: {fast:.4f} s, loops {slow:.3f} s, ratio {slow / fast:.0f}, largest difference {apart:.1e} nats")


if __name__ == "__main__":
    main()
