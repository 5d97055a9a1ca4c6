"""How often intervals of people who only compared hold the truth: beliefs made of the embedded study's generator.

Usage: python tests/benchmarks/few_people.py RESULT.csv

Short chains of two anchors, with the generator's whole distribution and without. Adds one row per fit to RESULT.csv.
docs/results/few_people.csv has 104 such fits, from which the pages quote.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from estimators.comparison import ParticipantPopulation, QuestionDesign, simulate_designed_study
from experiments import simulated
from inference.comparison.participant_fit import Anchor, fit_participants
from models.comparison.participant_data import participant_data

N_ITEMS, N_EACH, N_DRAWS = 60, 20, 6
POWERS = {"hot": 0.5, "hotter": 0.3, "warm": 0.75, "sharp": 1.3}


def normalised(log_p: NDArray[np.float64]) -> NDArray[np.float64]:
    return log_p - np.logaddexp.reduce(log_p, axis=1, keepdims=True)


def world(belief: str, n_people: int, seed: int, k0: float) -> tuple[xr.Dataset, float]:
    """A study of people who share a belief, and their loss above the generator's, nats."""
    sizes = {"n_items": N_ITEMS, "n_reference_items": N_ITEMS, "n_participants": 2, "n_candidates": 2}
    base = simulated(store_reference=True, seed=seed, **sizes)
    log_g = normalised(base["reference_logprob"].to_numpy().astype(float))
    tokens = list(base["token"].to_numpy().astype(str))
    target = np.array([tokens.index(token) for token in base["target_token"].to_numpy()])
    noise = np.random.default_rng(seed + 99).normal(0, 1.5, log_g.shape) if belief == "noisy" else 0.0
    log_h = normalised(POWERS.get(belief, 1.0) * log_g + noise)
    if belief == "mix":
        unigrams = np.logaddexp.reduce(log_g, axis=0, keepdims=True) - np.log(N_ITEMS)
        log_h = np.logaddexp(np.log(0.7) + normalised(1.2 * log_g), np.log(0.3) + normalised(0.7 * unigrams))
    n = n_people * N_EACH // N_ITEMS
    sizes = {"n_draws": N_DRAWS, "n_answers": 0, "n_comparisons": n, "n_participants": n_people}
    design, people = QuestionDesign(scale="interface", **sizes), ParticipantPopulation(slope_median=k0)
    study = simulate_designed_study(log_g, log_h, target, design, people, seed=seed, tokens=tokens)
    at = np.arange(N_ITEMS)
    return study, float((log_g[at, target] - log_h[at, target]).mean())


def main() -> None:
    path = Path(sys.argv[1])
    for belief, n_people, seed in product(("hot", "hotter", "noisy", "mix", "sharp"), (12, 30, 60, 120), (1, 2)):
        study, truth = world(belief, n_people, seed, 1.0)
        for whole, anchor in product((True, False), (Anchor("outcomes"), Anchor("assumed", k0=1.0))):
            data = participant_data(study if whole else study.drop_vars(["reference_logprob", "token"]), "interface")
            chains = {"draws": 600, "tune": 400, "chains": 2, "cores": 1, "target_accept": 0.8, "keep": 400}
            fit = fit_participants(data, anchor=anchor, seed=seed, progress=False, **chains)
            low, median, high = np.quantile(fit.gap_nats, [0.05, 0.5, 0.95]).round(2)
            row = {"belief": belief, "k0": 1.0, "people": n_people, "seed": seed, "whole": whole, "anchor": anchor.name}
            row |= {"truth_nats": round(truth, 2), "median_nats": median, "lower_nats": low, "upper_nats": high}
            row |= {"r_hat": round(fit.convergence.r_hat_max, 2)}
            pd.DataFrame([row]).to_csv(path, mode="a", header=not path.exists(), index=False)


if __name__ == "__main__":
    main()
