r"""What the posterior of the accuracy model says: of people, of the best of them, of practice, beside language models.

An accuracy here is of *fresh* texts like the study's: the probability of a right guess, averaged over the study's mix
of context lengths (and of surprisals), and over documents that the model has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.guesses.accuracy import bayesian_bootstrap_accuracy
from shannon_game.estimators.layout import response_positions
from shannon_game.inference.posterior.item_draws import flat
from shannon_game.models.guesses.accuracy_data import AccuracyData, practice_amount

_N_NODES = 15  # of Gauss and Hermite: the mean of a logistic curve over a normal of sd 2 is then right to 1e-6
_MAX_TEXTS = 200
_MAX_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class ModelGuesses:
    """A language model on the guesses of people; `draws` are of fresh documents, by a Bayesian bootstrap."""

    model: str
    n_guesses: int
    n_items: int
    accuracy: float
    human_accuracy: float
    draws: FloatArray


def participant_draws(posterior: xr.Dataset, data: AccuracyData, n_before: int | None = None) -> FloatArray:
    """Accuracy of every participant on fresh texts after `n_before` guesses, else at their own mean practice."""
    _check(posterior, data)
    intercept, spread = _flat(posterior, "intercept"), _flat(posterior, "document_spread")
    ability, practice = _flat(posterior, "ability"), _flat(posterior, "practice")
    texts, weight = _texts(posterior, data)
    if n_before is None:
        count = np.bincount(data.person, weights=data.n)
        amount = np.bincount(data.person, weights=data.n * data.practice) / count
    else:
        amount = np.full(data.participant.size, _centred(n_before, data))
    own = intercept[:, None] + ability + practice * amount
    return np.stack([_averaged(logit, spread, texts, weight) for logit in own.T], axis=1)


def population_draws(posterior: xr.Dataset, data: AccuracyData, n_before: int) -> FloatArray:
    """Mean accuracy of the participants' population on fresh texts, people and documents integrated out; (draw,)."""
    _check(posterior, data)
    amount = _centred(n_before, data)
    variance = (
        _flat(posterior, "document_spread") ** 2
        + _flat(posterior, "ability_spread") ** 2
        + (amount * _flat(posterior, "practice_spread")) ** 2
    )
    logit = _flat(posterior, "intercept") + _flat(posterior, "practice_mean") * amount
    return _averaged(logit, np.sqrt(variance), *_texts(posterior, data))


def practice_change(posterior: xr.Dataset, data: AccuracyData, n_guesses: int = 1000) -> FloatArray:
    """Change of the population's accuracy by the first `n_guesses` guesses, at equal contexts and texts; (draw,)."""
    return population_draws(posterior, data, n_guesses) - population_draws(posterior, data, 0)


def best_participant(draws: ArrayLike, among: ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
    """Accuracy of whoever is best, by draw, and each one's probability of being it, from draws (draw, participant)."""
    values = np.asarray(draws, dtype=float)
    can = np.ones(values.shape[1], dtype=bool) if among is None else np.asarray(among, dtype=bool)
    if not can.any():
        raise InputError("nobody is left among whom the best could be", field="among")
    masked = np.where(can, values, -np.inf)
    best = masked.argmax(axis=1)
    return masked.max(axis=1), np.bincount(best, minlength=can.size) / best.size


def beats_every(model: ArrayLike, best: ArrayLike) -> float:
    """Probability that a model beats the best participant, over all pairs of draws; equal ones count one half."""
    ordered, values = np.sort(np.asarray(best, dtype=float)), np.asarray(model, dtype=float)
    below = np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")
    return float(below.mean() / (2 * ordered.size))


def stored_accuracy_draws(accuracy: float, n: int, *, n_draws: int, rng: np.random.Generator) -> FloatArray:
    """Draws of an accuracy that is only known as a share of `n` guesses: Beta(hits + 1/2, misses + 1/2)."""
    if n < 1:
        raise InputError(f"is {n}; how sure a stored accuracy is depends on the number of guesses", field="stored_n")
    hits = accuracy * n
    return rng.beta(hits + 0.5, n - hits + 0.5, size=n_draws)


def model_guesses(
    study: xr.Dataset, model: str, *, n_draws: int, rng: np.random.Generator, responses: ArrayLike | None = None
) -> ModelGuesses:
    """Accuracy of a language model on guesses of people (`responses`), from ``model_hit`` of a guess study."""
    names = study["model"].to_numpy().tolist() if "model_hit" in study else []
    source = f"guess study {study.attrs.get('name', '(unnamed)')!r}"
    if model not in names:
        raise unknown_choice("language model", model, names or ["(none in this study)"], source=source)
    item = response_positions(study)
    hit = study["model_hit"].sel(model=model).to_numpy()[item]
    taken = np.isfinite(hit) & (True if responses is None else np.asarray(responses, dtype=bool))
    if not taken.any():
        raise InputError(f"has none of model {model!r} at the guesses wanted", source=source, field="model_hit")
    document = study["item_document"].to_numpy()[item[taken]].astype(str)
    return ModelGuesses(
        model=model,
        n_guesses=int(taken.sum()),
        n_items=int(np.unique(item[taken]).size),
        accuracy=float(hit[taken].mean()),
        human_accuracy=float(study["correct"].to_numpy()[taken].mean()),
        draws=bayesian_bootstrap_accuracy(hit[taken], document, n_draws=n_draws, rng=rng),
    )


def fitted_probability(posterior: xr.Dataset, data: AccuracyData, *, n_draws: int = 400) -> FloatArray:
    """Probability of a right guess in every row, from the participants and documents of the study."""
    _check(posterior, data)
    size = posterior.sizes["chain"] * posterior.sizes["draw"]
    at = np.unique(np.linspace(0, size - 1, n_draws).astype(int))
    logit = _flat(posterior, "intercept", None)[at, None] + _flat(posterior, "ability", None)[at][:, data.person]
    logit = logit + _flat(posterior, "practice", None)[at][:, data.person] * data.practice
    logit += _flat(posterior, "document_effect", None)[at][:, data.place]
    if "context_effect" in posterior:
        logit += _flat(posterior, "context_effect", None)[at][:, data.context]
    if data.surprisal is not None:
        logit += _flat(posterior, "surprisal_slope", None)[at, None] * data.surprisal
    probability: FloatArray = expit(logit)
    return probability


def predicted_hits(
    posterior: xr.Dataset, data: AccuracyData, rng: np.random.Generator, *, n_draws: int = 400
) -> NDArray[np.int64]:
    """Right guesses in every row as the posterior predicts them, (n_draws, row); see :func:`fitted_probability`."""
    return rng.binomial(data.n, fitted_probability(posterior, data, n_draws=n_draws))


def _texts(posterior: xr.Dataset, data: AccuracyData) -> tuple[FloatArray, FloatArray]:
    """Log-odds of the study's kinds of guesses around the intercept, (draw, text), and their weights, (text,)."""
    intercept = _flat(posterior, "intercept")
    effect = _flat(posterior, "context_effect") if "context_effect" in posterior else np.zeros((intercept.size, 1))
    if data.surprisal is None:
        return effect, data.band_share
    # rows in the order of band and surprisal, and evenly spaced guesses: the same mix in few texts
    order = np.lexsort((data.surprisal, data.context))
    cumulated = np.cumsum(data.n[order])
    n_texts = int(min(_MAX_TEXTS, cumulated[-1]))
    wanted = (np.arange(n_texts) + 0.5) * cumulated[-1] / n_texts
    row = order[np.searchsorted(cumulated, wanted)]
    slope = _flat(posterior, "surprisal_slope")
    return effect[:, data.context[row]] + slope[:, None] * data.surprisal[row], np.full(n_texts, 1 / n_texts)


def _averaged(logit: FloatArray, spread: FloatArray, texts: FloatArray, weight: FloatArray) -> FloatArray:
    """Mean probability over texts and a normal of sd `spread`, all by draw."""
    node, node_weight = np.polynomial.hermite_e.hermegauss(_N_NODES)
    node_weight = node_weight / node_weight.sum()
    centre = logit[:, None] + texts
    total = np.zeros(logit.size)
    for z, w in zip(node, node_weight, strict=True):
        total += w * (expit(centre + spread[:, None] * z) @ weight)
    return total


def _centred(n_before: int, data: AccuracyData) -> float:
    if n_before < 0:
        raise InputError(f"is {n_before}, should be at least 0", field="n_before")
    return float(practice_amount(n_before)) - data.practice_centre


def _check(posterior: xr.Dataset, data: AccuracyData) -> None:
    same = np.array_equal(posterior["participant"].to_numpy().astype(str), data.participant)
    if not same or not np.array_equal(posterior["document"].to_numpy().astype(str), data.document):
        raise InputError("is not of these participants and documents", source="posterior of the accuracy model")


def _flat(posterior: xr.Dataset, name: str, limit: int | None = _MAX_DRAWS) -> FloatArray:
    """Values with the chains one after the other, shape (draw, ...), at most `limit` of them."""
    found = flat(posterior, name)
    if limit is not None and len(found) > limit:
        found = found[np.linspace(0, len(found) - 1, limit).astype(int)]
    return found
