"""Time the gap and its diagnostics against log-means written by hand, both bootstraps, and five figures of the paper.

Usage: python tests/benchmarks/estimators_by_hand.py [FOLDER_OF_LM_GAME] [--large]

The hand version knows that the items are sorted and that terms are finite; it computes the log-means and both standard
errors in five passes and no diagnostics. Both sides take turns, and a ratio is the median over turns. Times are those
of the processor, with one thread. ``--large`` adds a bootstrap of 10,000 people and 100,000 items, whose cells would
take 16 GB. The numbers of figures 3, 4, 7, 8 and 9 are of the folder's study, or of a simulated one; loading and
drawing are left out.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import statistics
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr
from turns import take_turns

from shannon_game.estimators.comparison import (
    SimulationSettings,
    bias_curve,
    cluster_bootstrap,
    estimate_gap,
    half_sample_bootstrap,
    simulate_comparison_study,
)
from shannon_game.estimators.comparison.terms import candidate_log_terms, log_terms, player_names, response_pairs
from shannon_game.estimators.documents.tokens import is_word_token
from shannon_game.estimators.layout import response_positions

ROWS = (1_000, 10_000, 100_000, 1_000_000)
TURNS = 15
TERMS_PER_ITEM = 20  # on average, from 1 to 39


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


def compare(rows: int) -> str:
    """One line of the table, of items of unequal size."""
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(rows), rng.integers(1, 2 * TERMS_PER_ITEM, rows))[:rows]
    log_term, shuffled = rng.normal(0, 1.5, rows), np.random.default_rng(1).permutation(rows)
    gap = estimate_gap(log_term, item)
    ours = np.array([gap.gap_nats, gap.se_items_nats, gap.se_samples_nats])
    off = np.abs(ours - by_hand(log_term, item)).max()
    if off > 1e-12:
        sys.exit(f"error: the two sides disagree by {off:.1e} nats at {rows} rows")
    sides: dict[str, Callable[[], object]] = {
        "hand": lambda: by_hand(log_term, item),
        "gap": lambda: estimate_gap(log_term, item),
        "diagnosed": lambda: estimate_gap(log_term, item).diagnostics,
        "jackknife": lambda: estimate_gap(log_term, item, estimator="jackknife"),
        "psis": lambda: estimate_gap(log_term, item, estimator="psis"),
        "unsorted": lambda: estimate_gap(log_term[shuffled], item[shuffled]).diagnostics,
    }
    times, _ = take_turns(sides, TURNS, repeats=max(1, 100_000 // rows))
    hand = np.array(times.pop("hand"))
    ratios = [np.median(np.array(its) / hand) for its in times.values()]
    return f"| {rows:,} | {1000 * np.median(hand):.2f} | " + " | ".join(f"{ratio:.1f}" for ratio in ratios) + " |"


def bootstraps(people: int, items: int, rows: int, replicates: int) -> None:
    """Time both bootstraps of a study whose answers are spread at random."""
    rng = np.random.default_rng(0)
    term, item, person = rng.normal(0, 1.5, rows), rng.integers(0, items, rows), rng.integers(0, people, rows)
    print(f"\n{rows:,} answers of {people:,} people to {items:,} items, {replicates:,} replicates:")
    for function in (half_sample_bootstrap, cluster_bootstrap):
        side = partial(function, term, item, person, n_replicates=replicates, rng=np.random.default_rng(1))
        times, _ = take_turns({"": side}, 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {function.__name__}: {times[''][0]:.1f} s, the process has had at most {peak:.0f} MB")


def figures(study: xr.Dataset) -> None:
    """Compute every number of the five figures."""
    pairs = response_pairs(study)
    words = np.array([is_word_token(token) for token in study["target_token"].values.tolist()])
    on_words = words[np.sort(response_positions(study))]
    for player in player_names(study):
        for scheme in ("none", "interface", "coarse", "coarser"):
            estimate_gap(log_terms(pairs, player, scheme), pairs.item)
        terms = log_terms(pairs, player)
        estimate_gap(terms[on_words], pairs.item[on_words])
        half_sample_bootstrap(terms, pairs.item, pairs.participant, n_replicates=100, rng=np.random.default_rng(0))
    items = study["in_reference"].values
    others = [name for name in study["model"].values.tolist() if name != study.attrs["generator"]]
    tables = np.stack([candidate_log_terms(study, player)[items] for player in others])
    bias_curve(tables, n=(1, 4, 10, 40, 100, 400), n_repeats=3, rng=np.random.default_rng(0))


def main() -> None:
    """Print the times of the bootstrap and of the figures, and the table."""
    bootstraps(200, 5_000, 100_000, 10_000)
    if "--large" in sys.argv[1:]:
        bootstraps(10_000, 100_000, 1_000_000, 200)
    folders = [given for given in sys.argv[1:] if given != "--large"]
    if folders:
        from shannon_game import lm_game

        study = lm_game(root=folders[0])
    else:
        study = simulate_comparison_study(SimulationSettings())
    times, _ = take_turns({"": lambda: figures(study)}, 9)
    print(f"\nfigures 3, 4, 7, 8, 9: {1000 * statistics.median(times['']):.1f} ms (median of 9)")
    print("\n| rows | by hand, ms | gap | with diagnostics | jackknife | psis | not sorted, with diagnostics |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for rows in ROWS:
        print(compare(rows), flush=True)


if __name__ == "__main__":
    main()
