"""What the accuracy experiment found, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.guesses import participant_accuracy
from shannon_game.estimators.messages import Set
from shannon_game.experiments.guesses.accuracy.players import LanguageModel, model_label
from shannon_game.experiments.guesses.accuracy.settings import AccuracySettings
from shannon_game.experiments.harness.questions import bullets
from shannon_game.experiments.harness.settings import rows_of

_KINDS = {"visible": "visible tokens", "word": "word tokens"}


def summary(table: pd.DataFrame, dataset: xr.Dataset, settings: AccuracySettings) -> str:
    """Say how often people are right, beside language models and the paper, and what the posterior says of them."""
    pooled = table[(table["kind"] == "pooled") & ~table["name"].str.contains("mean of")]
    who = pooled["name"].map({"everybody": "everybody", "enough answers": f"{settings.min_answers} guesses or more"})
    line = (
        "**People guess {accuracy:.1%} [{lower:.1%}, {upper:.1%}] of the next tokens right** ({kinds}, {who}): "
        "{n_guesses:,.0f} guesses by {n_participants:.0f} participants in {n_documents:.0f} documents."
    )
    paragraphs = [
        bullets(pooled.assign(kinds=pooled["tokens"].map(_KINDS), who=who), line),
        f"{settings.interval:.0%} intervals are from a bootstrap over participants and documents.",
        _published(table),
        _models(table),
    ]
    if (table["kind"] == "posterior").any():
        paragraphs.append(_posterior(table, dataset, settings))
        if not bool(table["converged"].iloc[0]):
            paragraphs[-1] = f"**The posterior did NOT converge: do not use its numbers.** {paragraphs[-1]}"
    else:
        raw, excess = (100 * dataset[f"practice_{what}"].to_numpy()[[0, -1]] for what in ("accuracy", "excess"))
        paragraphs.append(
            f"As people go on, the share right goes from {raw[0]:.1f}% to {raw[1]:.1f}%, and relative to each person's "
            f"own mean from {excess[0]:+.1f} to {excess[1]:+.1f} points. To tell practice from longer contexts, set "
            f"{Set('experiment.posterior', True)}."
        )
    return "\n\n".join(text for text in paragraphs if text)


def _published(table: pd.DataFrame) -> str:
    lines = [
        f"{row.published_n_guesses:,.0f} guesses by " * bool(np.isfinite(row.published_n_guesses))
        + f"{row.published_n_participants:.0f} participants ({row.name}) with {row.published_accuracy:.0%} right"
        for row in rows_of(table[table["published_accuracy"].notna()])
    ]
    return f"The paper has {'; '.join(lines)}; the public file is not exactly the paper's." if lines else ""


def _models(table: pd.DataFrame) -> str:
    models = table[table["kind"] == "model"]
    named = [
        f"{_KINDS[str(kind)]}: " + ", ".join(f"{model_label(row.name)} {row.accuracy:.1%}" for row in rows_of(own))
        for kind, own in models.groupby("tokens")
    ]
    return f"Language models, {'; '.join(named)}." if named else "The study has no language model's accuracy."


def _posterior(table: pd.DataFrame, dataset: xr.Dataset, settings: AccuracySettings) -> str:
    named = table[table["kind"] == "posterior"].set_index("name")
    ends = [f"posterior_{end}" for end in ("median", "lower", "upper")]
    best, change = named.loc["best participant", ends], 100 * named.loc["change by 1,000 guesses", ends]
    own = table[table["p_best"].notna()].sort_values("p_best", ascending=False)
    observed, predicted = dataset["check_observed"], dataset["check_predicted"]
    low, high = predicted.quantile([settings.tail, 1 - settings.tail], "draw_predicted", skipna=False)
    outside = [str(name) for name in dataset["check"].to_numpy()[((observed < low) | (observed > high)).to_numpy()]]
    left = [(int(dataset.attrs["n_repeats"]), "at a place already guessed")]
    left += [(int(dataset.attrs["n_unscored"]), "without a surprisal")]
    return (
        f"The best of the {len(own)} participants with {settings.min_answers} guesses or more is right in "
        f"{best.iloc[0]:.1%} [{best.iloc[1]:.1%}, {best.iloc[2]:.1%}] of fresh texts; it is {own['name'].iloc[0]} with "
        f"probability {own['p_best'].iloc[0]:.2f}. At equal contexts and texts 1,000 guesses of practice change the "
        f"accuracy by {change.iloc[0]:+.1f} points [{change.iloc[1]:+.1f}, {change.iloc[2]:+.1f}]. Predictive checks "
        f"outside their intervals: {', '.join(outside) or 'none'}."
        + "".join(f" {n} guesses {which} are left out of the fit." for n, which in left if n)
    )


def people_table(
    correct: ArrayLike,
    participant: ArrayLike,
    of: Mapping[str, NDArray[np.bool_]],
    models: Mapping[str, Sequence[LanguageModel]],
    *,
    min_answers: int,
    many_answers: int = 500,
    n_unseen: int | None = None,
) -> pd.DataFrame:
    """Count people by how much they played (long above `many_answers` guesses) and by whom they beat."""
    right, who = np.asarray(correct, dtype=bool), np.asarray(participant).astype(str)
    rows: list[tuple[str, str, float]] = []
    for tokens, mask in of.items():
        found = participant_accuracy(right[mask], who[mask])
        long = found.accuracy[found.n_guesses > many_answers]
        rows.append((f"participants with more than so many ({many_answers}) guesses", tokens, len(long)))
        if len(long):
            rows += [("lowest accuracy of these", tokens, float(long.min()))]
            rows += [("highest accuracy of these", tokens, float(long.max()))]
        weakest = min((one.accuracy for one in models.get(tokens, ())), default=np.nan)
        if not np.isnan(weakest):
            enough = found.accuracy[found.n_guesses >= min_answers]
            rows += [("accuracy of the weakest language model", tokens, weakest)]
            rows += [
                ("participants with enough guesses below every language model", tokens, int((enough < weakest).sum()))
            ]
    if {"visible", "word"} <= set(of):
        rows.append(("share of the guesses that are on word tokens", "visible", float(of["word"].mean())))
    if n_unseen is not None:
        share = n_unseen / (n_unseen + len(right))
        rows.append(("share of the guesses left out because the token shows nothing", "visible", share))
    return pd.DataFrame(rows, columns=["quantity", "tokens", "value"])
