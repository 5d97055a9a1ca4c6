"""The posterior behind ``+exp=bet_perplexity``: what recalibrated stakes cost of answers held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.bets import bet_losses
from shannon_game.estimators.bets.losses import model_losses
from shannon_game.estimators.bets.study import GENERATOR
from shannon_game.estimators.documents import crossed_mean
from shannon_game.estimators.layout import HUMAN
from shannon_game.experiments.bets.bet_perplexity.rows import BetsSettings, loss_columns, vocab_size_of
from shannon_game.experiments.harness.bayes import KEPT, fit_model, interval_columns, several_fits, with_all_groups
from shannon_game.inference.bets.recalibration import held_out_losses, recalibrated_losses
from shannon_game.inference.posterior.arviz_adapter import InferenceData
from shannon_game.inference.posterior.convergence import Convergence
from shannon_game.models.bets.recalibration import recalibration_model
from shannon_game.models.bets.recalibration_data import RecalibrationData, recalibration_data


@dataclass(frozen=True, eq=False)
class Recalibration:
    """One fit and what it says."""

    convergence: Convergence
    posteriors: dict[str, InferenceData]
    row: dict[str, Any]
    participants: pd.DataFrame
    numbers: dict[str, float]
    n_bad_k: int


def fit_recalibration(settings: BetsSettings, study: xr.Dataset, back_off: str) -> Recalibration:
    """Fit the recalibration model to the bets of a study."""
    size = vocab_size_of(study, settings)
    data = recalibration_data(study, back_off, mix=settings.mix, vocab_size=size)
    model = recalibration_model(data, settings.priors)
    with several_fits(1, settings.sampler):
        fit = fit_model(settings, model, "recalibration")
    whole = with_all_groups(fit.idata, model, settings.seed, "recalibration", keep=KEPT)
    held_out = held_out_losses(whole, data)
    raw = bet_losses(study, back_off, vocab_size=size)[data.response]
    mean = crossed_mean(held_out.loss_nats, data.participant[data.person], data.item, probability=settings.interval)
    row: dict[str, Any] = {"kind": "recalibrated", "player": HUMAN, "back_off": back_off, **loss_columns(mean)}
    row |= {"n_zero": 0, "n_unasked": data.n_unasked}
    if GENERATOR in study.attrs:
        against = model_losses(study)[data.response]
        row |= _difference("gap", held_out.loss_nats, against, data, settings)
        row["reference_loss_nats"] = float(against.mean())
    gain = _difference("gain", raw, held_out.loss_nats, data, settings)
    seen = recalibrated_losses(fit.posterior, data).mean(axis=1)
    numbers = interval_columns("seen_loss_nats", seen, settings.tail)
    for name, values in (
        ("exponent", np.exp(fit.posterior["exponent_mean"].to_numpy())),
        ("exponent_spread", fit.posterior["exponent_spread"].to_numpy()),
        ("mixing_share", 1 / (1 + np.exp(-fit.posterior["mixing_mean"].to_numpy()))),
    ):
        numbers |= interval_columns(name, values, settings.tail)
    return Recalibration(
        convergence=fit.convergence,
        posteriors={"recalibration": whole} if settings.save_posterior else {},
        row=row,
        participants=_participants(fit.posterior, settings.tail),
        numbers=numbers | gain,
        n_bad_k=held_out.n_bad_k,
    )


def _difference(
    name: str, one: FloatArray, other: FloatArray, data: RecalibrationData, settings: BetsSettings
) -> dict[str, float]:
    ends = {"": "mean", "_se": "se", "_lower": "lower", "_upper": "upper"}
    both = np.isfinite(one - other)
    if not both.any():
        return {f"{name}{end}_nats": np.nan for end in ends}
    who, where = data.participant[data.person][both], data.item[both]
    found = crossed_mean((one - other)[both], who, where, probability=settings.interval)
    return {f"{name}{end}_nats": getattr(found, value) for end, value in ends.items()}


def _participants(posterior: xr.Dataset, tail: float) -> pd.DataFrame:
    columns: dict[str, Any] = {"participant": posterior["participant"].to_numpy().astype(str)}
    exponents = cast("xr.DataArray", np.exp(posterior["log_exponent"]))
    for name, draws in (("exponent", exponents), ("mixing_share", posterior["mixing_share"])):
        ends = draws.quantile([0.5, tail, 1 - tail], ("chain", "draw")).to_numpy()
        columns |= {f"{name}_{end}": values for end, values in zip(("median", "lower", "upper"), ends, strict=True)}
    return pd.DataFrame(columns)
