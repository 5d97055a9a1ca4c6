"""Simulation-based calibration of the participant model, the choice of tokens simulated as well.

Usage: python tests/benchmarks/participant_sbc.py RESULT.csv [--first 0] [--last 199] [--items 30] [--vocab 400]
       [--people 12] [--answers 8] [--scale slider] [--report linear ...] [--jobs 1]

Parameters are drawn from the prior, and a log-ratio for every token of a vocabulary from the law, so that the belief is
whole and sums to one. Candidates are draws of the generator and people's free answers; people compare and answer. The
study is read and fitted as any other, and the rank of each true value among the draws should be uniform. Where a
target's log-ratio or the sum over the vocabulary leaves the model's grids, all is drawn anew: the
model has no prior there. Reports are written out here, apart from the model's likelihoods. Adds one row per study and
likelihood to RESULT.csv, leaves out what it has already, and judges all of them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logit, logsumexp

from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    QuestionDesign,
    SimulationSettings,
    rounding_scheme,
    simulate_designed_study,
)
from shannon_game.estimators.comparison.simulation.language import draw_tokens, simulate_language
from shannon_game.estimators.comparison.simulation.participants import simulate_reports
from shannon_game.inference.comparison.participant_fit import fit_participants
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.sbc import rank_of_truth
from shannon_game.inference.posterior.sbc_bands import judge_ranks
from shannon_game.models.comparison.participant_data import participant_data
from shannon_game.models.comparison.participants import GRID, LEVELS, RATIOS, entropy_classes, participant_model

Array = NDArray[Any]

LAW = ("spread", "law_slope", "law_slope_common", "law_slope_rare", "spread_slope")
LAW += ("entropy_slope", "entropy_weight", "entropy_target", "target_mean", "target_slope", "target_spread")
SHAPE = ("by_ratio", "by_ratio_slope", "by_level")
PEOPLE = ("k0", "slope_sd", "bias_sd", "noise_sd", "log_noise", "lapse", "half")
QUANTITIES = (*PEOPLE, *LAW, "gap")
OWN = ("slope", "bias", "noise")
OF_REPORT = {
    "linear": (),
    "shared_bias": ("bias_mean",),
    "pulled": ("pull",),
    "prospect": ("gamma",),
    "own_lapses": ("lapse_sd",),
    "equation_6": ("weight_mean", "weight_sd"),
}
"""What each report likelihood has beside what all have."""
TARGET_FREEDOM = 4
FINE_NATS, BIN_NATS = 0.02, 0.05
"""Steps at which log-ratios and ln g are drawn, far finer than the model's."""
N_RANKED = 63
DRAWS, TUNE, RETRIES = 120, 20, 2
"""Of each of four chains, as in `human_loss`: 240 draws hardly ever have 200 effective ones."""
MARGIN = 1.0
"""Nats that ln lambda of eight answers may be off the sum over the vocabulary."""


@dataclass(frozen=True)
class Sizes:
    """Items and tokens of a study, and what its people are asked."""

    n_items: int
    vocab_size: int
    design: QuestionDesign
    report: str = "linear"


def language(sizes: Sizes, seed: int) -> tuple[Array, Array]:
    """ln g of every token, (item, vocab), and the targets."""
    few = {"n_items": sizes.n_items, "n_reference_items": sizes.n_items, "vocab_size": sizes.vocab_size}
    made = simulate_language(SimulationSettings(**few, seed=seed))
    log_g = made.player_logprob["lm-medium"].astype(float)
    target = draw_tokens(made.true_logprob, 1, np.random.default_rng([seed, 0]))[:, 0]
    return log_g - logsumexp(log_g, axis=1, keepdims=True), target


@cache
def template(sizes: Sizes) -> pm.Model:
    """A model with as many people as the studies have, to draw its parameters from."""
    log_g, target = language(sizes, 0)
    study = simulate_designed_study(log_g, log_g, target, sizes.design, ParticipantPopulation(), seed=0)
    return participant_model(participant_data(study, sizes.design.scale), report=sizes.report)


def drawn_parameters(sizes: Sizes, seed: int) -> dict[str, Array]:
    """One draw of the prior."""
    model, names = template(sizes), [*PEOPLE, *LAW, *SHAPE, *OWN, *OF_REPORT[sizes.report]]
    names += ["weight"] if sizes.report == "equation_6" else []
    return dict(zip(names, pm.draw([model[name] for name in names], random_seed=seed), strict=True))


def law(drawn: dict[str, Array], e: Array, log_g: Array, entropy: Array) -> Array:
    """Log-density of words' log-ratios but for a constant, (word, e)."""
    off, within = log_g + 4, np.clip(log_g, -12, 0) + 4
    middle = (drawn["law_slope"] + drawn["entropy_slope"] * entropy) * off
    middle += drawn["law_slope_common"] * np.maximum(log_g + 2.5, 0)
    middle += drawn["law_slope_rare"] * np.maximum(-log_g - 7, 0)
    spread = drawn["spread"] * np.exp(-drawn["spread_slope"] * within)
    narrow = np.hypot(spread, GRID.narrowest_nats)
    z = (e - middle[:, None]) / narrow[:, None] / np.sqrt(2)
    found = -(np.arcsinh(z) ** 2) / 2 - np.log(1 + z**2) / 2 - 1.2 * np.logaddexp(0, e - middle[:, None] - 1)
    for at, centre in enumerate(RATIOS):
        height = drawn["by_ratio"][at] + drawn["by_ratio_slope"][at] * within
        found += height[:, None] * np.exp(-((np.arcsinh(2 * e) - centre) ** 2) / (2 * 0.7**2))
    for at, centre in enumerate(LEVELS):
        found += drawn["by_level"][at] * np.exp(-((log_g[:, None] + e - centre) ** 2) / (2 * 1.2**2))
    return found + drawn["entropy_weight"] * entropy[:, None] / (1 + np.exp(2 - 2 * e))


def log_ratios(drawn: dict[str, Array], log_g: Array, target: Array, rng: np.random.Generator) -> Array:
    """e of every token and t of every target, from their laws, (item, vocab)."""
    item_class, its = entropy_classes(-(np.exp(log_g) * log_g).sum(axis=1))
    entropy = its[item_class][:, None]
    kind = np.stack([np.floor(log_g / BIN_NATS), np.broadcast_to(item_class[:, None], log_g.shape)], axis=-1)
    kinds, member = np.unique(kind.reshape(-1, 2), axis=0, return_inverse=True)
    e = np.arange(GRID.e[0], GRID.e[1] + FINE_NATS / 2, FINE_NATS)
    density = law(drawn, e, (kinds[:, 0] + 0.5) * BIN_NATS, its[kinds[:, 1].astype(int)])
    total = np.exp(density - density.max(axis=1, keepdims=True)).cumsum(axis=1)
    found, chance = np.empty(log_g.size), rng.random(log_g.size)
    order = np.argsort(member.ravel(), kind="stable")
    for row, words in zip(total, np.split(order, np.cumsum(np.bincount(member.ravel()))[:-1]), strict=True):
        found[words] = np.interp(chance[words] * row[-1], row, e)
    found = found.reshape(log_g.shape)
    row = np.arange(target.size)
    mean = drawn["target_mean"] + drawn["target_slope"] * (log_g[row, target] + 4)
    mean = mean + drawn["entropy_target"] * entropy[:, 0]
    spread = np.hypot(drawn["target_spread"], GRID.narrowest_nats)
    found[row, target] = mean + spread * rng.standard_t(TARGET_FREEDOM, target.size)
    return found


def world(sizes: Sizes, seed: int) -> tuple[dict[str, Array], Array, Array, Array]:
    """Parameters, ln g and ln h of every token, and targets, all within the model's grids."""
    rng = np.random.default_rng([seed, 1])
    log_g, target = language(sizes, seed)
    row = np.arange(target.size)
    while True:
        drawn = drawn_parameters(sizes, int(rng.integers(2**31)))
        e = log_ratios(drawn, log_g, target, rng)
        log_sum = logsumexp(log_g + e, axis=1)
        inside = (GRID.t[0] < e[row, target]) & (e[row, target] < GRID.t[1])
        inside &= (GRID.log_sum[0] + MARGIN < log_sum) & (log_sum < GRID.log_sum[1] - MARGIN)
        if inside.all():
            return drawn, log_g, log_g + e - log_sum[:, None], target


def simulated(sizes: Sizes, seed: int) -> tuple[xr.Dataset, Array, dict[str, Array]]:
    """A study of people, its items' gaps in nats, and the parameters."""
    drawn, log_g, log_h, target = world(sizes, seed)
    rng = np.random.default_rng([seed, 3])
    made = simulate_designed_study(log_g, log_h, target, sizes.design, ParticipantPopulation(), seed=seed)
    item, who = made["response_item"].to_numpy(), np.array([int(name[1:]) for name in made["participant"].to_numpy()])
    asked = made["response_candidate"].to_numpy()
    ratio, of_generator = (
        target.to_numpy()[item] - candidate.to_numpy()[item, asked]
        for target, candidate in (
            (made["human_target_logprob"], made["human_candidate_logprob"]),
            (made["target_logprob"][0], made["candidate_logprob"][0]),
        )
    )
    log_odds, bias, slope = said_log_odds(sizes.report, drawn, who, ratio, of_generator)
    scale = rounding_scheme(sizes.design.scale)
    report = simulate_reports(
        log_odds,
        rng=rng,
        bias=bias,
        slope=slope,
        noise_sd=drawn["noise"][who],
        lapse_rate=drawn["lapse"][who] if sizes.report == "own_lapses" else drawn["lapse"],
        rounding=scale,
        clicks=scale.values,
        undecided_share=float(drawn["half"]),
    )
    row = np.arange(target.size)
    return made.assign(report=("response", report)), (log_g - log_h)[row, target], drawn


def said_log_odds(
    report: str, drawn: dict[str, Array], who: Array, log_odds: Array, of_generator: Array
) -> tuple[Array, Array, Array]:
    """What noise is added to once it has a bias and a slope; a bias of 0 and a slope of 1 where it has its own."""
    bias, slope = drawn["bias"][who], drawn["slope"][who]
    if report == "pulled":
        said = (1 - drawn["pull"]) * expit(slope * (log_odds + bias)) + drawn["pull"] / 2
        return logit(said), np.zeros(who.size), np.ones(who.size)
    if report == "prospect":
        yes, no = drawn["gamma"] * log_expit(log_odds), drawn["gamma"] * log_expit(-log_odds)
        log_weight = np.minimum(yes - np.logaddexp(yes, no) / drawn["gamma"], -1e-12)
        return log_weight - np.log(-np.expm1(log_weight)), bias, slope
    if report == "equation_6":
        return log_odds - drawn["weight"][who] * of_generator, bias, slope
    return log_odds, bias, slope


def ranked(number: int, sizes: Sizes, *, draws: int = DRAWS, tune: int = TUNE) -> dict[str, Any]:
    """Simulate and fit one study: rank, truth and posterior median of every quantity."""
    study, gap, drawn = simulated(sizes, number)
    start = time.process_time()
    data, how = participant_data(study, sizes.design.scale), {"report": sizes.report, "retries": RETRIES}
    fit = fit_participants(data, draws=draws, tune=tune, seed=number, **how)
    found: dict[str, Any] = {"report": sizes.report, "study": number, "converged": fit.convergence.passed}
    posterior, rng = group(fit.idata, "posterior"), np.random.default_rng([number, 2])
    own = () if sizes.report != "own_lapses" else ("lapse",)  # there one of each person
    for name in (*(one for one in QUANTITIES if one not in own), *OF_REPORT[sizes.report]):
        draws = fit.item_gap_nats.mean(axis=1) if name == "gap" else posterior[name].to_numpy().ravel()
        truth = float(gap[fit.data.position].mean() if name == "gap" else drawn[name])
        found[f"{name}_rank"] = rank_of_truth(draws, truth, N_RANKED, rng)
        found |= {f"{name}_truth": truth, f"{name}_median": float(np.median(draws))}
    return found | {"seconds": round(time.process_time() - start, 2)}


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Verdict on the ranks of every quantity."""
    # what other likelihoods have is in no row of these
    ranks = rows.filter(regex="_rank$").dropna(axis=1, how="all")
    found = {name.removesuffix("_rank"): vars(judge_ranks(ranks[name].to_numpy(), N_RANKED)) for name in ranks}
    return pd.DataFrame(found).T


def main() -> None:
    """Add the rows that are missing, and judge all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    numbers = {"first": 0, "last": 199, "items": 30, "vocab": 400, "people": 12, "answers": 8, "jobs": 1}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--scale", default="slider")
    parser.add_argument("--report", choices=OF_REPORT, nargs="+", default=["linear"])
    given = parser.parse_args()
    design = replace(QuestionDesign(), n_participants=given.people, n_answers=given.answers, scale=given.scale)
    table = pd.read_csv(given.result) if given.result.exists() else pd.DataFrame({"report": [], "study": []})
    done = set(table[["report", "study"]].itertuples(index=False, name=None))
    numbered = [(report, number) for number in range(given.first, given.last + 1) for report in given.report]
    tasks = [
        (number, Sizes(given.items, given.vocab, design, report))
        for report, number in numbered
        if (report, number) not in done
    ]
    with Pool(given.jobs) as pool:
        for row in pool.imap_unordered(_ranked, tasks):
            table = pd.concat([table, pd.DataFrame([row])])
            table.to_csv(given.result, index=False)
    for report, rows in table.groupby("report"):
        print(f"{report}: {len(rows)} studies, {int(rows['converged'].sum())} pass their check")
        print(judged(rows).to_string())


def _ranked(task: tuple[int, Sizes]) -> dict[str, Any]:
    return ranked(*task)


if __name__ == "__main__":
    main()
