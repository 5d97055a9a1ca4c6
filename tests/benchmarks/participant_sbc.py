"""Simulation-based calibration of the participant model, the choice of tokens simulated as well.

Usage: python tests/benchmarks/participant_sbc.py RESULT.csv [--first 0] [--last 99] [--items 120] [--vocab 2000]
       [--people 29] [--answers 8] [--scale slider] [--sampler gaussian] [--jobs 1]

Parameters are drawn from the prior, and a log-ratio for every token of a vocabulary from the law, so that the belief is
whole and sums to one. Candidates are draws of the generator and people's free answers; people compare and answer. The
study is read and fitted as any other, and the rank of each true value among the draws should be uniform. Where a
target's log-ratio or the sum over the vocabulary leaves the model's grids, all is drawn anew: the
model has no prior there. Adds one row per study to RESULT.csv, leaves out what it has already, and judges all of them.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from scipy.special import logsumexp

from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    QuestionDesign,
    SimulationSettings,
    rounding_scheme,
    simulate_designed_study,
    simulate_reports,
)
from shannon_game.estimators.comparison.simulation.language import draw_tokens, simulate_language
from shannon_game.inference.comparison.participant_fit import fit_participants
from shannon_game.inference.posterior.arviz_adapter import group
from shannon_game.inference.posterior.sbc import rank_of_truth
from shannon_game.inference.posterior.sbc_bands import judge_ranks
from shannon_game.models.comparison.participant_data import participant_data
from shannon_game.models.comparison.participants import GRID, entropy_classes, participant_model

Array = NDArray[Any]

LAW = ("spread", "law_slope", "law_slope_common", "law_slope_rare", "spread_slope")
LAW += ("left_place", "left_spread", "left_weight", "entropy_slope", "entropy_weight", "entropy_target")
LAW += ("right_place", "right_spread", "right_weight", "right_slope", "right_weight_slope")
LAW += ("target_mean", "target_slope", "target_spread")
PEOPLE = ("k0", "slope_sd", "bias_sd", "noise_sd", "log_noise", "lapse", "half")
QUANTITIES = (*PEOPLE, *LAW, "gap")
OWN = ("slope", "bias", "noise")
TARGET_FREEDOM = 4
N_RANKED = 63
MARGIN = 1.0
"""Nats that ln lambda of eight answers may be off the sum over the vocabulary."""


@dataclass(frozen=True)
class Sizes:
    """Items and tokens of a study, and what its people are asked."""

    n_items: int
    vocab_size: int
    design: QuestionDesign


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
    return participant_model(participant_data(study, sizes.design.scale))


def drawn_parameters(sizes: Sizes, seed: int) -> dict[str, Array]:
    """One draw of the prior."""
    model, names = template(sizes), [*PEOPLE, *LAW, *OWN]
    return dict(zip(names, pm.draw([model[name] for name in names], random_seed=seed), strict=True))


def log_ratios(drawn: dict[str, Array], log_g: Array, target: Array, rng: np.random.Generator) -> Array:
    """e of every token and t of every target, from their laws, (item, vocab)."""
    off, within = log_g + 4, np.clip(log_g, -12, 0) + 4
    item_class, its = entropy_classes(-(np.exp(log_g) * log_g).sum(axis=1))
    entropy = its[item_class][:, None]
    main = (drawn["law_slope"] + drawn["entropy_slope"] * entropy) * off
    main = main + drawn["law_slope_common"] * np.maximum(log_g + 2.5, 0)
    main = main + drawn["law_slope_rare"] * np.maximum(-log_g - 7, 0)
    place = np.stack([main, main + drawn["left_place"], drawn["right_place"] + drawn["right_slope"] * within])
    scale = np.array([drawn["spread"], drawn["left_spread"], drawn["right_spread"]])
    right_logit = drawn["right_weight"] + drawn["right_weight_slope"] * within
    right_logit = right_logit + drawn["entropy_weight"] * entropy
    logit = np.stack([np.zeros_like(log_g), np.full_like(log_g, drawn["left_weight"]), right_logit])
    # the largest of logits with Gumbel noise is a draw of the part
    part = (logit + rng.gumbel(size=logit.shape)).argmax(axis=0)
    e = np.take_along_axis(place, part[None], axis=0)[0]
    e += scale[part] * np.exp(-drawn["spread_slope"] * within) * rng.standard_normal(log_g.shape)
    row = np.arange(target.size)
    mean = drawn["target_mean"] + drawn["target_slope"] * off[row, target] + drawn["entropy_target"] * entropy[:, 0]
    e[row, target] = mean + drawn["target_spread"] * rng.standard_t(TARGET_FREEDOM, target.size)
    return e


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
    x = made["human_candidate_logprob"].to_numpy()[item, made["response_candidate"].to_numpy()]
    scale = rounding_scheme(sizes.design.scale)
    report = simulate_reports(
        made["human_target_logprob"].to_numpy()[item] - x,
        rng=rng,
        bias=drawn["bias"][who],
        slope=drawn["slope"][who],
        noise_sd=drawn["noise"][who],
        lapse_rate=drawn["lapse"],
        rounding=scale,
        clicks=scale.values,
        undecided_share=float(drawn["half"]),
    )
    row = np.arange(target.size)
    return made.assign(report=("response", report)), (log_g - log_h)[row, target], drawn


def ranked(number: int, sizes: Sizes, sampler: str = "hmc", **settings: Any) -> dict[str, Any]:
    """Simulate and fit one study: rank, truth and posterior median of every quantity."""
    study, gap, drawn = simulated(sizes, number)
    start = time.process_time()
    fit = fit_participants(participant_data(study, sizes.design.scale), sampler=sampler, seed=number, **settings)
    found: dict[str, Any] = {"study": number, "converged": fit.convergence.passed}
    posterior, rng = group(fit.idata, "posterior"), np.random.default_rng([number, 2])
    for name in QUANTITIES:
        draws = fit.item_gap_nats.mean(axis=1) if name == "gap" else posterior[name].to_numpy().ravel()
        truth = float(gap[fit.data.position].mean() if name == "gap" else drawn[name])
        found[f"{name}_rank"] = rank_of_truth(draws, truth, N_RANKED, rng)
        found |= {f"{name}_truth": truth, f"{name}_median": float(np.median(draws))}
    return found | {"seconds": round(time.process_time() - start, 2)}


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Verdict on the ranks of every quantity."""
    found = {name: vars(judge_ranks(rows[f"{name}_rank"].to_numpy(), N_RANKED)) for name in QUANTITIES}
    return pd.DataFrame(found).T


def main() -> None:
    """Add the rows that are missing, and judge all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", type=Path)
    numbers = {"first": 0, "last": 99, "items": 120, "vocab": 2000, "people": 29, "answers": 8, "jobs": 1}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--scale", default="slider")
    parser.add_argument("--sampler", default="hmc")
    given = parser.parse_args()
    design = replace(QuestionDesign(), n_participants=given.people, n_answers=given.answers, scale=given.scale)
    work = partial(ranked, sizes=Sizes(given.items, given.vocab, design), sampler=given.sampler)
    done = set(pd.read_csv(given.result)["study"]) if given.result.exists() else set()
    with Pool(given.jobs) as pool:
        for row in pool.imap_unordered(work, sorted(set(range(given.first, given.last + 1)) - done)):
            pd.DataFrame([row]).to_csv(given.result, mode="a", header=not given.result.exists(), index=False)
    print(judged(pd.read_csv(given.result)).to_string())


if __name__ == "__main__":
    main()
