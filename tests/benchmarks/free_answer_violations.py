"""What assumptions that are wrong do to the intervals of estimators from free answers and reports, and who notices.

Usage: python tests/benchmarks/free_answer_violations.py METHOD FOLDER RESULT.csv [FIRST N]

METHOD is `bridges` (closed forms: the scaled bridge, the bridge that takes reports as they are, and equation 5; seconds
a row) or `model` (minutes a study). FOLDER is that of the public data of the comparison game. Studies are those of
`free_answer_recovery.py` at k0 = 1, in turn of its five beliefs, with two comparisons of a context by each person.
FIRST and N say which studies of every violation. Adds a row a study to RESULT.csv, leaves out what it has already, and
prints bias, coverage and width of 90% intervals for the items asked, and how often each check notices.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from free_answer_recovery import PLAYERS, beliefs, by_bridge, by_model, precise, simulated

from estimators.comparison import estimate_perplexity, private_belief

VIOLATIONS: dict[str, dict[str, Any]] = {
    "none": {},
    "answers of belief to the power .5": {"answer_exponent": 0.5},
    "answers of belief to the power 2": {"answer_exponent": 2.0},
    "answers of belief to the power 3": {"answer_exponent": 3.0},
    "private beliefs, .7 nats": {"private_sd_nats": 0.7},
    "private beliefs, 1.2 nats": {"private_sd_nats": 1.2},
    "players of equation 6": {"player": "equation_6"},
    "20% bots": {"bots": 0.2},
}
SLOPE, Z, MOST_AT_ENDS = 1.0, 1.6449, 0.3
TESTED = 6
"""Of so many studies one is tested for private beliefs, which takes longer than everything else; the beliefs are 5."""
SLOPES = (0.051, 19.9)
"""The scaled bridge looks for k0 between .05 and 20; a study where it ends there says nothing of the scale."""


def by_closed_forms(study: xr.Dataset, truth: np.ndarray, *, tests: bool) -> dict[str, Any]:
    """Gap, 90% interval and truth for the items used by every closed form, and what each check says."""
    scaled, item = by_bridge(study)
    plain, of_plain = by_bridge(study, 1.0)
    by_draws, bridged = (estimate_perplexity(study, estimator=name).gap for name in ("importance", "bridge"))
    arm = Z * by_draws.se_samples_nats
    ends = {"lower": by_draws.gap_nats - arm, "median": by_draws.gap_nats, "upper": by_draws.gap_nats + arm}
    found: dict[str, Any] = {f"importance_{name}": value for name, value in ends.items()}
    found["importance_truth"] = truth[by_draws.item].mean()
    for method, estimate, used in (("scaled", scaled, item), ("plain", plain, of_plain)):
        found |= {f"{method}_{name}": estimate[f"gap_{name}_nats"] for name in ends}
        found[f"{method}_truth"] = truth[used].mean()
    report = study["report"].to_numpy()
    return found | {
        "k0_found": scaled["k0_found"],
        "differ": float(private_belief(study, slope=scaled["k0_found"]).p_shared < 0.05) if tests else np.nan,
        "no_scale": not SLOPES[0] < scaled["k0_found"] < SLOPES[1],
        "at_ends": np.mean((report <= report.min()) | (report >= report.max())) > MOST_AT_ENDS,
        "bridge_verdict": bridged.diagnostics.verdict != "enough draws",
        "importance_verdict": by_draws.diagnostics.verdict != "enough draws",
    }


def by_posterior(study: xr.Dataset, truth: np.ndarray, seed: int) -> dict[str, Any]:
    """The model's interval and truth, and what the outcomes and the answers themselves say of it."""
    fit, item = by_model(study, seed, (400,))
    found = {f"model_{name}": fit[f"gap_{name}_nats"] for name in ("median", "lower", "upper")}
    return found | {
        "model_truth": truth[item].mean(),
        "k0_found": fit["k0_found"],
        "outcomes": not fit["scale_lower"] <= 1 <= fit["scale_upper"],
        "bins_beyond": fit["bins_beyond"] > 1,
        "gap_r_hat": fit["gap_r_hat"],
        "gap_ess": fit["gap_ess"],
    }


def estimates(method: str, made: xr.Dataset, truth: np.ndarray, study: int) -> dict[str, Any]:
    """What is asked for, of one study."""
    if method == "model":
        return by_posterior(made, truth, study)
    return by_closed_forms(made, truth, tests=study % TESTED == 0)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Bias, coverage and width by violation and method, and the share of studies in which a check notices."""
    made = []
    for violation, mine in rows.groupby("violation", sort=False):
        line: dict[str, Any] = {"violation": violation, "studies": len(mine)}
        for method in [name[: -len("_median")] for name in rows if name.endswith("_median")]:
            lower, upper, truth = mine[f"{method}_lower"], mine[f"{method}_upper"], mine[f"{method}_truth"]
            line[f"{method}_bias"] = (mine[f"{method}_median"] - truth).mean()
            line[f"{method}_covers"] = ((lower <= truth) & (truth <= upper)).mean()
            line[f"{method}_width"] = (upper - lower).mean()
        line["k0_ratio"] = (mine["k0_found"] / mine["k0_true"]).median()
        line |= {name: mine[name].mean() for name in rows if rows[name].dtype == bool or name == "differ"}
        made.append(line)
    return pd.DataFrame(made).round(2)


def main(arguments: list[str]) -> None:
    """Add the rows that are missing, and print what all say."""
    method, folder, result = arguments[0], Path(arguments[1]), Path(arguments[2])
    first, n = (int(number) for number in arguments[3:5]) if len(arguments) > 4 else (0, 100)
    found = beliefs(folder, result.with_suffix(".beliefs.npz"))
    found |= {name: precise(values) for name, values in found.items() if name != "target"}
    done = pd.read_csv(result) if result.exists() else pd.DataFrame({"violation": [], "study": []})
    there = set(zip(done["violation"], done["study"], strict=True))
    for study in range(first, first + n):
        for violation, settings in VIOLATIONS.items():
            if (violation, study) in there:
                continue
            belief = PLAYERS[study % len(PLAYERS)]
            made, truth, true_k0 = simulated(found, belief, SLOPE, study, each=2, **settings)
            estimate = estimates(method, made, truth, study)
            row = {"violation": violation, "study": study, "belief": belief, "k0_true": true_k0}
            one = pd.DataFrame([row | estimate])
            one.to_csv(result, mode="a", header=not result.exists(), index=False)
            if method == "model":
                print(one.to_string(index=False, header=False), flush=True)
    print(summary(pd.read_csv(result)).T.to_string())


if __name__ == "__main__":
    main(sys.argv[1:])
