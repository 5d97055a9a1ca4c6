"""Language models beside people in the top-1 game: published accuracies, and models that played the same guesses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.guesses import wilson_interval
from shannon_game.estimators.messages import word
from shannon_game.experiments.guesses.accuracy.settings import AccuracySettings
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.guesses.accuracy import model_guesses, stored_accuracy_draws

_LABELS = {
    "davinci": "GPT-3 175B",
    "curie": "GPT-3 curie",
    "babbage": "GPT-3 babbage",
    "ada": "GPT-3 ada",
    "GPT-Neo-20b": "GPT-NeoX 20B",
}


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """Accuracy of one language model on one kind of tokens."""

    model: str
    tokens: str
    source: str
    n_guesses: int
    accuracy: float
    lower: float
    upper: float
    draws: NDArray[np.float64] | None


def model_label(model: str) -> str:
    """Name of a language model as a reader expects it."""
    size = re.sub(r"-(\d+)-(\d+)b$", r" \1.\2B", model)
    spelled = re.sub(r"-(\d+)([bm])$", lambda found: f" {found[1]}{found[2].upper()}", size)
    return _LABELS.get(model, spelled.replace("gpt-neo", "GPT-Neo").replace("gpt-j", "GPT-J"))


def chosen_models(players: Sequence[str] | None, study: xr.Dataset) -> list[str]:
    """Language models to show; None takes all of the study."""
    stored = study["stored_model"].to_numpy().tolist() if "stored_model" in study else []
    played = study["model"].to_numpy().tolist() if "model_hit" in study else []
    valid = list(dict.fromkeys([*played, *stored]))
    if players is None:
        return valid
    for name in players:
        if name not in valid:
            raise unknown_choice("language model", name, valid, source=f"players, study {study.attrs['name']!r}")
    if len(set(players)) < len(players):
        raise InputError(f"is {list(players)}; name each model once, or leave it {word(None)} for all", field="players")
    return list(players)


def language_models(
    study: xr.Dataset, settings: AccuracySettings, tokens: str, responses: NDArray[np.bool_]
) -> list[LanguageModel]:
    """Accuracies of the chosen language models on one kind of tokens, the best first."""
    names, rng = chosen_models(settings.players, study), rng_for(settings.seed, f"language models {tokens}")
    found = _played(study, names, settings, tokens, responses, rng) if "model_hit" in study else []
    found += _stored(study, names, settings, tokens, rng) if "stored" in study.dims else []
    return sorted(found, key=lambda one: -one.accuracy)


def _played(  # noqa: PLR0917
    study: xr.Dataset,
    models: list[str],
    settings: AccuracySettings,
    tokens: str,
    responses: NDArray[np.bool_],
    rng: np.random.Generator,
) -> list[LanguageModel]:
    asked = np.isfinite(study["model_hit"].sel(item=study["response_item"]).to_numpy()) & responses
    found = []
    for name, some in zip(study["model"].to_numpy().tolist(), asked.any(axis=1), strict=True):
        if name in models and some:
            its = model_guesses(study, name, n_draws=settings.n_replicates, rng=rng, responses=responses)
            lower, upper = np.quantile(its.draws, [settings.tail, (1 + settings.interval) / 2]).tolist()
            found.append(LanguageModel(name, tokens, "played", its.n_guesses, its.accuracy, lower, upper, its.draws))
    return found


def _stored(
    study: xr.Dataset, models: list[str], settings: AccuracySettings, tokens: str, rng: np.random.Generator
) -> list[LanguageModel]:
    columns = (study[f"stored_{name}"].to_numpy().tolist() for name in ("model", "tokens", "n", "accuracy", "source"))
    best: dict[str, tuple[int, float, str]] = {}
    for model, its_tokens, n, accuracy, source in zip(*columns, strict=True):
        if model in models and its_tokens == tokens and (model not in best or n > 0 or best[model][0] == 0):
            best[model] = (int(n), float(accuracy), str(source))
    found = []
    for model, (n, accuracy, source) in best.items():
        lower, upper, draws = np.nan, np.nan, None
        if n:
            lower, upper = map(float, wilson_interval(accuracy * n, n, probability=settings.interval))
            draws = stored_accuracy_draws(accuracy, n, n_draws=settings.n_replicates, rng=rng)
        found.append(LanguageModel(model, tokens, source, n, accuracy, lower, upper, draws))
    return found
