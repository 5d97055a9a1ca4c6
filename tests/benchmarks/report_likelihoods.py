"""Report likelihoods: what a gradient costs, and whether each is recovered from its own reports and told apart by LOO.

python -m tests.benchmarks.report_likelihoods RESULT.csv --first 0 --last 19 --report pulled equation_6

Every study has new items and people. Its reports are drawn again from the likelihood, at parameters drawn from its
prior, on the words of one posterior draw; the likelihood itself and the linear one are then fitted to them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from shannon_game import designed_simulated, inference
from shannon_game.inference.comparison.participant_checks import alarms
from shannon_game.inference.comparison.participant_fit import Compiled, compiled_for, fit_participants
from shannon_game.inference.comparison.participant_gap import loss_gap
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.models.comparison.participant_data import ParticipantData, participant_data
from shannon_game.models.comparison.participants import ParticipantPriors, participant_model
from shannon_game.models.comparison.reports import REPORTS

OWN = {"pulled": "pull", "prospect": "gamma", "shared_bias": "bias_mean", "equation_6": "weight_mean"}
REPEATS = 100


def compiled_of(data: ParticipantData, report: str) -> Compiled:
    """The model that its fit takes, at its mode."""
    return compiled_for(data, ParticipantPriors(), None, covariates=None, report=report, law=None).at(None)


def cost(data: ParticipantData, report: str) -> float:
    """Milliseconds of processor time of one gradient within the windows at the mode."""
    compiled = compiled_of(data, report)
    x = compiled.gaussian.mode
    start = time.process_time()
    for _ in range(REPEATS):
        compiled.program.density(x)
    return 1e3 * (time.process_time() - start) / REPEATS


def reported(data: ParticipantData, report: str, number: int) -> tuple[ParticipantData, dict[str, Any], float]:
    """The study with reports of the likelihood, its parameters, and the gap of the belief that they are of."""
    compiled, rng = compiled_of(data, "linear"), np.random.default_rng([number, 1])
    belief = compiled.belief(1, rng)
    model = participant_model(data, report=report)
    model.drawn_log_odds.set_value(-belief.token_log_ratio[0, data.row_token])
    free = [*model.free_RVs, *model.deterministics]
    *values, chance = pm.draw([*free, model.box_chance], random_seed=number)
    total = chance.cumsum(axis=1)
    box = (total < rng.random((len(total), 1)) * total[:, -1:]).sum(axis=1).astype(np.intp)
    low, high = np.clip(data.box_edges[box], -1e4, 1e4).T
    made = replace(data, row_box=box, row_low=low.copy(), row_high=high.copy())
    return made, {one.name: value for one, value in zip(free, values, strict=True)}, float(loss_gap(belief).mean())


def row(report: str, number: int, sizes: dict[str, int]) -> dict[str, Any]:
    """One study."""
    data, true, gap = reported(participant_data(designed_simulated(seed=number, **sizes), "slider"), report, number)
    of = {"linear": "linear"} if report == "linear" else {"own": report, "linear": "linear"}
    fits = {name: fit_participants(data, report=its, seed=number) for name, its in of.items()}
    found: dict[str, Any] = {"report": report, "study": number}
    found |= {f"converged_{name}": fit.convergence.passed for name, fit in fits.items()}
    if (own := OWN.get(report)) is not None:
        draws = np.ravel(group(fits["own"].idata, "posterior")[own])
        ends = dict(zip(("lower", "median", "upper"), np.quantile(draws, [0.05, 0.5, 0.95]), strict=True))
        found |= {"true": float(true[own]), **ends}
    for name, fit in fits.items():
        inference.whole_posterior(fit, n_prior=1, n_predictive=200)
        low, high = np.quantile(fit.gap_nats, [0.05, 0.95])
        found |= {f"holds_{name}": bool(low <= gap <= high), f"error_{name}_nats": np.median(fit.gap_nats) - gap}
    found["alarms_linear"] = "; ".join(alarms(data, fits["linear"].idata, np.random.default_rng(number)))
    # reports, each left out given the rest of its item
    loos = {name: inference.loo_by(fit.idata, "report", variable="reports") for name, fit in fits.items()}
    if report == "linear":
        return found
    table = inference.comparison_table(loos).set_index("model")
    return (
        found
        | {"elpd_difference": loos["own"].total_nats - loos["linear"].total_nats}
        | {"chosen": of[table.index[0]], "n_bad_k": int(table["n_bad_k"].max())}
    )


def main() -> None:
    """Add the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--report", nargs="+", default=list(REPORTS))
    parser.add_argument("--costs", action="store_true", help="time gradients on one study instead")
    for name, value in {"first": 0, "last": 19, "items": 60, "vocab": 1000}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    sizes = {"n_items": given.items, "vocab_size": given.vocab}
    if given.costs:
        data = participant_data(designed_simulated(seed=1, **sizes), "slider")
        found = {name: cost(data, name) for name in given.report}
        pd.DataFrame({"report": list(found), "ms_per_gradient": list(found.values())}).to_csv(given.result, index=False)
        return
    table = pd.read_csv(given.result) if given.result.exists() else pd.DataFrame({"report": [], "study": []})
    done = set(table[["report", "study"]].itertuples(index=False, name=None))
    for report in given.report:
        for number in range(given.first, given.last + 1):
            if (report, number) not in done:
                table = pd.concat([table, pd.DataFrame([row(report, number, sizes)])])
                table.to_csv(given.result, index=False)


if __name__ == "__main__":
    main()
