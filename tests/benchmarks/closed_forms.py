"""Closed forms of people's loss gap on studies of beliefs that no model was tuned on.

Usage: python tests/benchmarks/closed_forms.py BELIEFS.npz GAME_FOLDER RESULT.csv

Ten beliefs, three slopes and three studies each, with free answers and the slider. Adds one row per study and estimator
to RESULT.csv, with the 90% interval for the items asked; those of equation 5 are for all contexts.
Then it writes the error, its root mean square, and the coverage of every estimator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from hidden_beliefs import BELIEFS, beliefs, simulated

from shannon_game.estimators.comparison import estimate_perplexity, scaled_bridge
from shannon_game.estimators.comparison.token_pool import study_pool
from shannon_game.estimators.documents.clusters import t_half_width

SLOPES, SCALE, N_STUDIES, PROBABILITY = (0.5, 1.0, 2.0), "slider", 3, 0.9
MANY = 10**6
"""Degrees of freedom of a normal interval."""
Found = tuple[float, float, int]


def equation_5(study: xr.Dataset, log_mean: str) -> Found:
    gap = estimate_perplexity(study, estimator=log_mean).gap
    return gap.gap_nats, gap.se_items_nats, MANY


def bridge(study: xr.Dataset) -> Found:
    found = scaled_bridge(study_pool(study)[0])
    return found.gap_nats, found.se_asked_nats, found.freedom


ESTIMATORS: dict[str, Callable[[xr.Dataset], Found]] = {
    **{name: partial(equation_5, log_mean=name) for name in ("importance", "jackknife", "delta", "psis")},
    "scaled_bridge": bridge,
}


def main() -> None:
    kept, folder, path = map(Path, sys.argv[1:])
    found = beliefs(folder, kept)
    for belief, k0, number in product(BELIEFS, SLOPES, range(N_STUDIES)):
        study, truth = simulated(found, belief, k0, number, SCALE)
        rows = []
        for name, estimate in ESTIMATORS.items():
            gap, se, freedom = estimate(study)
            half = t_half_width(se, freedom, PROBABILITY)
            row = {"belief": belief, "k0": k0, "scale": SCALE, "study": number, "estimator": name}
            row |= {
                "truth_nats": truth["gap_nats"],
                "gap_nats": gap,
                "lower_nats": gap - half,
                "upper_nats": gap + half,
            }
            rows.append(row)
        pd.DataFrame(rows).round(3).to_csv(path, mode="a", header=not path.exists(), index=False)
    table = pd.read_csv(path)
    table["error"] = table["gap_nats"] - table["truth_nats"]
    table["covered"] = table["truth_nats"].between(table["lower_nats"], table["upper_nats"])
    table["width"] = table["upper_nats"] - table["lower_nats"]
    by = table.groupby("estimator", sort=False)
    columns = {"error": by["error"].mean(), "rmse": by["error"].apply(lambda each: np.sqrt(np.mean(each**2)))}
    print(pd.DataFrame(columns | {"covered": by["covered"].mean(), "width": by["width"].mean()}).round(3))


if __name__ == "__main__":
    main()
