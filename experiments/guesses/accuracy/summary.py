"""What the accuracy experiment found, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.experiments.guesses.accuracy.players import model_label
from shannon_game.experiments.guesses.accuracy.settings import AccuracySettings
from shannon_game.experiments.harness.settings import rows_of

_KINDS = {"visible": "visible tokens", "word": "word tokens"}


def summary(table: pd.DataFrame, dataset: xr.Dataset, settings: AccuracySettings) -> str:
    """Say how often people are right, beside language models and the paper, and what the posterior says of them."""
    paragraphs = [_pooled(table, settings), _published(table), _models(table)]
    if (table["kind"] == "posterior").any():
        paragraphs.append(_posterior(table, dataset, settings))
        if not bool(table["converged"].iloc[0]):
            paragraphs.insert(0, "**The posterior did NOT converge: do not use the numbers from it.**")
    else:
        raw, excess = (100 * dataset[f"practice_{what}"].to_numpy()[[0, -1]] for what in ("accuracy", "excess"))
        paragraphs.append(
            f"As people go on, the raw share goes from {raw[0]:.1f}% to {raw[1]:.1f}%, and beside the same people's "
            f"own mean from {excess[0]:+.1f} to {excess[1]:+.1f} points; experiment.posterior=true tells practice from "
            "longer contexts."
        )
    return "\n\n".join(text for text in paragraphs if text)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _pooled(table: pd.DataFrame, settings: AccuracySettings) -> str:
    pooled = table[(table["kind"] == "pooled") & ~table["name"].str.contains("mean of")]
    lines = [
        f"- {_KINDS[row.tokens]}, "
        + ("everybody" if row.name == "everybody" else f"{settings.min_answers} guesses or more")
        + f": **{_percent(row.accuracy)}** [{_percent(row.lower)}, {_percent(row.upper)}] of {int(row.n_guesses):,} "
        f"guesses by {int(row.n_participants)} participants in {int(row.n_documents)} documents"
        for row in rows_of(pooled)
    ]
    interval = f"{settings.interval:.0%} intervals are from a bootstrap over participants and documents."
    return "\n".join(lines) + f"\n\n{interval}"


def _published(table: pd.DataFrame) -> str:
    rows = rows_of(table[table["published_accuracy"].notna()])
    if not rows:
        return ""
    everybody, enough = rows[0], rows[-1]
    return (
        f"The paper has {int(everybody.published_n_guesses):,} guesses by {int(everybody.published_n_participants)} "
        f"participants with {everybody.published_accuracy:.0%} right, and {enough.published_accuracy:.0%} for the "
        f"{int(enough.published_n_participants)} who gave 50 or more; the public file is not exactly the paper's."
    )


def _models(table: pd.DataFrame) -> str:
    models = table[table["kind"] == "model"]
    if models.empty:
        return "The study has no language model's accuracy."
    named = [
        f"{label}: " + ", ".join(f"{model_label(row.name)} {_percent(row.accuracy)}" for row in rows_of(own))
        for kind, label in _KINDS.items()
        if len(own := models[models["tokens"] == kind])
    ]
    return f"Language models, {'; '.join(named)}."


def _named(table: pd.DataFrame, name: str) -> Any:
    return rows_of(table[(table["kind"] == "posterior") & (table["name"] == name)])[0]


def _posterior(table: pd.DataFrame, dataset: xr.Dataset, settings: AccuracySettings) -> str:
    best, change = _named(table, "best participant"), _named(table, "change by 1,000 guesses")
    own = table[table["p_best"].notna()].sort_values("p_best", ascending=False)
    low, high = best.posterior_lower, best.posterior_upper
    points = [f"{100 * getattr(change, f'posterior_{what}'):+.1f}" for what in ("median", "lower", "upper")]
    text = (
        f"The best of the {len(own)} participants with {settings.min_answers} guesses or more is right in "
        f"{_percent(best.posterior_median)} [{_percent(low)}, {_percent(high)}] of fresh texts "
        f"({_KINDS[best.tokens]}); it is {own['name'].iloc[0]} with probability {own['p_best'].iloc[0]:.2f}. At equal "
        f"contexts and texts 1,000 guesses of practice change the accuracy by {points[0]} points [{points[1]}, "
        f"{points[2]}]."
    )
    outside = [
        name
        for name in dataset["check"].to_numpy().tolist()
        if not _inside(
            float(dataset["check_observed"].sel(check=name)),
            dataset["check_predicted"].sel(check=name).to_numpy(),
            settings.tail,
        )
    ]
    left = [(int(dataset.attrs["n_repeats"]), "at a place already guessed")]
    left += [(int(dataset.attrs["n_unscored"]), "without a surprisal")]
    said = "".join(f" {n} guesses {which} are left out of the fit." for n, which in left if n)
    return f"{text} Predictive checks OUTSIDE their intervals: {', '.join(outside) or 'none'}.{said}"


def _inside(observed: float, drawn: np.ndarray[Any, Any], tail: float) -> bool:
    """What cannot be drawn cannot be missed."""
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return bool(not np.isfinite(drawn).all() or low <= observed <= high)
