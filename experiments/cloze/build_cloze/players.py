"""Words of players in a cloze study: what draws and exact probabilities become, and the study that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.study import CLOZE, SAMPLES, model_names
from shannon_game.estimators.cloze.words import FAILED
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.parsing import objects

# sources of words that were scored because people gave them, and because they stand in the text
ANSWERS, TARGET = "human", "corpus"


@dataclass(frozen=True, eq=False)
class BuiltContexts:
    """What models are asked."""

    texts: Sequence[str]
    answers: Sequence[Sequence[str]]
    targets: Sequence[str]


@dataclass(frozen=True)
class BuiltWord:
    """A word of a player in a context."""

    word: str
    source: str
    count: int
    logprob: float = float("nan")


@dataclass(frozen=True, eq=False)
class BuiltPlayer:
    """One way of asking a model."""

    name: str
    model: str
    decoding: str
    rows: Sequence[Sequence[BuiltWord]]
    n_draws: int


def drawn_player(name: str, model: str, decoding: str, drawn: Mapping[str, NDArray[Any]], n_draws: int) -> BuiltPlayer:
    """Make a player of draws alone."""
    rows = [
        [BuiltWord(str(word), SAMPLES, int(count)) for word, count in zip(words, first + second, strict=True) if count]
        for words, first, second in zip(drawn["word"], drawn["n_first"], drawn["n_second"], strict=True)
    ]
    return BuiltPlayer(name, model, decoding, rows, n_draws)


def ancestral_player(plain: BuiltPlayer, contexts: BuiltContexts, scored: Sequence[Mapping[str, float]]) -> BuiltPlayer:
    """Add log-probabilities to draws from the whole distribution, and words that were not drawn but scored."""
    rows = [
        [
            *(BuiltWord(row.word, row.source, row.count, known.get(row.word, np.nan)) for row in drawn),
            *(BuiltWord(word, ANSWERS, 0, known[word]) for word in said if word in known),
            *([BuiltWord(target, TARGET, 0, known[target])] if target in known else []),
        ]
        for drawn, said, target, known in zip(plain.rows, contexts.answers, contexts.targets, scored, strict=True)
    ]
    return BuiltPlayer(plain.name, plain.model, plain.decoding, rows, plain.n_draws)


def exact_player(
    name: str,
    model: str,
    drawn: Mapping[str, NDArray[Any]],
    contexts: BuiltContexts,
    scored: Sequence[Mapping[str, float]],
    *,
    n_draws: int,
) -> tuple[BuiltPlayer, NDArray[np.float64]]:
    """Let counts stand for exact probabilities."""
    # listed: words of people, of the text and of the first half of the draws. What is left of 1 is spread over draws of
    # the second half that are not listed; where there are none, the listed words take it in proportion
    rows: list[list[BuiltWord]] = []
    mass = np.zeros(len(scored))
    for at, known in enumerate(scored):
        words = [str(word) for word in drawn["word"][at]]
        first = [word for word, count in zip(words, drawn["n_first"][at], strict=True) if count]
        wanted = dict.fromkeys([*contexts.answers[at], contexts.targets[at], *first])
        listed = [word for word in wanted if word in known]
        p = np.exp([known[word] for word in listed])
        mass[at] = p.sum()
        second = zip(words, drawn["n_second"][at], strict=True)
        others = {word: int(count) for word, count in second if count and word not in {*listed, FAILED}}
        rest, n_others = max(0.0, 1 - mass[at]), sum(others.values())
        weights = dict(zip(listed, p if others else p / mass[at], strict=True))
        weights |= {word: rest * count / n_others for word, count in others.items()}
        rows.append(
            [
                BuiltWord(word, SAMPLES, int(np.rint(weight * n_draws)), known.get(word, np.nan))
                for word, weight in weights.items()
            ]
        )
    return BuiltPlayer(name, model, "exact", rows, n_draws), mass


_OF_MODELS = ("model", "entry", "source", "sample")


def take_contexts(study: xr.Dataset, items: NDArray[np.intp]) -> xr.Dataset:
    """Keep some contexts, with all that people and models said there."""

    def of_items(variable: str) -> NDArray[np.intp]:
        return np.flatnonzero(np.isin(item_positions(study, variable), items))

    chosen = {"item": items, "response": of_items("response_item")}
    if "result" in study.dims:
        chosen["result"] = of_items("result_item")
    if "entry" in study.dims:
        chosen["entry"] = of_items("entry_item")
    # their samples go with them
    return CLOZE.read(study.isel(chosen))


def without_models(study: xr.Dataset) -> xr.Dataset:
    """Keep people's answers alone."""
    return study.drop_dims([name for name in _OF_MODELS if name in study.dims])


def add_players(study: xr.Dataset, players: Sequence[BuiltPlayer]) -> xr.Dataset:
    """Add what models said in every context of a study, after what is there."""
    before = model_names(study)
    for player in players:
        if player.name in before:
            fix = f"name the live one differently (models.{player.model}.name=...), or leave the study's out"
            problem = f"{player.name!r} is a model of the study too; {fix} ({Set('experiment.keep_models', False)})"
            raise InputError(problem, field=Set("model"))
    has_models = "entry" in study.dims
    words = {str(text): place for place, text in enumerate(study["word_text"].to_numpy().tolist())}
    sources = {str(name): place for place, name in enumerate(study["source"].to_numpy() if has_models else [])}
    sources.setdefault(SAMPLES, len(sources))
    items = study["item"].to_numpy().tolist()
    entries = [
        (item, number, rows)
        for number, player in enumerate(players, start=len(before))
        for item, rows in zip(items, player.rows, strict=True)
    ]
    said = [(entry, row) for entry, (_, _, rows) in enumerate(entries, study.sizes.get("entry", 0)) for row in rows]
    new = {
        "entry_item": [item for item, _, _ in entries],
        "entry_model": [number for _, number, _ in entries],
        "sample_entry": [entry for entry, _ in said],
        "sample_word": [words.setdefault(row.word, len(words)) for _, row in said],
        "sample_source": [sources.setdefault(row.source, len(sources)) for _, row in said],
        "sample_count": [row.count for _, row in said],
    }
    old_logprob = np.full(study.sizes.get("sample", 0), np.nan)
    if "sample_logprob" in study:
        old_logprob = study["sample_logprob"].to_numpy().astype(float)
    logprob = np.concatenate([old_logprob, [row.logprob for _, row in said]])
    data: dict[str, Any] = {
        "word_text": ("word", objects(list(words))),
        "sample_logprob": ("sample", logprob, {"units": "nats"}),
    }
    for name, values in new.items():
        old = study[name].to_numpy() if has_models else np.zeros(0, dtype=np.int64)
        data[name] = name.partition("_")[0], np.concatenate([old, np.array(values, dtype=np.int64)])
    rest = without_models(study).drop_vars(["word_text", "word_number"], errors="ignore")
    names = [*before, *(player.name for player in players)]
    coords: dict[str, Any] = {"model": ("model", objects(names)), "source": ("source", objects(list(sources)))}
    coords["word_number"] = ("word", np.arange(len(words)))
    return rest.assign_coords(coords).assign(data)
