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
        paragraphs += [_people(table, settings), _practice(table, dataset), _checks(dataset, settings)]
        paragraphs += [_assumed(dataset)]
        if not bool(table["converged"].iloc[0]):
            paragraphs.insert(0, "**The posterior did NOT converge: do not use the numbers from it.**")
    else:
        paragraphs.append(_excess(dataset))
    return "\n\n".join(text for text in paragraphs if text)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def _pooled(table: pd.DataFrame, settings: AccuracySettings) -> str:
    pooled, lines = table[table["kind"] == "pooled"].set_index(["name", "tokens"], drop=False), []
    for row in rows_of(pooled[~pooled["name"].str.contains("mean of")]):
        mean = pooled.loc[(f"{row.name}, mean of participants", row.tokens), "accuracy"]
        who = "everybody" if row.name == "everybody" else f"{settings.min_answers} guesses or more"
        lines.append(
            f"- {_KINDS[row.tokens]}, {who}: **{_percent(row.accuracy)}** of {int(row.n_guesses):,} guesses by "
            f"{int(row.n_participants)} participants in {int(row.n_documents)} documents "
            f"[{_percent(row.lower)}, {_percent(row.upper)}]; were all guesses independent, "
            f"[{_percent(row.wilson_lower)}, {_percent(row.wilson_upper)}] (Wilson). Everybody counted the same: "
            f"{_percent(mean)}."
        )
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
        f"{int(enough.published_n_participants)} who gave 50 or more ({_percent(enough.accuracy)} here). The public "
        f"file is not exactly the paper's: the same filters leave {int(everybody.n_guesses):,} guesses by "
        f"{int(everybody.n_participants)} participants, {int(enough.n_participants)} with enough answers."
    )


def _models(table: pd.DataFrame) -> str:
    models = table[table["kind"] == "model"]
    if models.empty:
        return "The study has no language model's accuracy."
    lines = []
    for kind, label in _KINDS.items():
        own = rows_of(models[models["tokens"] == kind])
        if own:
            named = ", ".join(f"{model_label(row.name)} {_percent(row.accuracy)}" for row in own)
            lines.append(f"- Language models, {label}: {named}")
    if (models["source"] != "played").any():
        lines.append(
            "\nPublished accuracies are of 1,000 of these guesses at random, and are compared as if of independent "
            "guesses; where the number is unknown there is no interval."
        )
    return "\n".join(lines)


def _named(table: pd.DataFrame, name: str) -> Any:
    return rows_of(table[(table["kind"] == "posterior") & (table["name"] == name)])[0]


def _interval(row: Any) -> str:
    low, high = _percent(row.posterior_lower), _percent(row.posterior_upper)
    return f"{_percent(row.posterior_median)} [{low}, {high}]"


def _people(table: pd.DataFrame, settings: AccuracySettings) -> str:
    best = _named(table, "best participant")
    own = table[table["p_best"].notna()]
    top = rows_of(own.sort_values("p_best", ascending=False))[0]
    beats = rows_of(table[table["p_beats_every_participant"].notna()].sort_values("accuracy"))
    people, texts = (
        f"{row.posterior_median:.2f} [{row.posterior_lower:.2f}, {row.posterior_upper:.2f}]"
        for row in (_named(table, f"spread of {of} (log-odds)") for of in ("participants", "documents"))
    )
    text = (
        f"**What people differ by.** The best of the {len(own)} participants with {settings.min_answers} guesses or "
        f"more is right in {_interval(best)} of fresh texts ({_KINDS[best.tokens]}); it is {top.name} with probability "
        f"{top.p_best:.2f}. The standard deviation over participants is {people} in log-odds, over documents {texts}. "
        "Raw shares spread more, as each saw other texts, few guesses, and more or less of the hard first tokens."
    )
    lines = [
        f"- {model_label(row.name)} ({_percent(row.accuracy)}): {row.p_beats_every_participant:.3f}" for row in beats
    ]
    better = "\n\nProbability that a language model is better than every one of them:\n\n" + "\n".join(lines)
    return text + (better if lines else "")


def _practice(table: pd.DataFrame, dataset: xr.Dataset) -> str:
    start, later = (_named(table, f"population mean {when}") for when in ("at the first guess", "after 1,000 guesses"))
    change = _named(table, "change by 1,000 guesses")
    raw = [_percent(float(value)) for value in dataset["practice_accuracy"].to_numpy()[[0, -1]]]
    points = [f"{100 * getattr(change, f'posterior_{what}'):+.1f}" for what in ("median", "lower", "upper")]
    return (
        f"**Practice.** At equal contexts and texts the mean accuracy goes from {_interval(start)} at the first guess "
        f"to {_interval(later)} after 1,000, by {points[0]} points [{points[1]}, {points[2]}]. The raw share goes "
        f"from {raw[0]} in the first bin to {raw[1]} in the last: people begin with the first tokens of a text, where "
        "little can be known, and those who go on are not those who stop."
    )


def _excess(dataset: xr.Dataset) -> str:
    raw, excess = (dataset[f"practice_{what}"].to_numpy() for what in ("accuracy", "excess"))
    return (
        f"As people go on, the raw share goes from {_percent(float(raw[0]))} to {_percent(float(raw[-1]))}, and beside "
        f"the same people's own mean from {100 * excess[0]:+.1f} to {100 * excess[-1]:+.1f} points. Contexts grow "
        "longer at the same time; `experiment.posterior=true` tells the two apart."
    )


def _checks(dataset: xr.Dataset, settings: AccuracySettings) -> str:
    texts = []
    for name in dataset["check"].to_numpy().tolist():
        observed = float(dataset["check_observed"].sel(check=name))
        after = dataset["check_predicted"].sel(check=name).to_numpy()
        if not np.isfinite(after).all():
            continue
        low, high = np.quantile(after, [settings.tail, 1 - settings.tail])
        prior_low, prior_high = np.nanquantile(
            dataset["check_prior"].sel(check=name), [settings.tail, 1 - settings.tail]
        )
        verdict = "inside" if low <= observed <= high else "OUTSIDE"
        texts.append(
            f"{name} {_percent(observed)}, {verdict} what the posterior predicts, [{_percent(low)}, {_percent(high)}] "
            f"(the priors: [{_percent(prior_low)}, {_percent(prior_high)}])"
        )
    low, _, high = dataset["band_predicted"].to_numpy()
    observed_bands = dataset["band_accuracy"].to_numpy()
    known = np.isfinite(observed_bands)
    inside = int(((low <= observed_bands) & (observed_bands <= high))[known].sum())
    texts.append(f"{inside} of {int(known.sum())} context lengths have their share inside the predicted interval")
    return "**Checks.** " + "; ".join(texts) + "."


def _assumed(dataset: xr.Dataset) -> str:
    left = [(int(dataset.attrs["n_repeats"]), "at a place already guessed")]
    left += [(int(dataset.attrs["n_unscored"]), "without a surprisal")]
    said = "".join(f" {n} guesses {which} are left out of the fit." for n, which in left if n)
    return (
        "**What is assumed.** Log-odds add up over participant, practice (ln(1 + n/100)), context and document; "
        "effects of people and texts are normal. The difficulty of a single position cannot be told from chance. "
        f"Language models are compared by their accuracies on a sample of the same guesses, not text by text.{said}"
    )
