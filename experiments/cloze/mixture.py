"""``+exp=mixture``: whether a language model predicts the words of a text better with people's answers mixed in."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze import Distributions, StudyWords, cloze_items, held_out_mixture, relative_frequencies
from shannon_game.estimators.cloze.study import context_labels
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.cloze.figures import colours, label
from shannon_game.experiments.cloze.settings import ClozeSettings, chosen_models, cluster_se, groups_of, words_of
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import Series
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.questions import bullets
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.settings import Count, Probability

_FEW_TEXTS = 10


class MixtureRow(column.Row):
    """One model, by one kind of its probabilities."""

    model: str = column.key("model", players=True)
    probability: str = column.key("that of its samples, or the one it was scored to have", usual="samples")
    n_contexts: int = column.context("contexts")
    n_texts: int = column.context("texts")
    words_of_model: float = column.context("the model's samples per context")
    loss_people_nats: float = column.estimate("loss of people alone", unit="nats")
    loss_model_nats: float = column.estimate("loss of the model alone", unit="nats")
    loss_both_nats: float = column.estimate("loss of both mixed", unit="nats")
    gain_nats: float = column.headline(
        "model's loss minus that of both", unit="nats", se="gain_se_nats", interval="gain_{}_nats"
    )
    weight_people: float = column.beside("gain_nats", "mean weight of people")
    weight_model: float = column.detail("mean weight of the model")
    weight_rest: float = column.detail("mean weight of the uniform distribution")
    gain_over_people_nats: float = column.estimate("people's minus it", unit="nats", se="gain_over_people_se_nats")


class MixtureSettings(ClozeSettings):
    vocab_size: Count | None = None
    """Words that the uniform distribution is over; null takes the different words of the study."""
    interval: Probability = 0.9
    """Probability inside the intervals (normal, standard errors over texts)."""


@experiment(MixtureSettings, row=MixtureRow)
def mixture(study: xr.Dataset, settings: MixtureSettings) -> ExperimentResult:
    """Compare the losses of a model, of people, and of both mixed, in the words of the texts.

    Every player is mixed with a uniform distribution, which stands for words that it never gave. All weights are
    fitted to the other texts.

    A row per model and kind of its probabilities, and ``items.csv`` with the losses of every context. A word that
    nobody gave has an infinite loss where the other texts leave the uniform distribution a weight of 0; a gain between
    two infinite losses is NaN.

    Examples
    --------
    >>> from shannon_game import cloze_simulated, mixture
    >>> found = mixture(cloze_simulated(n_items=40, items_per_text=5, vocab_size=40))
    >>> found.table[["model", "n_contexts"]]
         model  n_contexts
    0  mixture          40
    1  factors          40
    """
    words = words_of(settings, study, chosen_models(settings, study))
    n_words = len(words.strings) if settings.vocab_size is None else settings.vocab_size
    if n_words < len(words.strings):
        problem = f"is {n_words}, should be at least {len(words.strings)}, the different words of the study"
        raise InputError(problem, field=Set("experiment.vocab_size"))
    described = cloze_items(study, models=list(words.models), distances=False, words=words)
    rows, items = [], []
    for name in words.models:
        for kind, own in _probabilities(described, words, name).items():
            losses, weights = _losses(study, words, own, 1 / n_words, f"model {name!r}")
            n_drawn = float(described[f"n_samples_{name}"].to_numpy()[own.index].mean())
            rows.append({"model": name, "probability": kind, **_row(losses, weights, n_drawn, settings)})
            items.append(losses.assign(model=name, probability=kind))
    table = pd.DataFrame(rows)
    least = int(table["n_texts"].min())
    rough = [f"{least} texts give rough weights and standard errors: use more texts"] if least < _FEW_TEXTS else []
    contexts = pd.concat(items, ignore_index=True)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(
            MixtureRow.variables(table, "row") | table_variables(contexts.add_prefix("context_"), "context")
        ),
        figures={"mixture": mixture_figure(table, str(study.attrs.get("name", "")), settings.interval)},
        text=_summary(table, settings.interval, n_words),
        warnings=(*answer_warnings(words), *rough, *_infinite(contexts)),
        tables={"items": contexts},
    )


def _probabilities(described: pd.DataFrame, words: StudyWords, name: str) -> dict[str, pd.DataFrame]:
    """Probabilities of the words of the text where people and the model have any, by what the model's are."""
    model = words.models[name]
    drawn = np.full(len(described), np.nan)
    drawn[model.item] = _at_target(relative_frequencies(model.counts), words.target[model.item])
    drawn[described[f"n_samples_{name}"] == 0] = np.nan
    found = {"samples": drawn}
    scored = described[f"target_probability_{name}"].to_numpy(dtype=float)
    if not np.allclose(scored, drawn, rtol=1e-9, atol=0, equal_nan=True):
        found["scored"] = np.where(np.isnan(drawn), np.nan, scored)
    people = np.where(words.target < 0, np.nan, described["cloze_probability"].to_numpy(dtype=float))
    return {
        kind: pd.DataFrame({"people": people, "model": np.minimum(values, 1)}).dropna()
        for kind, values in found.items()
    }


def _at_target(cpd: Distributions, target: NDArray[np.int64]) -> FloatArray:
    hit = cpd.word == target[cpd.context]
    return np.bincount(cpd.context[hit], weights=cpd.probability[hit], minlength=cpd.n_contexts).astype(float)


def _losses(
    study: xr.Dataset, words: StudyWords, probability: pd.DataFrame, uniform: float, source: str
) -> tuple[pd.DataFrame, FloatArray]:
    items = probability.index.to_numpy()
    groups = groups_of(study, items).astype(str)
    n_texts = len(np.unique(groups))
    if n_texts < 2:
        known = f"{len(items)} contexts with a word of the text and answers of people"
        raise InputError(f"has {known}, of {n_texts} text; weights need two texts", source=source)
    columns = probability.assign(rest=uniform)
    mixed = {"people": ["people", "rest"], "model": ["model", "rest"], "both": ["people", "model", "rest"]}
    found = {name: held_out_mixture(columns[its].to_numpy(), groups) for name, its in mixed.items()}
    losses = pd.DataFrame(
        {
            "item": context_labels(study)[items],
            "text_id": groups,
            "target": [str(words.strings[code]) for code in words.target[items]],
            "probability_people": columns["people"].to_numpy(),
            "probability_model": columns["model"].to_numpy(),
            **{f"loss_{name}_nats": its.loss_nats for name, its in found.items()},
        }
    )
    return losses, found["both"].weights


def _infinite(contexts: pd.DataFrame) -> list[str]:
    own = contexts.set_index(["model", "item"]).filter(like="loss_")
    bad = np.isinf(own.to_numpy()).any(axis=1)
    if not bad.any():
        return []
    (model, item), *_ = own.index[bad]
    text = f"infinite losses: {int(bad.sum())}, the first of {model} at item {item}; in the other texts every word"
    return [f"{text} was given by people or the model, so that a word never given gets probability 0; use more texts"]


def _row(losses: pd.DataFrame, weights: FloatArray, n_drawn: float, settings: MixtureSettings) -> dict[str, Any]:
    row: dict[str, Any] = {"n_contexts": len(losses), "n_texts": len(weights), "words_of_model": n_drawn}
    row |= {f"loss_{who}_nats": float(losses[f"loss_{who}_nats"].mean()) for who in ("people", "model", "both")}
    gains = {who: (losses[f"loss_{who}_nats"] - losses["loss_both_nats"]).to_numpy() for who in ("model", "people")}
    (gain, se), over_people = (
        (float(its.mean()), cluster_se(its, losses["text_id"]) if np.isfinite(its).all() else np.nan)
        for its in gains.values()
    )
    reach = NormalDist().inv_cdf((1 + settings.interval) / 2) * se
    row |= {"gain_nats": gain, "gain_se_nats": se, "gain_lower_nats": gain - reach, "gain_upper_nats": gain + reach}
    shares = zip(("people", "model", "rest"), weights.mean(axis=0).tolist(), strict=True)
    row |= {f"weight_{who}": weight for who, weight in shares}
    return {**row, "gain_over_people_nats": over_people[0], "gain_over_people_se_nats": over_people[1]}


def _summary(table: pd.DataFrame, interval: float, n_words: int) -> str:
    line = (
        "**{verdict}**. The loss is {loss_model_nats:.3f} alone ({probability}), {loss_both_nats:.3f} mixed "
        "with weight {weight_people:.2f} for people, {loss_people_nats:.3f} for people alone; {n_contexts:,} contexts "
        "of {n_texts} texts."
    )
    return (
        f"{bullets(table.assign(verdict=list(map(_verdict, rows_of(table)))), line)}\n\nWeights are fitted to other "
        f"texts; {interval:.0%} intervals are over texts. A word that a player never gave has its share of a uniform "
        f"distribution over {n_words:,} words."
    )


def _verdict(row: Any) -> str:
    if not np.isfinite(row.gain_nats):
        return f"A loss is infinite, so that people's answers and {label(row.model)} are not compared"
    does = "make" if row.gain_lower_nats > 0 else "do not clearly make"
    between = f"[{row.gain_lower_nats:.3f}, {row.gain_upper_nats:.3f}]"
    return f"People's answers {does} {label(row.model)} better by {row.gain_nats:.3f} nats per word {between}"


def mixture_figure(table: pd.DataFrame, study_name: str = "", interval: float = 0.9) -> Figure:
    """Gain of every model by people's answers, with its interval."""
    rows = table.assign(
        label=table["model"].map(label) + np.where(table["probability"] == "samples", "", ", " + table["probability"]),
        colour=table["model"].map(colours(table["model"].tolist())),
    )
    xlabel = f"gain by people's answers, nats per word ({interval:.0%})"
    series = [Series("gain_nats", "gain_lower_nats", "gain_upper_nats")]
    return forest_figure(rows, series, xlabel, "Do people know what a model does not?", study_name)
