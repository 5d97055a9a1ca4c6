"""Bayesian TVD of every player, on a random part of its contexts."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from omegaconf import DictConfig
from tqdm import tqdm

from estimators import InputError
from estimators.oracles import independent_oracles
from experiments.cloze_settings import ORACLE, clean_words, label, number, whole
from experiments.settings import rng_for, tail_probability
from experiments.tvd_results import PlayerTvd, part_counts
from inference.word_pairs import TvdPosterior, WordPairSettings, tvd_posterior

__all__ = ["bayesian_columns", "split_r_hat"]


def bayesian_columns(
    cfg: DictConfig, study: xr.Dataset, players: list[PlayerTvd], n_contexts: int
) -> tuple[dict[str, dict[str, Any]], list[str], bool]:
    """Posterior mean and interval of the expected TVD of each player.

    Returns
    -------
    columns : dict
        Player -> columns of its row.
    warnings : list of str
    gate_failed : bool
        A chain has not converged, and ``experiment.bayes.allow_unconverged`` does not excuse it.
    """
    settings = WordPairSettings(
        tune=whole(cfg, "bayes.tune", lowest=10),
        draws=whole(cfg, "bayes.draws", lowest=4),
        thin=whole(cfg, "bayes.thin"),
        chains=whole(cfg, "bayes.chains", lowest=2),
    )
    limit = number(cfg, "bayes.r_hat", lowest=1.0)
    allowed = cfg.experiment.bayes.allow_unconverged
    if not isinstance(allowed, bool):
        raise InputError(f"is {allowed!r}, should be true or false", field="experiment.bayes.allow_unconverged")
    tail = tail_probability(cfg)
    words = clean_words(cfg, study, [player.player for player in players if player.player != ORACLE])
    answers = words.answers()
    columns, warnings, failed = {}, [], False
    for player in tqdm(players, desc="Bayesian TVD", unit="player", leave=False):
        rng = rng_for(cfg, f"bayes {player.player}")
        chosen = np.sort(rng.choice(len(player.items), size=min(n_contexts, len(player.items)), replace=False))
        items = player.items[chosen]
        human = answers.take(items)
        if player.player == ORACLE:
            split = independent_oracles(human, n_splits=1, rng=rng)
            pair = part_counts(split, 0, "first"), part_counts(split, 0, "second")
        else:
            model = words.models[player.player]
            pair = human, model.counts.take(np.searchsorted(model.item, items))
        posterior = tvd_posterior(*pair, rng=rng, settings=settings)
        expected = posterior.expected()
        r_hat = split_r_hat(expected)
        columns[player.player] = {
            "n_contexts_bayes": len(items),
            "tvd_same_contexts": float(player.raw[chosen].mean()),
            "tvd_bayes": float(expected.mean()),
            "tvd_bayes_lower": float(np.quantile(expected, tail)),
            "tvd_bayes_upper": float(np.quantile(expected, 1 - tail)),
            "tvd_bayes_context_width": _width(posterior, tail),
            "r_hat": r_hat,
        }
        if not r_hat <= limit:
            failed = failed or not allowed
            warnings.append(f"Bayesian TVD of {label(player.player)}: R-hat {r_hat:.3f} is above {limit:g}")
    return columns, warnings, failed


def _width(posterior: TvdPosterior, tail: float) -> float:
    lower, upper = posterior.interval(1 - 2 * tail)
    return float((upper - lower).mean())


def split_r_hat(draws: np.ndarray) -> float:
    """Split R-hat (Gelman and others 2013) of draws with shape (chain, draw), each chain cut in two."""
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within = parts.var(axis=1, ddof=1).mean()
    between = half * parts.mean(axis=1).var(ddof=1)
    if within == 0:
        return float("inf") if between > 0 else 1.0
    return float(np.sqrt((half - 1) / half + between / (half * within)))
