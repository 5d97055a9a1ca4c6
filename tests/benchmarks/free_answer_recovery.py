"""Recover the loss gap of simulated people, whose beliefs are those of language models, from reports and free answers.

Usage: python tests/benchmarks/free_answer_recovery.py METHOD FOLDER RESULT.csv [PLAYERS] [K0S] [FIRST N] [DRAWS]

FIRST and N say which studies of every cell.

METHOD is `model` (free answers and reports of one belief; minutes of processor time a study) or `bridge` (the scaled
bridge, which takes less time than the simulation).
FOLDER is that of the public data of the comparison game (its documents are the contexts). Every study has 120 contexts,
29 people, 5% lapses, noise of .9 nats, slopes whose ln has the standard deviation .6, and 6 draws, 8 free answers and
12 comparisons an item on a slider to 100,000,000 : 1. The truth is the gap of the belief that all share, on the items
used. DRAWS are lengths of chains, `400,1600` by default: what misses the check with the first is fitted again. Adds a
row a study to RESULT.csv and leaves out what it has already: a run that was stopped goes on. The beliefs, minutes of
computing, are kept beside it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import stdtrit

import inference
import models
from estimators.comparison import (
    ParticipantPopulation,
    QuestionDesign,
    scaled_bridge,
    simulate_designed_study,
    study_pool,
)
from experiments.studies.documents.lm_game_documents import LmGameDocumentsSettings, lm_game_documents
from inference.lm import ModelSettings, encode, load_language_model, next_token_distributions
from inference.posterior.arviz_adapter import ess_bulk, r_hat

N_CONTEXTS, N_ITEMS, MIXED = 360, 120, 0.4
LENGTHS = (400, 1600)
"""Draws of a chain, and those of the chains made where these are too few."""
OF_ONE = ("item", "token", "participant")
"""Dims of numbers that not all share."""
PLAYERS = ("hot", "cold", "shallow", "unigrams", "noisy")
"""Temperature 2 and .7, without the last block, with 40% unigrams, and half of the logits of 28 blocks with Laplace
noise, on which nothing was tuned."""


def beliefs(folder: Path, kept: Path) -> dict[str, np.ndarray]:
    """Log-probabilities of the generator and of every player, (context, token), and the targets."""
    if kept.exists():
        return dict(np.load(kept, allow_pickle=False))
    settings = ModelSettings(name="g", source="smollm2", bos="<|endoftext|>")
    generator = load_language_model(settings)
    texts = lm_game_documents(LmGameDocumentsSettings(root=folder))["text"].to_numpy().tolist()
    documents = [ids for ids in encode(generator, texts) if len(ids) > 70]
    rng = np.random.default_rng(7)
    chosen = [documents[at] for at in np.resize(rng.permutation(len(documents)), N_CONTEXTS)]
    ends = rng.integers(25, 61, N_CONTEXTS).tolist()
    contexts = [ids[:end] for ids, end in zip(chosen, ends, strict=True)]
    found = {"target": np.array([ids[end] for ids, end in zip(chosen, ends, strict=True)])}
    for name, layers in (("g", None), ("shallow", 29), ("28 blocks", 28)):
        model = load_language_model(settings.model_copy(update={"name": name, "n_layers": layers}))
        found[name] = next_token_distributions(model, contexts, whole=True)["logprob"].to_numpy().astype(np.float32)
    g = found["g"].astype(float)
    count = np.bincount(np.concatenate(documents), minlength=g.shape[1]) + 0.05
    found |= {
        "hot": normalised(g / 2),
        "cold": normalised(g / 0.7),
        "unigrams": np.logaddexp(np.log(1 - MIXED) + g, np.log(MIXED * count / count.sum())),
        "noisy": normalised(0.5 * (found.pop("28 blocks") + g) + rng.laplace(0, 0.8, g.shape)),
    }
    np.savez(kept, **found)
    return found


def normalised(logit: np.ndarray) -> np.ndarray:
    """Log-probabilities."""
    return logit - np.logaddexp.reduce(logit, axis=1, keepdims=True)


def precise(logprob: np.ndarray) -> np.ndarray:
    """Log-probabilities in double precision; those that have it are normalised."""
    return logprob if logprob.dtype == np.float64 else normalised(logprob.astype(float))


def simulated(
    found: dict[str, np.ndarray], belief: str, k0: float, study: int, *, each: int = 1, **violations: Any
) -> tuple[xr.Dataset, np.ndarray, float]:
    """One study, of people who compare `each` tokens of a context; every item's true gap, and the true k0."""
    rng = np.random.default_rng(np.random.SeedSequence(study, spawn_key=(PLAYERS.index(belief), int(1000 * k0))))
    items = np.sort(rng.choice(N_CONTEXTS, N_ITEMS, replace=False))
    people = ParticipantPopulation(
        bias_sd_nats=0.5, slope_median=k0, slope_log_sd=0.6, noise_median_nats=0.9, noise_log_sd=0.3, lapse_mean=0.05
    )
    made = simulate_designed_study(
        precise(found["g"][items]),
        precise(found[belief][items]),
        found["target"][items],
        QuestionDesign(scale="slider_wide", n_comparisons_each=each),
        people,
        seed=int(rng.integers(2**31)),
        **violations,
    )
    slope = made["true_slope"].to_numpy()[~made["true_bot"].to_numpy()]
    g_loss = made["target_logprob"].sel(model=made.attrs["generator"]).to_numpy()
    truth = g_loss - made["human_target_logprob"].to_numpy()
    return made, truth, float(np.exp(np.log(slope).mean()))


def row(
    method: str, found: dict[str, np.ndarray], player: str, k0: float, study: int, lengths: tuple[int, ...] = LENGTHS
) -> dict[str, object]:
    """Simulate and estimate one study."""
    made, item_truth, true_k0 = simulated(found, player, k0, study)
    start = time.perf_counter()
    estimate, item = by_bridge(made) if method == "bridge" else by_model(made, study, lengths)
    truth = float(item_truth[item].mean())
    return {
        "player": player,
        "k0": k0,
        "study": study,
        "n_items": item.size,
        "truth_nats": truth,
        **estimate,
        "covers": estimate["gap_lower_nats"] <= truth <= estimate["gap_upper_nats"],
        "k0_ratio": estimate["k0_found"] / true_k0,
        "seconds": round(time.perf_counter() - start, 2),
    }


def by_bridge(study: xr.Dataset, slope: float | None = None) -> tuple[dict[str, float], np.ndarray]:
    """The scaled bridge, with Student's t and the errors for these very items, and positions of the items used."""
    pool, position = study_pool(study)
    found = scaled_bridge(pool, slope=slope)
    arm = float(stdtrit(found.freedom, 0.95)) * found.se_asked_nats
    ends = {"gap_lower_nats": found.gap_nats - arm, "gap_upper_nats": found.gap_nats + arm}
    return {"gap_median_nats": found.gap_nats, **ends, "k0_found": found.slope}, position[found.item]


def by_model(study: xr.Dataset, seed: int, lengths: tuple[int, ...] = LENGTHS) -> tuple[dict[str, Any], np.ndarray]:
    """The model of free answers and reports; a fit that misses the check is made again, with longer chains."""
    data, started = models.free_answer_data(study, "slider_wide"), time.process_time()
    for draws in lengths:
        fit = inference.fit_free_answers(
            data, draws=draws, tune=draws // 2, chains=4, cores=1, target_accept=0.65, seed=seed, progress=False
        )
        if fit.convergence.passed:
            break
    lower, median, upper = np.quantile(fit.gap_nats, [0.05, 0.5, 0.95])
    gap = fit.gap_nats.reshape(4, -1)
    checks = {"converged": fit.convergence.passed, "r_hat": fit.convergence.r_hat_max, "draws": draws}
    posterior = fit.idata.posterior
    shared = [np.asarray(posterior[name]) for name in posterior if not set(OF_ONE) & set(posterior[name].dims)]
    checks |= {"shared_r_hat": max(map(r_hat, shared)), "shared_ess": min(map(ess_bulk, shared))}
    checks |= {"ess": fit.convergence.ess_bulk_min, "divergent": fit.convergence.n_divergent}
    checks |= {"gap_r_hat": r_hat(gap), "gap_ess": ess_bulk(gap), "cpu_seconds": time.process_time() - started}
    # what a run checks besides: outcomes against answers, and answers against what the posterior expects of them
    weight = np.random.default_rng(seed).exponential(size=fit.item_gap_nats.shape)
    scale = np.quantile(inference.answered_temperature(posterior, data, weight), [0.05, 0.95])
    bins = inference.expected_answers(posterior, data, np.random.default_rng(seed)).summary()
    beyond = (bins["observed"] < bins["predicted_lower"]) | (bins["observed"] > bins["predicted_upper"])
    checks |= {"scale_lower": scale[0], "scale_upper": scale[1], "bins_beyond": int(beyond.sum())}
    ends = {"gap_lower_nats": lower, "gap_upper_nats": upper}
    # items are numbered where nobody named them
    return {"gap_median_nats": median, **ends, "k0_found": float(np.median(fit.k0)), **checks}, data.item


def main(arguments: list[str]) -> None:
    """Add the rows that are missing."""
    method, folder, result = arguments[0], Path(arguments[1]), Path(arguments[2])
    players = arguments[3].split(",") if len(arguments) > 3 else list(PLAYERS)
    scales = [float(k0) for k0 in arguments[4].split(",")] if len(arguments) > 4 else [1.0, 0.3, 2.0]
    first, n = (int(number) for number in arguments[5:7]) if len(arguments) > 6 else (0, 5)
    lengths = tuple(map(int, arguments[7].split(","))) if len(arguments) > 7 else LENGTHS
    found = beliefs(folder, result.with_suffix(".beliefs.npz"))
    done = pd.read_csv(result) if result.exists() else pd.DataFrame({"player": [], "k0": [], "study": []})
    there = set(zip(done["player"], done["k0"], done["study"], strict=True))
    for study in range(first, first + n):
        for k0 in scales:
            for player in players:
                if (player, k0, study) not in there:
                    one = pd.DataFrame([row(method, found, player, k0, study, lengths)])
                    one.to_csv(result, mode="a", header=not result.exists(), index=False)
                    print(one.to_string(index=False, header=False), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
