"""The participant model on the toolkit's own simulated language, whose beliefs have heavier tails than its law.

Usage: python tests/benchmarks/simulated_language.py RESULT.csv [--first 0] [--last 9]

A study has 80 items and a vocabulary of 500. People compare (20 of them, on eleven values, 12 draws per item), or
answer freely and compare on a slider (29 people, as `study=designed`). Estimates are by the Gaussian around the mode.
Adds four rows per study to RESULT.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import xarray as xr
from hidden_recovery import DRAWS, GATE, TAIL, TUNE, of_gaussian

from shannon_game import designed_simulated
from shannon_game.estimators.comparison import SimulationSettings, simulate_comparison_study
from shannon_game.inference.comparison.participant_fit import Compiled, fit_participants
from shannon_game.models.comparison.participant_data import participant_data

SIZE = {"n_items": 80, "vocab_size": 500}
EXCESS = {"lm-weak": 2.14, "lm-medium": 0.72, "lm-strong": 0.45, "human": 1.0}


def studies(number: int) -> dict[str, tuple[xr.Dataset, str]]:
    """Studies of one seed, and their scale; all hold the generator's whole distribution."""
    size = {**SIZE, "n_reference_items": 200, "n_participants": 20, "n_candidates": 12, "excess_nats": EXCESS}
    compared = simulate_comparison_study(SimulationSettings(**size, seed=number, store_reference=True))
    return {"comparisons": (compared, "interface"), "answers": (designed_simulated(**SIZE, seed=number), "slider")}


def row(study: xr.Dataset, scale: str, number: int) -> dict[str, Any]:
    """Estimate one study; its generator is lm-medium."""
    item_truth = (study["target_logprob"].sel(model="lm-medium") - study["human_target_logprob"]).to_numpy()
    data = participant_data(study, scale)
    with mock.patch.object(Compiled, "draws", of_gaussian):
        fit = fit_participants(data, draws=DRAWS, tune=TUNE, thresholds=GATE, seed=number)
    lower, median, upper = np.quantile(fit.gap_nats, [TAIL, 0.5, 1 - TAIL])
    truth = float(item_truth[data.position].mean())
    found = {"truth": truth, "median": median, "lower": lower, "upper": upper}
    return {"anchor": fit.anchor.name, **{name: round(float(value), 4) for name, value in found.items()}}


def main() -> None:
    """Add rows to the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=9)
    given = parser.parse_args()
    for number in range(given.first, given.last + 1):
        for name, (study, scale) in studies(number).items():
            for whole in (True, False):
                made = study if whole else study.drop_vars("reference_logprob")
                found = {"collected": name, "whole_distribution": whole, "study": number, **row(made, scale, number)}
                pd.DataFrame([found]).to_csv(given.result, mode="a", header=not given.result.exists(), index=False)


if __name__ == "__main__":
    main()
