"""Bayesian TVD of every player, on a random part of its contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from omegaconf import DictConfig
from tqdm import tqdm

from estimators.cloze.distributions import WordCounts
from estimators.cloze.split_halves import random_split_halves
from experiments.cloze.settings import ORACLE, clean_words, label, whole
from experiments.cloze.tvd.results import PlayerTvd, part_counts
from experiments.harness.bayes import check_bayesian, convergence_columns, gate, sample_model
from experiments.harness.settings import rng_for, tail_probability

if TYPE_CHECKING:
    import pymc as pm

    from inference.cloze.tvd import TvdPosterior
    from inference.posterior.arviz_adapter import InferenceData
    from inference.posterior.convergence import Convergence
    from inference.posterior.sampling import CompiledModel

__all__ = ["BayesianTvd", "WordPairFits", "bayesian_tvd"]


@dataclass(frozen=True, eq=False)
class BayesianTvd:
    """Posterior mean and interval of the expected TVD of each player.

    Attributes
    ----------
    columns : dict
        Player -> columns of its row.
    posteriors : dict
        Player -> what was fitted.
    warnings : tuple of str
    gate_failed : bool
        A posterior has not converged, and ``experiment.allow_unconverged`` does not excuse it.
    """

    columns: dict[str, dict[str, Any]]
    posteriors: dict[str, InferenceData]
    warnings: tuple[str, ...]
    gate_failed: bool


class WordPairFits:
    """Fits of the word pair model with the config's sampler; as many contexts as before need no new compilation.

    Parameters
    ----------
    cfg : DictConfig
        With ``sampler`` and ``experiment.gate``.
    more_draws : int
        A posterior that misses the gate is sampled again with so many times the draws; 1 for never.
    """

    def __init__(self, cfg: DictConfig, *, more_draws: int = 1) -> None:
        self._cfg = cfg
        self._times_draws = sorted({1, more_draws})
        self._models: dict[tuple[int, bool], tuple[pm.Model, pm.Model | CompiledModel]] = {}

    def fit(
        self, first: WordCounts, second: WordCounts, purpose: str, *, pooled: bool = True
    ) -> tuple[TvdPosterior, Convergence]:
        """Sample the posterior of each context's TVD; `purpose` names its stream of random numbers."""
        from inference.cloze.tvd import tvd_posterior  # noqa: PLC0415
        from inference.posterior.sampling import compile_model  # noqa: PLC0415 - seconds that only a fit should cost
        from models.cloze.tvd import set_word_pairs, word_pair_data, word_pair_model  # noqa: PLC0415

        data = word_pair_data(first, second)
        key = (data.n_contexts, pooled)
        if key not in self._models:
            model = word_pair_model(data, pooled=pooled)
            self._models[key] = model, compile_model(model) if self._cfg.sampler.name == "nutpie" else model
        model, program = self._models[key]
        set_word_pairs(model, data)
        for times in self._times_draws:
            idata = sample_model(self._cfg, program, purpose, times_draws=times)
            posterior = tvd_posterior(idata, data, rng=rng_for(self._cfg, f"{purpose} tvd"))
            found = gate(self._cfg, posterior.idata)
            if found.passed:
                break
        return posterior, found


def bayesian_tvd(cfg: DictConfig, study: xr.Dataset, players: list[PlayerTvd], n_contexts: int) -> BayesianTvd:
    """Fit every player on `n_contexts` of its contexts, drawn at random, or on all where it has fewer."""
    check_bayesian(cfg, {})
    tail = tail_probability(cfg)
    words = clean_words(cfg, study, [player.player for player in players if player.player != ORACLE])
    answers = words.answers()
    fits = WordPairFits(cfg, more_draws=whole(cfg, "bayes.more_draws"))
    columns, posteriors, warnings = {}, {}, []
    for player in tqdm(players, desc="Bayesian TVD", unit="player", leave=False):
        rng = rng_for(cfg, f"bayes {player.player}")
        chosen = np.sort(rng.choice(len(player.items), size=min(n_contexts, len(player.items)), replace=False))
        items = player.items[chosen]
        human = answers.take(items)
        if player.player == ORACLE:
            split = random_split_halves(human, n_splits=1, rng=rng)
            pair = part_counts(split, 0, "first"), part_counts(split, 0, "second")
        else:
            model = words.models[player.player]
            pair = human, model.counts.take(np.searchsorted(model.item, items))
        posterior, found = fits.fit(*pair, f"bayes fit {player.player}")
        expected = posterior.expected()
        lower, upper = posterior.interval(1 - 2 * tail)
        columns[player.player] = {
            "n_contexts_bayes": len(items),
            "tvd_same_contexts": float(player.raw[chosen].mean()),
            "tvd_bayes": float(expected.mean()),
            "tvd_bayes_lower": float(np.quantile(expected, tail)),
            "tvd_bayes_upper": float(np.quantile(expected, 1 - tail)),
            "tvd_bayes_context_width": float((upper - lower).mean()),
            **convergence_columns(found),
        }
        posteriors[player.player] = posterior.idata
        if not found.passed:
            reasons = "; ".join(found.reasons)
            warnings.append(f"the Bayesian TVD of {label(player.player)} did not converge, do not use it: {reasons}")
    failed = bool(warnings) and not cfg.experiment.allow_unconverged
    return BayesianTvd(columns, posteriors, tuple(warnings), failed)
