"""Bias of the bridge and of importance sampling for three kinds of people, exact and noisy: a table of docs/.

Usage: python tests/benchmarks/bridge_bias.py
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd

from estimators.comparison import bridge_log_means, group_terms, jackknife_log_mean, plain_log_mean
from tests.estimators.comparison.comparison_studies import draws, players

N_REPLICATES, NOISE_NATS = 20, 0.9


def replicate(
    ratio: np.ndarray, log_g: np.ndarray, drawn: np.ndarray, answered: np.ndarray, truth: np.ndarray
) -> dict[str, float]:
    """Errors of the mean gap by estimator, nats."""
    weight = ratio - log_g
    of_draws, of_answers = (np.take_along_axis(weight, tokens, axis=1) for tokens in (drawn, answered))
    at = np.arange(truth.size)
    errors = {}
    for n in (20, 100):
        terms = group_terms(of_draws[:, :n].ravel(), np.repeat(at, n))
        errors[f"importance {n}"] = np.mean(plain_log_mean(terms).value - truth)
        if n == 20:
            errors["jackknife 20"] = np.mean(jackknife_log_mean(terms).value - truth)
    for n in (10, 30):
        both = np.hstack([of_draws[:, :10], of_answers[:, :n]])
        means = bridge_log_means(both.ravel(), np.repeat(at, 10 + n), np.tile(np.arange(10 + n) >= 10, at.size))
        errors[f"bridge 10 + {n}"] = np.mean(means.value - truth)
    return errors


def main() -> None:
    """Print bias and standard deviation over replicates."""
    rows = []
    for player in ("hot2", "mixuni", "cold.7"):
        rng = np.random.default_rng(1)
        log_g, log_h = players(rng)[player]
        target = draws(log_g, 1, rng)
        truth = -np.take_along_axis(log_h, target, axis=1)[:, 0]
        ratio = log_h + truth[:, None]
        others = np.arange(ratio.shape[1]) != target
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for _ in range(N_REPLICATES):
            drawn, answered = draws(log_g, 100, rng), draws(log_h, 30, rng)
            noisy = ratio + rng.normal(0.0, NOISE_NATS, ratio.shape) * others
            for reports, values in (("exact", ratio), ("noisy", noisy)):
                for name, error in replicate(values, log_g, drawn, answered, truth).items():
                    found[reports, name].append(error)
        for (reports, name), errors in found.items():
            cell = f"{np.mean(errors):.2f}, {np.std(errors):.2f}"
            rows.append({"player": player, "reports": reports, "estimator": name, "cell": cell})
    table = pd.DataFrame(rows).set_index(["player", "reports", "estimator"])["cell"]
    print(table.to_string())


if __name__ == "__main__":
    main()
