"""People who are not of the participant model's form, with known truth: whether its interval holds, and what rings.

python tests/benchmarks/hidden_people.py RESULT.csv [--first 0] [--last 19] [--cases CASE ...] [--alone] [--items 120]
       [--engine nuts] [--wider 2]

Every study has 60 items and 30 people of its own, and the generator's whole distribution but for `draws_alone`. With
free answers people compare on a slider; `--alone`: on eleven values, comparisons only. The interval is the one that
`human_loss` quotes: the hull of the posteriors with and without a bias that all share; where the check of camps rings,
also that of the camps pooled. Draws are of the Gaussian around the mode, or of the model's sampler, without further
ones; with the engine `none` there is no fit, and only the check of camps. `--wider`: all scales of the priors, by this
factor. Adds a row per study, one case after the other, so that a run that is stopped has as many of each, and leaves
out what RESULT.csv has already, or what the loader refuses.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import xarray as xr
from hidden_recovery import GATE, of_gaussian
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, logit

from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    QuestionDesign,
    rounding_scheme,
    simulate_designed_study,
)
from shannon_game.estimators.comparison.simulation.participants import Participants, reports_of
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.comparison.human_loss.experiment import _of_people
from shannon_game.inference.comparison.participant_checks import check_camps, check_ends, check_unexpected
from shannon_game.inference.comparison.participant_fit import Compiled, ParticipantFit, fit_participants
from shannon_game.inference.comparison.participant_posterior import _Simulator
from shannon_game.inference.comparison.participant_sensitivity import (
    pooled_gap,
    scaled_priors,
    unusual_participants,
    without_shared_bias,
)
from shannon_game.inference.posterior.arviz_adapter import add_groups, group
from shannon_game.models.comparison.participant_data import participant_data
from shannon_game.models.comparison.participants import ParticipantPriors

Array = NDArray[Any]

CASES = (
    # people whom the model describes, and beliefs of other shapes
    *("control", "swapped", "pareto", "unigrams", "classes"),
    # people whom it does not
    *("odd_people", "camps", "minority", "shared_bias", "prospect", "pull"),
    # the control, of whose generator draws alone are known
    "draws_alone",
)
REPORTED = ("odd_people", "shared_bias", "prospect", "pull")
"""Other reports by the people of the control, which come after it: their model need not be compiled again."""
ORDER = ("control", *REPORTED, *(case for case in CASES if case not in ("control", *REPORTED)))
SCALES = (0.6, 1.0, 1.6)
"""Typical slopes of reports, one after the other."""
N_TOKENS, N_CLASSES, N_TOPICS = 1500, 12, 15
BIAS, GAMMA, PULL, ODD, MINORITY, UNIGRAMS, APART = 0.4, 0.6, 0.3, 0.2, 0.25, 0.3, 1.3
TAIL, DRAWS, TUNE = 0.05, 75, 15


def language(rng: np.random.Generator, n_items: int) -> tuple[Array, Array, Array, Array]:
    """True and the generator's log-probabilities, (item, vocab), those of unigrams, and each token's class."""
    unigram = log_softmax(-np.log(np.arange(N_TOKENS) + 3.7))
    of_class, topic = rng.integers(0, N_CLASSES, N_TOKENS), rng.normal(size=(N_TOKENS, N_TOPICS))
    signal = 2 * rng.normal(size=(n_items, N_CLASSES))[:, of_class]
    signal = signal + rng.normal(size=(n_items, N_TOPICS)) @ topic.T / np.sqrt(N_TOPICS)
    signal = signal + rng.exponential(0.7, (n_items, N_TOKENS))
    true = log_softmax(unigram + signal * np.exp(0.3 * rng.normal(size=(n_items, 1))), axis=1)
    return true, log_softmax(0.95 * true + 0.5 * rng.normal(size=true.shape), axis=1), unigram, of_class


def beliefs(case: str, rng: np.random.Generator, g: Array, unigram: Array, of_class: Array) -> list[Array]:
    """Beliefs that people hold, one or two."""
    camps = case in ("camps", "minority")

    def near() -> Array:
        return log_softmax(0.85 * g + (APART if camps else 0.7) * rng.normal(size=g.shape), axis=1)

    if case == "pareto":
        return [log_softmax(g + rng.exponential(0.8, g.shape), axis=1)]
    if case == "unigrams":
        return [np.logaddexp(np.log(1 - UNIGRAMS) + log_softmax(g / 1.6, axis=1), np.log(UNIGRAMS) + unigram)]
    if case == "classes":  # words of a class share their log-ratio
        return [log_softmax(g + rng.normal(size=(len(g), N_CLASSES))[:, of_class], axis=1)]
    found = near()
    if case == "swapped":  # the most probable token, and any other one
        row, one, other = np.arange(len(g)), found.argmax(axis=1), rng.integers(0, N_TOKENS, len(g))
        found[row, one], found[row, other] = found[row, other], found[row, one]
    return [found, near()] if camps else [found]


def study_of(case: str, number: int, *, alone: bool, n_items: int = 60) -> tuple[xr.Dataset, float, Array]:
    """A study, its mean gap in nats, and who is of the second camp."""
    words = "control" if case in (*REPORTED, "draws_alone") else case
    rng = np.random.default_rng([number, CASES.index(words), int(alone), 48])
    design = QuestionDesign(n_participants=30, n_answers=0 if alone else 8, scale="interface" if alone else "slider")
    true, g, unigram, of_class = language(rng, n_items)
    target = (true + rng.gumbel(size=true.shape)).argmax(axis=1)
    held = beliefs(case, rng, g, unigram, of_class)
    second = rng.permutation(30) < {"camps": 15, "minority": round(30 * MINORITY)}.get(case, 0)
    weights = {"belief_weights": np.stack([~second, second], axis=1).astype(float)} if len(held) == 2 else {}
    people = ParticipantPopulation(slope_median=SCALES[number % 3])
    belief = np.stack(held) if weights else held[0]
    made = simulate_designed_study(g, belief, target, design, people, seed=int(rng.integers(2**31)), **weights)
    gap = float((made["target_logprob"].to_numpy()[0] - made["human_target_logprob"].to_numpy()).mean())
    if case == "draws_alone":
        made = made.drop_vars(["reference_logprob", "token"])
    rng = np.random.default_rng([number, CASES.index(case), int(alone), 49])
    return made.assign(report=("response", reports(case, made, design, rng))), gap, second


def reports(case: str, study: xr.Dataset, design: QuestionDesign, rng: np.random.Generator) -> Array:
    """What these people report where the simulator of studies has nobody like them."""
    said: Array = study["report"].to_numpy()
    if case not in REPORTED:
        return said
    names, who = np.unique(study["participant"].to_numpy().astype(str), return_inverse=True)
    scale = rounding_scheme(design.scale)
    if case == "odd_people":  # half of the odd ones always say 50%, half the end that they lean to
        odd = rng.permutation(names.size)
        half, ends = odd[who] < names.size * ODD / 2, odd[who] >= names.size * (1 - ODD / 2)
        values = np.asarray(scale.values)
        return np.where(half, 0.5, np.where(ends, np.where(said < 0.5, values[0], values[-1]), said))
    item, candidate = (study[name].to_numpy() for name in ("response_item", "response_candidate"))
    log_odds = study["human_target_logprob"].to_numpy()[item]
    log_odds = log_odds - study["human_candidate_logprob"].to_numpy()[item, candidate]
    known = study.sel(participant_truth=names)
    bias, slope, noise, lapse = (known[f"true_{name}"].to_numpy() for name in ("bias", "slope", "noise", "lapse"))
    if case == "shared_bias":
        bias = bias + BIAS
    elif case == "prospect":
        yes, no = GAMMA * log_expit(log_odds), GAMMA * log_expit(-log_odds)
        log_weight = np.minimum(yes - np.logaddexp(yes, no) / GAMMA, -1e-12)
        log_odds = log_weight - np.log(-np.expm1(log_weight))
    else:
        log_odds = logit((1 - PULL) * expit(slope[who] * (log_odds + bias[who])) + PULL / 2)
        bias, slope = np.zeros(names.size), np.ones(names.size)
    return reports_of(Participants(bias, slope, noise, lapse), who, log_odds, scale, rng)


def predict(fit: ParticipantFit, rng: np.random.Generator) -> None:
    """Add new reports at a third of the draws."""
    simulate, posterior = _Simulator(fit.compiled), group(fit.idata, "posterior")
    names = [one.name for one in fit.compiled.program.model.free_RVs]
    draws = [posterior[name].to_numpy().reshape(-1, *posterior[name].shape[2:])[::3] for name in names]
    said = np.stack([simulate(dict(zip(names, one, strict=True)), rng)["reports"] for one in zip(*draws, strict=True)])
    add_groups(fit.idata, {"posterior_predictive": xr.Dataset({"reports": (("chain", "draw", "report"), said[None])})})


def beside(name: str, truth: float, *draws: Array) -> dict[str, Any]:
    """Hull of the intervals of draws, the median of the first ones, and whether the truth is inside."""
    ends = np.stack([np.quantile(one, [TAIL, 0.5, 1 - TAIL]) for one in draws])
    lower, median, upper = ends[:, 0].min(), ends[0, 1], ends[:, 2].max()
    found = {"lower": lower, "median": median, "upper": upper, "holds": bool(lower <= truth <= upper)}
    return {f"{name}{what}": value for what, value in found.items()}


def row(case: str, number: int, *, alone: bool, engine: str, n_items: int = 60, wider: float = 1) -> dict[str, Any]:
    """Simulate and estimate one study."""
    made, truth, second = study_of(case, number, alone=alone, n_items=n_items)
    scale, start = "interface" if alone else "slider", time.process_time()
    data, rng = participant_data(made, scale), np.random.default_rng(number)
    how: dict[str, Any] = {"report": "shared_bias", "seed": number, "priors": scaled_priors(ParticipantPriors(), wider)}
    how |= {} if engine == "nuts" else {"draws": DRAWS, "tune": TUNE, "thresholds": GATE}
    camps = check_camps(data, np.random.default_rng(number))
    found: dict[str, Any] = {"case": case, "collected": "comparisons" if alone else "answers", "items": n_items}
    right = float((camps.second == second).mean())
    found |= {"study": number, "engine": engine, "truth": truth, "k0": SCALES[number % 3], "camps_z": camps.z}
    found |= {"camps_right": max(right, 1 - right), "unusual": len(unusual_participants(data))}
    found["unexpected"] = check_unexpected(data).share
    if engine == "none":
        return found
    with ExitStack() as patched:
        if engine == "gaussian":
            patched.enter_context(mock.patch.object(Compiled, "draws", of_gaussian))
        fit = fit_participants(data, **how)
        bare = without_shared_bias(fit, rng)
        predict(fit, rng)
        found["ends_p"] = check_ends(fit.idata, data).p_value
        bare = bare or fit_participants(data, **how | {"report": "linear"})
        found |= beside("", truth, fit.gap_nats) | beside("hull_", truth, fit.gap_nats, bare.gap_nats)
        if camps.rings:
            its = [_of_people(made, data.participant[own]) for own in (camps.second, ~camps.second)]
            parts = [fit_participants(participant_data(one, scale), **how) for one in its]
            found |= beside("pooled_", truth, pooled_gap(parts)[0].mean(axis=1))
    return found | {"converged": fit.convergence.passed, "cpu_seconds": round(time.process_time() - start, 1)}


def main() -> None:
    """Add the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=19)
    parser.add_argument("--cases", nargs="+", default=ORDER)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--engine", choices=("gaussian", "nuts", "none"), default="gaussian")
    parser.add_argument("--wider", type=float, default=1)
    given = parser.parse_args()
    how = {"alone": given.alone, "engine": given.engine, "n_items": given.items, "wider": given.wider}
    engine = given.engine + f" wider {given.wider:g}" * (given.wider != 1)
    keys = ["case", "collected", "items", "study", "engine"]
    table = pd.read_csv(given.result) if given.result.exists() else pd.DataFrame({key: [] for key in keys})
    done = set(table[keys].itertuples(index=False, name=None))
    for number in range(given.first, given.last + 1):
        for case in given.cases:
            key = case, "comparisons" if given.alone else "answers", given.items, number, engine
            if key in done:
                continue
            try:
                found = row(case, number, **how) | {"engine": engine}
            except InputError as refused:  # candidates that cover too little of the generator's distribution
                print(*key, refused, flush=True)
                continue
            table = pd.concat([table, pd.DataFrame([found])])
            table.round(4).to_csv(given.result, index=False)


if __name__ == "__main__":
    main()
