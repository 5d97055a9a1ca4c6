"""Settings of ``+exp=bet_perplexity``, and the rows of its table that need no posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.bets import bet_losses, estimate_bet_loss, gambling_estimate
from shannon_game.estimators.bets.calibration import STAKE_EDGES
from shannon_game.estimators.bets.losses import FLOOR, UNIFORM, model_losses, stake_ranks
from shannon_game.estimators.bets.study import GENERATOR
from shannon_game.estimators.documents import CrossedMean, crossed_mean
from shannon_game.estimators.documents.guess_bounds import guess_bounds
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN
from shannon_game.estimators.messages import Set, word
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import ConvergenceRow, PosteriorSettings, SamplerSettings
from shannon_game.inference.settings import Count, OneOrMoreNames, numbers_of
from shannon_game.models.bets.recalibration_priors import RecalibrationPriors

LEAST_VOCAB = 2
_COUNTS = ("n_responses", "n_participants", "n_items")


class BetRow(column.Row, last=ConvergenceRow):
    """What somebody, or something, loses on the same answers."""

    kind: str = column.key(
        "bets: people as they bet; recalibrated: answers held out; floor: no back-off costs less; committee: mean of "
        "everybody's stakes; shannon: bounds of the entropy from the ranks of stakes; model: on the same answers"
    )
    player: str = column.key("people, a model, or what stands for them", players=True)
    back_off: str = column.key("what spreads the stake on anything else over words not named")
    n_responses: int = column.context("answers")
    n_participants: int = column.context("people")
    n_items: int = column.context("items")
    n_zero: int = column.context("answers that put nothing on the word that came")
    n_unasked: int = column.context("answers left out: the generator gives no probability")
    loss_nats: float = column.headline("loss per word", unit="nats", se="loss_se_nats", interval="loss_{}_nats")
    perplexity: float = column.estimate("exp(loss)", interval="perplexity_{}")
    reference_loss_nats: float = column.context("the generator's loss on the same answers", unit="nats")
    gap_nats: float = column.estimate(
        "loss minus the generator's", unit="nats", se="gap_se_nats", interval="gap_{}_nats"
    )


class BetsSettings(PosteriorSettings):
    back_offs: OneOrMoreNames | None = None
    """What spreads the stake on anything else over words not named, the main one first: generator, any model of the
    study, uniform. null takes all models, the generator first, and uniform where the vocabulary's size is known."""
    vocab_size: Count | None = None
    """Words of the vocabulary, for uniform and for Shannon's upper bound; null takes that of a simulated study."""
    zero: Literal["refuse", "count"] = "refuse"
    """Answers that put nothing on what came, whose loss is infinite: refuse them, or leave them out of means and count
    them. The recalibration takes them either way."""
    edges: tuple[Annotated[float, Field(ge=0, le=1)], ...] = STAKE_EDGES
    """Edges of the bins of stakes, rising from 0 to 1."""
    posterior: bool = True
    """Recalibrate the stakes of every participant (extra bayes); false: means and standard errors only, in seconds."""
    mix: Literal["cells", "back_off"] = "cells"
    """What recalibration mixes with stakes: cells, the same for every word named and anything else; or what the main
    back-off gives them, so that the loss is of people and the model together."""
    priors: Annotated[RecalibrationPriors, numbers_of(RecalibrationPriors)] = RecalibrationPriors()
    """Scales of the priors; only those to change."""
    sampler: SamplerSettings = SamplerSettings(draws=1000, tune=1000)
    """What draws from the posterior."""


def vocab_size_of(study: xr.Dataset, settings: BetsSettings) -> int | None:
    """Words of the vocabulary, where that is known."""
    known = settings.vocab_size if settings.vocab_size is not None else study.attrs.get("vocab_size")
    return None if known is None else int(known)


def chosen_back_offs(study: xr.Dataset, settings: BetsSettings) -> list[str]:
    """Back-offs of the settings, or all that the study allows, by the names of their models."""
    generator = study.attrs.get(GENERATOR)
    if settings.back_offs is not None:
        named = [str(generator) if name == GENERATOR and generator else name for name in settings.back_offs]
        return list(dict.fromkeys(named))
    models = [str(name) for name in study["model"].to_numpy().tolist()] if "model" in study.coords else []
    found = sorted(models, key=lambda name: name != generator)
    found += [UNIFORM] if vocab_size_of(study, settings) is not None else []
    if not found:
        problem = f"is {word(None)}, and no model or vocabulary of the study could spread the stakes on anything else"
        raise InputError(
            f"{problem}; {Set('experiment.back_offs', ['uniform'])} with {Set('experiment.vocab_size', ...)} is one",
            field="back_offs",
        )
    return found


def losses_by_back_off(study: xr.Dataset, settings: BetsSettings) -> dict[str, FloatArray]:
    """Losses of every answer by back-off, (response,)."""
    size = vocab_size_of(study, settings)
    return {name: bet_losses(study, name, vocab_size=size) for name in chosen_back_offs(study, settings)}


def rows_of_bets(study: xr.Dataset, settings: BetsSettings, losses: Mapping[str, FloatArray]) -> list[dict[str, Any]]:
    """People under every back-off, the floor, the committee, Shannon's bounds, language models."""
    participant, item = study["participant"].to_numpy().astype(str), study["response_item"].to_numpy()
    reference = model_losses(study) if GENERATOR in study.attrs else None
    rows: list[dict[str, Any]] = []
    for name, values in {**losses, FLOOR: bet_losses(study, FLOOR)}.items():
        against = None if name == FLOOR else reference
        how: dict[str, Any] = {"zero": settings.zero, "probability": settings.interval}
        found = estimate_bet_loss(values, participant, item, reference=against, **how)
        kind = "floor" if name == FLOOR else "bets"
        rows.append({"kind": kind, "player": HUMAN, "back_off": name, **vars(found)})
    main, values = next(iter(losses.items()))
    known = ~np.isnan(values)
    size = vocab_size_of(study, settings) or LEAST_VOCAB
    capital = gambling_estimate(values[known], participant[known], item[known], vocab_size=size)
    committee = {"kind": "committee", "player": "mean of their stakes", "back_off": main}
    rows.append({**committee, "n_responses": int(known.sum()), "loss_nats": capital.mean_stake_nats})
    return [*rows, *_shannon(study, settings, participant, item), *_models(study, settings, participant, item)]


def _shannon(
    study: xr.Dataset, settings: BetsSettings, participant: NDArray[np.str_], item: NDArray[Any]
) -> list[dict[str, Any]]:
    """Bounds for people who guess the words that they named, the largest stake first."""
    rank, n_named = stake_ranks(study)
    size = vocab_size_of(study, settings)
    found = guess_bounds(rank, item=item, participant=participant, n_tried=n_named, vocab_size=size)
    row = {"kind": "shannon", **{key: getattr(found, key) for key in _COUNTS}}
    ends = {"lower": (found.lower_nats, found.lower_se_nats), "upper": (found.upper_nats, found.upper_se_nats)}
    return [
        {**row, "player": f"Shannon's {end} bound", "loss_nats": loss, "loss_se_nats": se}
        for end, (loss, se) in ends.items()
    ]


def _models(
    study: xr.Dataset, settings: BetsSettings, participant: NDArray[np.str_], item: NDArray[Any]
) -> list[dict[str, Any]]:
    """Language models on the targets of the same answers."""
    rows = []
    for name in study["model"].to_numpy().astype(str).tolist() if "model" in study.coords else []:
        values = model_losses(study, name)
        asked = np.isfinite(values)
        if asked.any():
            found = crossed_mean(values[asked], participant[asked], item[asked], probability=settings.interval)
            rows.append({"kind": "model", "player": name, **loss_columns(found)})
    return rows


def loss_columns(found: CrossedMean) -> dict[str, Any]:
    """Columns of the table for a mean loss."""
    named = {"": found.mean, "_se": found.se, "_lower": found.lower, "_upper": found.upper}
    return {key: getattr(found, key) for key in _COUNTS} | {f"loss{end}_nats": its for end, its in named.items()}
