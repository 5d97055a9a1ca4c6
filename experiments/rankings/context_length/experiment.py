"""``+exp=context_length``: ranks and perplexity of live models against the length of the context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators import rankings
from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.documents.corpus import ClusteredMean, clustered_mean, unit_loss
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.estimators.perplexity import perplexity_of_loss
from shannon_game.estimators.rankings.perplexity import approximate_perplexity
from shannon_game.estimators.rankings.ranks import rank_at
from shannon_game.estimators.rankings.scores import DECAYS
from shannon_game.experiments.harness import language_models
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.questions import INTERVAL_SE, normal_interval
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.experiments.rankings.context_length.figures import scores_figure, temperatures_figure
from shannon_game.experiments.rankings.context_length.places import ModelPlaces, own_places, places_of_all
from shannon_game.inference.lm import stored
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.scoring import score_windows
from shannon_game.inference.settings import Count, Counts, Positive
from shannon_game.inference.store.keys import operation_key, result_key

_SHOWN = ("model", "window", "context_length", "perplexity", "perplexity_lower", "perplexity_upper", "top1_accuracy")
_COUNTS, _CHARACTERS = "counts", "n_characters"


class ContextLengthRow(column.Row):
    """One model, window and length of the context."""

    model: str = column.key("language model", players=True)
    window: str = column.key("growing or sliding")
    context_length: int = column.key("tokens of context before a reference token")
    n_windows: int = column.context("places in the texts")
    n_tokens: int = column.context("reference tokens")
    n_characters: int | None = column.context("characters")
    loss_nats_per_character: float | None = column.detail("loss per character", unit="nats")
    bits_per_character: float | None = column.estimate("loss per character", unit="bits", se="bits_per_character_se")
    scores: float = column.estimate(
        "mean score of ranks (topK: of the K most probable tokens), and its s.e.", family="{}"
    )
    loss_nats: float = column.estimate("loss per token", unit="nats", se="loss_se_nats")
    perplexity: float = column.headline("perplexity per token", scale="log", interval="perplexity_{}")
    bounds: float = column.detail("perplexity of the K most probable tokens, and its bound", family="perplexity_top{}")
    share_outside: float = column.detail("share of tokens outside the K most probable")


class ContextLengthSettings(Seeded, language_models.LiveSettings):
    models: language_models.LiveModels = Field(
        default_factory=lambda: {language_models.SMOLLM2.name: language_models.SMOLLM2}
    )
    """Language models that run, by name; on the command line model=[smollm2,...]."""
    lengths: Counts = (8, 16, 32, 64, 128, 256)
    """Tokens of context before a reference token, the model's BOS token not counted."""
    n_windows: Count = 20
    """Places in the texts, drawn at random, the same for every length."""
    n_tokens: Count = 30
    """Reference tokens scored at each place."""
    places: Literal["tokens", "characters"] = "tokens"
    """tokens: drawn in each model's own tokens; characters: where all models end a token, up to the last such place
    within n_tokens of every model, so that different tokenizers score the same text (all models are in memory at once).
    Lengths are tokens of each model either way."""
    window: Literal["growing", "sliding", "both"] = "growing"
    """growing: one pass per place, each reference token after one more token of context; sliding: each after exactly so
    many, one pass per token; both: and their difference."""
    top_k: Count = 20
    """Ranks beyond it count as not ranked, as in the lists of an API; scores on the whole vocabulary stand beside."""
    temperatures: tuple[Positive, ...] = (0.5, 0.75, 1.0, 1.5, 2.0)
    """Perplexity and scores at these temperatures, at the longest context."""


@experiment(ContextLengthSettings, row=ContextLengthRow)
def context_length(study: xr.Dataset, settings: ContextLengthSettings) -> ExperimentResult:
    """Score the same places of the texts after contexts of every length, with every model.

    A row per model, window and length.
    """
    lengths = sorted(set(settings.lengths))
    top_k, temperatures = settings.top_k, settings.temperatures
    kinds = ("growing", "sliding") if settings.window == "both" else (settings.window,)
    if not settings.models:
        raise InputError(f"names no model; add {Set('model', ['smollm2'])}", field=Set("model"))
    work = language_models.open_work(settings)
    texts: list[str] = study["text"].to_numpy().tolist()
    sizes = {"longest": lengths[-1], "n_tokens": settings.n_tokens}
    scored: dict[tuple[str, str, int], Mapping[str, NDArray[Any]]] = {}
    vocab_sizes: dict[str, int] = {}
    of_all: dict[str, ModelPlaces] = {}
    loaded: dict[str, LanguageModel] = {}
    if settings.places == "characters":
        loaded = {name: load_language_model(chosen) for name, chosen in settings.models.items()}
        of_all = places_of_all(loaded, texts, **sizes)
    for name, chosen in settings.models.items():
        model = loaded.get(name) or load_language_model(chosen)
        places = _mine(work, _drawn(settings, of_all.get(name) or own_places(model, texts, **sizes)))
        vocab_sizes[name] = model.vocab_size
        for length in lengths:
            for kind in kinds:
                found = _score(work, model, places.windows(length, settings.n_tokens), length, kind, settings)
                scored[name, kind, length] = _counted(found, places)
    keys = {key: dict(zip(("model", "window", "context_length"), key, strict=True)) for key in scored}
    rows = [keys[key] | _row(its, top_k, vocab_sizes[key[0]]) for key, its in scored.items()]
    table = ContextLengthRow.table(rows)
    longest = {key: its for key, its in scored.items() if key[-1] == lengths[-1]}
    tempered = pd.DataFrame(
        [keys[key] | row for key, its in longest.items() for row in _by_temperature(its, temperatures, top_k)]
    )
    figures = {"context_length": scores_figure(table)}
    if temperatures:
        figures["temperature"] = temperatures_figure(tempered, lengths[-1])
    return ExperimentResult(
        table=table,
        dataset=_dataset(scored, tempered, lengths),
        figures=figures,
        text=_summary(table, _differences(scored, top_k), work),
        on_screen=table[[*_SHOWN, f"average_top{top_k}"]],
    )


def _drawn(settings: ContextLengthSettings, possible: ModelPlaces) -> ModelPlaces:
    n_possible, n_windows = len(possible.document), settings.n_windows
    if n_possible < n_windows:
        shared = " that all models share" if settings.places == "characters" else ""
        there = f"{n_possible} places{shared} with {max(settings.lengths)} tokens before and {settings.n_tokens} after"
        fix = "use longer texts, shorter lengths or fewer windows"
        raise InputError(f"is {n_windows}, but the texts have {there}; {fix}", field="n_windows")
    drawn = rng_for(settings.seed, "places").choice(n_possible, size=n_windows, replace=False)
    return possible.take(sorted(drawn.tolist()))


def _mine(work: stored.Work, places: ModelPlaces) -> ModelPlaces:
    """Places of this run's shard: the same numbers for every length and model, whatever its tokens."""
    mine = work.mine([result_key("place", number) for number in range(len(places.document))]).tolist()
    if not mine:
        raise InputError("holds none of the places; use fewer shards or more windows", field="shard")
    return places.take(mine)


def _counted(found: Mapping[str, NDArray[Any]], places: ModelPlaces) -> dict[str, NDArray[Any]]:
    counted = dict(found)
    counted[_COUNTS] = np.arange(found["rank"].shape[1]) < places.n_inside[:, None]
    if places.n_characters is not None:
        counted[_CHARACTERS] = places.n_characters
    return counted


def _score(  # noqa: PLR0917
    work: stored.Work,
    model: LanguageModel,
    windows: Sequence[tuple[int, ...]],
    length: int,
    kind: str,
    settings: ContextLengthSettings,
) -> Mapping[str, NDArray[Any]]:
    how: dict[str, Any] = {"context_length": length, "top_k": settings.top_k}
    how |= {"temperatures": list(settings.temperatures), "sliding": kind == "sliding"}

    def compute(batch: list[tuple[int, ...]]) -> Mapping[str, NDArray[Any]]:
        found = score_windows(model, batch, **how)
        return {str(name): found[name].to_numpy() for name in found.data_vars}

    return work.compute(
        f"{model.name}, {kind}, {length} tokens",
        operation_key("score_windows", model=model.identity, parameters=how, compute=compute),
        windows,
        [result_key(list(window)) for window in windows],
        compute,
        batches=stored.batches_by_length(len, n_items=work.items_per_batch),
        provenance=model_record(model),
    )


def _tokens(arrays: Mapping[str, NDArray[Any]]) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    counts = arrays[_COUNTS]
    rank, logprob = (arrays[name][counts].astype(float) for name in ("rank", "logprob"))
    return rank, -logprob, np.nonzero(counts)[0]


def _scores(rank: FloatArray, k: int) -> dict[str, FloatArray]:
    return {
        "linear": rankings.linear_score(rank, k),
        "reciprocal": rankings.reciprocal_score(rank),
        **{f"exponential_{decay:g}": rankings.exponential_score(rank, decay) for decay in DECAYS},
    }


def _row(arrays: Mapping[str, NDArray[Any]], top_k: int, vocab_size: int) -> dict[str, Any]:
    rank, nats, window = _tokens(arrays)
    counts = arrays[_COUNTS]
    row: dict[str, Any] = {"n_windows": counts.shape[0], "n_tokens": rank.size, "scores": {}}
    if _CHARACTERS in arrays:
        character = unit_loss(np.bincount(window, weights=nats, minlength=len(counts)), arrays[_CHARACTERS])
        row |= {"n_characters": int(character.n_units), "loss_nats_per_character": character.nats.mean}
        row |= {"bits_per_character": character.bits.mean, "bits_per_character_se": character.bits.se}
    # over a whole vocabulary a linear score says next to nothing: nearly every rank is near the first
    listed = rank_at(rank, top_k)
    limited = _scores(listed, top_k) | {"average": rankings.average_score(listed, top_k)}
    values = {f"{score}_top{top_k}": its for score, its in limited.items()}
    values |= {f"top{k}_accuracy": rankings.top_k_accuracy(rank, k) for k in (1, top_k)} | _scores(rank, vocab_size)
    for score, its in values.items():
        found = clustered_mean(its, window)
        row["scores"] |= {score: found.mean, f"{score}_se": found.se}
    loss = clustered_mean(nats, window)
    row |= {"loss_nats": loss.mean, "loss_se_nats": loss.se, **_perplexity(loss)}
    hit = np.arange(1, top_k + 1) == rank[:, None]
    bound = approximate_perplexity(arrays["top_logprob"][counts].astype(float), hit)
    row["bounds"] = {str(top_k): bound.perplexity, f"{top_k}_bound": bound.perplexity_bound}
    return row | {"share_outside": bound.n_censored / bound.n_tokens}


def _perplexity(loss: ClusteredMean) -> dict[str, float]:
    """Perplexity, and the 90% interval of the loss."""
    ends = {"": 0, "_lower": -INTERVAL_SE, "_upper": INTERVAL_SE}
    return {f"perplexity{end}": perplexity_of_loss(loss.mean + n * loss.se) for end, n in ends.items()}


def _by_temperature(
    arrays: Mapping[str, NDArray[Any]], temperatures: Sequence[float], top_k: int
) -> list[dict[str, Any]]:
    rank, _, window = _tokens(arrays)
    # dividing all logits by one number changes no rank: the score is the same by construction, and is not recomputed
    score = clustered_mean(rankings.average_score(rank, top_k), window)
    losses = -arrays["tempered_logprob"][arrays[_COUNTS]].astype(float).T
    return [
        {
            "temperature": temperature,
            **_perplexity(clustered_mean(loss, window)),
            "average_score": score.mean,
            "average_score_se": score.se,
        }
        for temperature, loss in zip(temperatures, losses, strict=True)
    ]


def _differences(
    scored: Mapping[tuple[str, str, int], Mapping[str, NDArray[Any]]], top_k: int
) -> list[tuple[str, int, ClusteredMean, ClusteredMean]]:
    found = []
    for (name, kind, length), arrays in scored.items():
        if kind == "growing" and (name, "sliding", length) in scored:
            (rank, nats, window), (other_rank, other_nats, _) = map(_tokens, (arrays, scored[name, "sliding", length]))
            score = rankings.average_score(rank, top_k) - rankings.average_score(other_rank, top_k)
            found.append((name, length, clustered_mean(score, window), clustered_mean(other_nats - nats, window)))
    return found


def _dataset(
    scored: Mapping[tuple[str, str, int], Mapping[str, NDArray[Any]]], tempered: pd.DataFrame, lengths: Sequence[int]
) -> xr.Dataset:
    names = list(dict.fromkeys(name for name, _, _ in scored))
    kinds = list(dict.fromkeys(kind for _, kind, _ in scored))
    dims = ("model", "window_kind", "context_length", "window", "position")

    def stack(variable: str) -> NDArray[Any]:
        return np.array(
            [[[scored[name, kind, length][variable] for length in lengths] for kind in kinds] for name in names]
        )

    coords = {"model": names, "window_kind": kinds, "context_length": list(lengths)}
    dataset = xr.Dataset({"rank": (dims, stack("rank"))}, coords)
    for name in ("logprob", "entropy_nats"):
        dataset[name] = dims, stack(name), {"units": "nats"}
    dataset["tempered_logprob"] = (*dims, "temperature"), stack("tempered_logprob"), {"units": "nats"}
    if any(_CHARACTERS in arrays for arrays in scored.values()):
        dataset[_COUNTS] = dims, stack(_COUNTS)
    if len(tempered):
        dataset = dataset.assign_coords(temperature=sorted(set(tempered["temperature"])))
    return dataset


def _summary(
    table: pd.DataFrame,
    differences: Sequence[tuple[str, int, ClusteredMean, ClusteredMean]],
    work: stored.Work,
) -> str:
    score = next(str(name) for name in table.columns if str(name).startswith("average_"))
    lines = []
    for (name, kind), rows in table.groupby(["model", "window"], sort=False):
        first, last = rows.iloc[0], rows.iloc[-1]
        characters = f", {last['bits_per_character']:.3f} bits per character" if "n_characters" in rows else ""
        lines.append(
            f"- **With {last['context_length']} instead of {first['context_length']} tokens of context the perplexity "
            f"of {name} goes from {first['perplexity']:.1f} to {last['perplexity']:.1f}** ({kind} window), and the "
            f"average score from {first[score]:.3f} to {last[score]:.3f} (90% interval "
            f"{normal_interval(last[score], last[f'{score}_se'], 3)}){characters}."
        )
    lines += [
        f"- **{name}**, {length} tokens: the growing window has a score {by_score.mean:+.4f} "
        f"{normal_interval(by_score.mean, by_score.se, 4)} above that of the sliding one, and log-probability "
        f"{by_loss.mean:+.3f} nats {normal_interval(by_loss.mean, by_loss.se, 3)} higher."
        for name, length, by_score, by_loss in differences
    ]
    first = table.iloc[0]
    what = f"{first['n_tokens']} tokens"
    if "n_characters" in table:
        what = f"{first['n_characters']:,} characters, the same for every model,"
    return (
        "\n".join(lines) + f"\n\n{what} at {first['n_windows']} places, the same for every length; standard errors are "
        f"clustered by place. `_topK` scores count a token outside the K most probable as not ranked. {work.said()}"
    )
