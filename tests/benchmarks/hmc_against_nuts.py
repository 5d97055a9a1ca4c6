"""Compare Hamiltonian Monte Carlo in the directions of a Gaussian with NUTS, on studies of people of known belief.

Usage: python tests/benchmarks/hmc_against_nuts.py FOLDER BELIEFS.npz RESULT.csv [BELIEFS] [DRAWS]

Adds one row per study and sampler: the gap with its 90% interval, without discrepancies, and processor seconds.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import hidden_beliefs
import numpy as np
import pandas as pd

from shannon_game import inference, models
from shannon_game.inference.posterior.arviz_adapter import ess_bulk, r_hat


def rows(study: tuple[str, float, int], found: dict[str, np.ndarray], draws: int) -> pd.DataFrame:
    """Both samplers on one study."""
    made, truth = hidden_beliefs.simulated(found, *study)
    data = models.participant_data(made, "slider")
    given = {"belief": study[0], "k0": study[1], "study": study[2]}
    given["truth"] = truth["item_gap_nats"][data.position].mean()
    table = []
    for sampler, settings in (
        ("hmc", {}),
        ("pymc", {"draws": draws, "tune": draws, "chains": 2, "cores": 1, "progress": False}),
    ):
        start = time.process_time()
        fit = inference.fit_participants(data, sampler=sampler, seed=study[2], **settings)
        gap = fit.item_gap_nats.mean(axis=1)
        lower, median, upper = np.quantile(gap, [0.05, 0.5, 0.95])
        chains = gap.reshape(fit.idata.posterior.sizes["chain"], -1)
        table.append(
            {
                **given,
                "sampler": sampler,
                "gap_median_nats": median,
                "gap_lower_nats": lower,
                "gap_upper_nats": upper,
                "k0_found": np.median(fit.k0),
                "gap_r_hat": r_hat(chains),
                "gap_ess": ess_bulk(chains),
                "passed": fit.convergence.passed,
                "cpu_seconds": time.process_time() - start,
            }
        )
    return pd.DataFrame(table)


def main(arguments: list[str]) -> None:
    """Add the rows of some studies."""
    folder, kept, result = (Path(one) for one in arguments[:3])
    beliefs = arguments[3].split(",") if len(arguments) > 3 else ["short", "cold", "mixtures"]
    draws = int(arguments[4]) if len(arguments) > 4 else 200
    found = hidden_beliefs.beliefs(folder, kept)
    for number, belief in enumerate(beliefs):
        table = rows((belief, (1.0, 2.0, 0.5)[number % 3], 100 + number), found, draws)
        table.to_csv(result, mode="a", header=not result.exists(), index=False, float_format="%.4f")
        print(table.to_string(index=False), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
