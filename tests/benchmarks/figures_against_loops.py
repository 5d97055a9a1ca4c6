"""Time figures 3, 4, 7, 8 and 9 against per-question Python loops over the same numbers, in one process.

Usage: python tests/benchmarks/figures_against_loops.py [FOLDER_OF_LM_GAME]

Without a folder the simulated study is used. Loading and drawing are left out on both sides. The loops run twice: over
the same arrays, and over plain lists made of them beforehand (faster to index, the best that loops can do).
"""

from __future__ import annotations

import math
import random
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison import (
    HUMAN,
    SCHEMES,
    SimulationSettings,
    bias_curve,
    candidate_log_terms,
    estimate_gap,
    half_sample_bootstrap,
    is_word_token,
    log_terms,
    player_names,
    response_pairs,
    response_positions,
    simulate_comparison_study,
)

SIZES = (1, 4, 10, 40, 100, 400)
REPEATS = 3
HALF_SAMPLES = 100
SCHEME_NAMES = ("none", "interface", "coarse", "coarser")


def with_toolkit(study: xr.Dataset) -> dict[str, float]:
    """Compute every number of the five figures with the toolkit."""
    found = {}
    pairs = response_pairs(study)
    words = np.array([is_word_token(token) for token in study["target_token"].values.tolist()])
    on_words = words[np.sort(response_positions(study))]
    for player in player_names(study):
        for scheme in SCHEME_NAMES:
            gap = estimate_gap(log_terms(pairs, player, scheme), pairs.item)
            found[f"gap {player} {scheme}"] = gap.gap_nats
            found[f"se {player} {scheme}"] = gap.se_samples_nats
        terms = log_terms(pairs, player)
        found[f"words {player}"] = estimate_gap(terms[on_words], pairs.item[on_words]).gap_nats
        replicates = half_sample_bootstrap(
            terms, pairs.item, pairs.participant, n_replicates=HALF_SAMPLES, rng=np.random.default_rng(0)
        )
        found[f"half {player}"] = float(replicates.gap_nats.mean())
    items = study["in_reference"].values
    others = [name for name in study["model"].values.tolist() if name != study.attrs["generator"]]
    tables = np.stack([candidate_log_terms(study, player)[items] for player in others])
    gaps = bias_curve(tables, n=SIZES, n_repeats=REPEATS, rng=np.random.default_rng(0)).mean(axis=2)
    for player, row in zip(others, gaps, strict=True):
        found.update({f"n={n} {player}": float(gap) for n, gap in zip(SIZES, row, strict=True)})
    return found


def with_loops(study: xr.Dataset, *, lists: bool) -> Callable[[], dict[str, float]]:
    """Prepare the tables, and give the function that computes the same numbers question by question."""
    models = study["model"].values.tolist()
    g = models.index(study.attrs["generator"])
    target = np.exp(study["target_logprob"].values)
    candidate = np.exp(study["candidate_logprob"].values)
    if lists:
        target, candidate = target.tolist(), candidate.tolist()
    position = {label: q for q, label in enumerate(study["item"].values.tolist())}
    answers = [
        (position[item], x, p, who)
        for item, x, p, who in zip(
            study["response_item"].values.tolist(),
            study["response_candidate"].values.tolist(),
            study["report"].values.tolist(),
            study["participant"].values.tolist(),
            strict=True,
        )
    ]
    words = [is_word_token(token) for token in study["target_token"].values.tolist()]
    reference = np.flatnonzero(study["in_reference"].values).tolist()
    n_candidates = study.sizes["candidate"]
    rounders: dict[str, Callable[[float], float]] = {"none": lambda p: p}
    rounders["interface"] = lambda p: min(max(round(p * 10) / 10, 0.01), 0.99)
    for name in ("coarse", "coarser"):
        values = SCHEMES[name].values
        rounders[name] = lambda p, values=values: min(values, key=lambda value: abs(p - value))  # type: ignore[misc]

    def gap_of(
        rows: list[tuple[int, int, float, str]], player: str, round_report: Callable[[float], float]
    ) -> tuple[float, float]:
        m = None if player == HUMAN else models.index(player)
        by_question: dict[int, list[tuple[int, float]]] = {}
        for q, x, p, _ in rows:
            by_question.setdefault(q, []).append((x, p))
        logs, contributions = [], []
        for q, reports in by_question.items():
            terms = []
            for x, report in reports:
                p = report if m is None else target[m][q] / (target[m][q] + candidate[m][q][x])
                terms.append(target[g][q] / candidate[g][q][x] * (1 / round_report(p) - 1))
            mean = sum(terms) / len(terms)
            logs.append(math.log(mean))
            variance = sum((term - mean) ** 2 for term in terms) / len(terms)
            contributions.append(math.sqrt(variance / len(terms)) / mean)
        return sum(logs) / len(logs), math.sqrt(sum(value**2 for value in contributions)) / len(logs)

    def run() -> dict[str, float]:
        found = {}
        people = sorted({who for *_, who in answers})
        for player in [HUMAN, *models]:
            for scheme in SCHEME_NAMES:
                found[f"gap {player} {scheme}"], found[f"se {player} {scheme}"] = gap_of(
                    answers, player, rounders[scheme]
                )
            found[f"words {player}"] = gap_of([row for row in answers if words[row[0]]], player, rounders["none"])[0]
            rng = random.Random(0)
            halves = []
            for _ in range(HALF_SAMPLES):
                dropped = set(rng.sample(people, len(people) // 2))
                halves.append(gap_of([row for row in answers if row[3] not in dropped], player, rounders["none"])[0])
            found[f"half {player}"] = statistics.fmean(halves)
        for m, player in enumerate(models):
            if m == g:
                continue
            for n in SIZES:
                rng = random.Random(n)
                gaps = []
                for _ in range(REPEATS):
                    logs = []
                    for q in reference:
                        terms = []
                        for _ in range(n):
                            x = rng.randrange(n_candidates)
                            p = target[m][q] / (target[m][q] + candidate[m][q][x])
                            terms.append(target[g][q] / candidate[g][q][x] * (1 / p - 1))
                        # a player sure of the target has 1/p - 1 = 0 in double precision
                        logs.append(math.log(max(sum(terms) / n, 1e-16)))
                    gaps.append(sum(logs) / len(logs))
                found[f"n={n} {player}"] = statistics.fmean(gaps)
        return found

    return run


def timed(function: Callable[[], dict[str, float]]) -> tuple[float, dict[str, float]]:
    """Seconds and result of one call."""
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def main() -> None:
    """Print both times, their ratio and how far the numbers differ."""
    if len(sys.argv) > 1:
        from shannon_game.experiments.studies.comparison.lm_game import lm_game

        begin = time.perf_counter()
        study = lm_game(root=sys.argv[1])
        print(f"loading: {time.perf_counter() - begin:.2f} s (not in the ratio)")
    else:
        study = simulate_comparison_study(SimulationSettings())
    fast = statistics.median(timed(lambda: with_toolkit(study))[0] for _ in range(9))
    ours = with_toolkit(study)
    theirs = with_loops(study, lists=False)()
    slow = statistics.median(timed(with_loops(study, lists=False))[0] for _ in range(3))
    tuned = statistics.median(timed(with_loops(study, lists=True))[0] for _ in range(3))
    exact = max(abs(ours[key] - theirs[key]) for key in ours if key.startswith(("gap", "se", "words")))
    drawn = max(abs(ours[key] - theirs[key]) for key in ours if key.startswith(("half", "n=")))
    if exact > 1e-6 or drawn > 0.2:
        sys.exit(f"error: the two sides disagree, by {exact:.1e} nats and {drawn:.2f} nats where candidates are drawn")
    print(f"toolkit {fast * 1000:.1f} ms (median of 9)")
    print(f"loops over the same arrays {slow:.2f} s: {slow / fast:.0f} times slower")
    print(f"loops over plain lists {tuned:.2f} s: {tuned / fast:.0f} times slower")
    print(
        f"largest difference: {exact:.1e} nats where nothing is drawn, {drawn:.3f} nats where each side draws its own"
    )


if __name__ == "__main__":
    main()
