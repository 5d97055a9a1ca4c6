"""Bayesian TVD of every player, on a random part of its contexts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from shannon_game.estimators.cloze import WordCounts, random_split_halves
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.cloze.figures import label
from shannon_game.experiments.cloze.settings import ORACLE, words_of
from shannon_game.experiments.cloze.tvd.results import PlayerTvd, part_counts
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.harness import bayes
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.cloze.tvd import TvdPosterior, tvd_posterior
from shannon_game.inference.posterior.arviz_adapter import InferenceData, add_groups, group, with_labels
from shannon_game.inference.posterior.convergence import Convergence, check_convergence
from shannon_game.inference.posterior.sampling import CompiledModel, written_model
from shannon_game.inference.progress import advance
from shannon_game.models.cloze.tvd import set_word_pairs, word_pair_data, word_pair_model
from shannon_game.models.cloze.word_pair_density import word_pair_density

if TYPE_CHECKING:
    import pymc as pm


@dataclass(frozen=True, eq=False)
class BayesianTvd:
    """Posterior mean and interval of the expected TVD of each player."""

    columns: dict[str, dict[str, Any]]
    posteriors: dict[str, InferenceData]
    warnings: tuple[str, ...]
    gate_failed: bool


@dataclass(frozen=True, eq=False)
class WordPairFit:
    """One fit."""

    posterior: TvdPosterior
    convergence: Convergence
    whole: InferenceData | None


class WordPairFits:
    """Fits of the word pair model; as many contexts as before need no new compilation."""

    def __init__(self, settings: bayes.BayesianSettings, *, more_draws: int = 1, with_groups: bool = False) -> None:
        self._settings = settings
        self._with_groups = with_groups
        self._times_draws = (1,) if more_draws == 1 else (1, more_draws, 2 * more_draws)
        self._models: dict[tuple[int, bool], tuple[pm.Model, CompiledModel]] = {}

    def fit(self, first: WordCounts, second: WordCounts, purpose: str, *, pooled: bool = True) -> WordPairFit:
        """Sample the posterior of each context's TVD; `purpose` names its stream of random numbers."""
        data = word_pair_data(first, second)
        key = (data.n_contexts, pooled)
        if key not in self._models:
            model = word_pair_model(data, pooled=pooled)
            self._models[key] = model, written_model(model, word_pair_density(data, pooled=pooled))
        model, program = self._models[key]
        set_word_pairs(model, data)
        accept = self._settings.sampler.target_accept
        for times in self._times_draws:
            idata = bayes.draw_posterior(self._settings, program, purpose, times_draws=times, target_accept=accept)
            posterior = tvd_posterior(idata, data, rng=rng_for(self._settings.seed, f"{purpose} tvd"))
            # what is judged are the distances, which follow from the parameters
            found = check_convergence(posterior.judged(), self._settings.gate)
            if found.passed:
                break
            if found.n_divergent:
                accept = (1 + accept) / 2
        whole = None
        if self._with_groups:
            whole = bayes.with_all_groups(idata, program, self._settings.seed, purpose, keep=bayes.KEPT)
            kept = group(whole, "posterior")["draw"]
            whole = add_groups(whole, {"posterior": group(posterior.idata, "posterior").sel(draw=kept)})
        advance(bayes.FITS)
        return WordPairFit(posterior, found, whole)


def bayesian_tvd(study: xr.Dataset, settings: TvdSettings, players: list[PlayerTvd], n_contexts: int) -> BayesianTvd:
    """Fit every player on `n_contexts` of its contexts, drawn at random, or on all where it has fewer."""
    tail = settings.tail
    words = words_of(settings, study, [player.player for player in players if player.player != ORACLE])
    answers = words.answers()
    fits = WordPairFits(settings, more_draws=settings.bayes.more_draws, with_groups=settings.save_posterior)
    columns, posteriors, verdicts = {}, {}, {}
    for player in players:
        rng = rng_for(settings.seed, f"bayes {player.player}")
        chosen = np.sort(rng.choice(len(player.items), size=min(n_contexts, len(player.items)), replace=False))
        items = player.items[chosen]
        human = answers.take(items)
        if player.player == ORACLE:
            split = random_split_halves(human, n_splits=1, rng=rng)
            pair = part_counts(split, 0, "first"), part_counts(split, 0, "second")
        else:
            model = words.models[player.player]
            pair = human, model.counts.take(np.searchsorted(model.item, items))
        fit = fits.fit(*pair, f"bayes fit {player.player}")
        posterior, found = fit.posterior, fit.convergence
        expected = posterior.expected()
        row: dict[str, Any] = {
            "n_contexts_bayes": len(items),
            "tvd_same_contexts": float(player.by_item["tvd"][chosen].mean()),
        }
        row |= {"tvd_bayes": float(expected.mean()), "tvd_bayes_lower": float(np.quantile(expected, tail))}
        lower, upper = posterior.interval(1 - 2 * tail)
        row |= {"tvd_bayes_upper": float(np.quantile(expected, 1 - tail))}
        row |= {"tvd_bayes_context_width": float((upper - lower).mean())}
        columns[player.player] = row | bayes.convergence_columns(found)
        if fit.whole is not None:
            posteriors[player.player] = with_labels(fit.whole, "context", item_labels(study)[items])
        verdicts[f"Bayesian TVD of {label(player.player)}"] = found
    return BayesianTvd(columns, posteriors, bayes.unconverged(verdicts), bayes.gate_failed(settings, verdicts))
