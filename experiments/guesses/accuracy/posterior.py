"""The posterior behind ``+exp=accuracy``: the fit, and what it says in rows of the table and in numbers for figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.accuracy import enough_answers
from shannon_game.experiments.guesses.accuracy.players import LanguageModel
from shannon_game.experiments.guesses.accuracy.settings import AccuracySettings
from shannon_game.experiments.harness.bayes import KEPT, fit_model, interval_columns, several_fits, with_all_groups
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.guesses import accuracy as inferred
from shannon_game.inference.posterior.arviz_adapter import InferenceData
from shannon_game.inference.posterior.convergence import Convergence
from shannon_game.models.guesses.accuracy import accuracy_model
from shannon_game.models.guesses.accuracy_data import AccuracyData, accuracy_data

CURVE_GUESSES = (0, *(int(n) for n in np.unique(np.round(np.geomspace(1, 5000, 40)))))
"""Numbers of earlier guesses at which the practice curve is computed."""

CHECKS = ("pooled accuracy", "spread over participants", "spread over documents")
"""Statistics of the predictive checks; spreads are standard deviations of shares, of those with enough guesses."""

_SPREADS = {
    "ability_spread": "spread of participants",
    "practice_spread": "spread of practice effects",
    "document_spread": "spread of documents",
}
_MIN_OF_DOCUMENT = 30  # guesses for a document's share to be counted in the check


@dataclass(frozen=True, eq=False)
class Posterior:
    """One fit and what it says."""

    tokens: str
    convergence: Convergence
    posteriors: dict[str, InferenceData]
    rows: list[dict[str, Any]]
    participants: dict[str, dict[str, float]]
    beats: dict[str, float]
    dataset: xr.Dataset


def fit_posterior(
    settings: AccuracySettings, study: xr.Dataset, responses: NDArray[np.bool_], models: Sequence[LanguageModel]
) -> Posterior:
    """Fit the accuracy model to some of the study's guesses."""
    data = accuracy_data(study, surprisal_model=settings.surprisal, responses=responses)
    who = study["participant"].to_numpy().astype(str)[data.response]
    can = np.isin(data.participant, who[enough_answers(who, settings.min_answers)])
    if not can.any():
        raise InputError(f"is {settings.min_answers}, but nobody gave as many answers", field="min_answers")
    model = accuracy_model(data, settings.priors)
    with several_fits(1, settings.sampler):
        fit = fit_model(settings, model, "accuracy")
    posterior, tail = fit.posterior, settings.tail
    own = inferred.participant_draws(posterior, data)
    best, p_best = inferred.best_participant(own, can)
    tokens = "word" if study["word_token"].sel(item=study["response_item"]).to_numpy()[responses].all() else "visible"
    kind = {"kind": "posterior", "tokens": tokens, "n_guesses": int(data.n.sum())}
    kind |= {"n_participants": data.participant.size, "n_documents": data.document.size}
    posteriors = {}
    if settings.save_posterior:
        posteriors["accuracy"] = with_all_groups(fit.idata, model, settings.seed, "accuracy", keep=KEPT)
    return Posterior(
        tokens=tokens,
        convergence=fit.convergence,
        posteriors=posteriors,
        rows=[{**kind, **row} for row in _rows(posterior, data, best, tail)],
        participants={
            name: {
                **interval_columns("posterior", own[:, at], tail),
                "p_best": float(p_best[at]) if can[at] else np.nan,
            }
            for at, name in enumerate(data.participant.tolist())
        },
        beats={one.model: inferred.beats_every(one.draws, best) for one in models if one.draws is not None},
        dataset=_dataset(settings, posterior, data, can),
    )


def _rows(posterior: xr.Dataset, data: AccuracyData, best: FloatArray, tail: float) -> list[dict[str, Any]]:
    draws = {
        "population mean at the first guess": inferred.population_draws(posterior, data, 0),
        "population mean after 100 guesses": inferred.population_draws(posterior, data, 100),
        "population mean after 1,000 guesses": inferred.population_draws(posterior, data, 1000),
        "change by 1,000 guesses": inferred.practice_change(posterior, data),
        "best participant": best,
        **{f"{label} (log-odds)": posterior[name].to_numpy() for name, label in _SPREADS.items()},
    }
    if "surprisal_slope" in posterior:
        label = f"change with each nat of {data.surprisal_model}'s surprisal (log-odds)"
        draws[label] = posterior["surprisal_slope"].to_numpy()
    return [{"name": name, **interval_columns("posterior", its, tail)} for name, its in draws.items()]


def _dataset(
    settings: AccuracySettings, posterior: xr.Dataset, data: AccuracyData, can: NDArray[np.bool_]
) -> xr.Dataset:
    quantile, rng = [settings.tail, 0.5, 1 - settings.tail], rng_for(settings.seed, "predicted hits")
    predicted = inferred.predicted_hits(posterior, data, rng, n_draws=settings.n_predictive)
    curve = np.stack([inferred.population_draws(posterior, data, n) for n in CURVE_GUESSES], axis=1)
    return xr.Dataset(
        {
            "population_curve": (("quantile", "guesses"), np.quantile(curve, quantile, axis=0)),
            "check_observed": ("check", _checks(data.hits[None], data, can)[0]),
            "check_predicted": (("draw_predicted", "check"), _checks(predicted, data, can)),
        },
        coords={"quantile": quantile, "guesses": np.array(CURVE_GUESSES), "check": np.array(CHECKS, dtype=object)},
        attrs={"n_repeats": data.n_repeats, "n_unscored": data.n_unscored},
    )


def _shares(hits: NDArray[np.int64], code: NDArray[np.intp], count: FloatArray, data: AccuracyData) -> FloatArray:
    """Share of right guesses by group, (draw, group); `hits` is (draw, row)."""
    member = np.zeros((data.n.size, count.size))
    member[np.arange(data.n.size), code] = 1.0
    with np.errstate(invalid="ignore"):
        shares: FloatArray = (hits @ member) / count
    return shares


def _checks(hits: NDArray[np.int64], data: AccuracyData, can: NDArray[np.bool_]) -> FloatArray:
    """Statistics of :data:`CHECKS`, (draw, check)."""
    of_person = np.bincount(data.person, weights=data.n).astype(float)
    of_place = np.bincount(data.place, weights=data.n).astype(float)
    people = _shares(hits, data.person, of_person, data)[:, can]
    texts = _shares(hits, data.place, of_place, data)[:, of_place >= _MIN_OF_DOCUMENT]
    # a spread needs two
    spreads = [group.std(axis=1) if group.shape[1] > 1 else np.full(len(hits), np.nan) for group in (people, texts)]
    return np.stack([hits.sum(axis=1) / data.n.sum(), *spreads], axis=1)
