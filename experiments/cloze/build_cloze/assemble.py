"""A cloze study of some contexts of another, with further models in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.study import SAMPLES, model_names
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions
from shannon_game.experiments.cloze.build_cloze.players import Player

_OF_MODELS = ("model", "entry", "source", "sample")
_PER_ENTRY = ("entry_item", "entry_model")
_PER_SAMPLE = ("sample_entry", "sample_word", "sample_source", "sample_count")


def take_contexts(study: xr.Dataset, items: NDArray[np.intp]) -> xr.Dataset:
    """Keep some contexts, with all that people and models said there."""

    def of_items(variable: str) -> NDArray[np.intp]:
        return np.flatnonzero(np.isin(item_positions(study, variable), items))

    chosen = {"item": items, "response": of_items("response_item")}
    if "result" in study.dims:
        chosen["result"] = of_items("result_item")
    if "entry" not in study.dims:
        return study.isel(chosen)
    chosen["entry"] = of_items("entry_item")
    place = np.full(study.sizes["entry"], -1, dtype=np.int64)
    place[chosen["entry"]] = np.arange(len(chosen["entry"]))
    chosen["sample"] = np.flatnonzero(place[study["sample_entry"].to_numpy()] >= 0)
    kept = study.isel(chosen)
    return kept.assign(sample_entry=("sample", place[kept["sample_entry"].to_numpy()]))


def without_models(study: xr.Dataset) -> xr.Dataset:
    """Keep people's answers alone."""
    return study.drop_dims([name for name in _OF_MODELS if name in study.dims])


def add_players(study: xr.Dataset, players: Sequence[Player]) -> xr.Dataset:
    """Add what models said in every context of a study, after what is there."""
    before = model_names(study)
    for player in players:
        if player.name in before:
            raise InputError(
                f"{player.name!r} is a model of the study too; name the live one differently "
                f"(models.{player.model}.name=...), or leave the study's out (experiment.keep_models=false)",
                source="settings",
                field="model",
            )
    words = {str(text): place for place, text in enumerate(study["word_text"].to_numpy().tolist())}
    has_models = "entry" in study.dims
    sources = [str(name) for name in study["source"].to_numpy()] if has_models else []
    if SAMPLES not in sources:
        sources.append(SAMPLES)
    columns: dict[str, list[int]] = {name: [] for name in (*_PER_ENTRY, *_PER_SAMPLE)}
    logprob: list[float] = []
    items = study["item"].to_numpy().tolist()
    n_entries = study.sizes["entry"] if has_models else 0
    for number, player in enumerate(players, start=len(before)):
        for item, rows in zip(items, player.rows, strict=True):
            columns["entry_item"].append(item)
            columns["entry_model"].append(number)
            for row in rows:
                if row.source not in sources:
                    sources.append(row.source)
                columns["sample_entry"].append(n_entries)
                columns["sample_word"].append(words.setdefault(row.word, len(words)))
                columns["sample_source"].append(sources.index(row.source))
                columns["sample_count"].append(row.count)
                logprob.append(row.logprob)
            n_entries += 1
    old_logprob = np.full(study.sizes.get("sample", 0), np.nan)
    if "sample_logprob" in study:
        old_logprob = study["sample_logprob"].to_numpy().astype(float)

    def joined(name: str) -> NDArray[np.int64]:
        old = study[name].to_numpy() if has_models else np.zeros(0, dtype=np.int64)
        return np.concatenate([old, np.array(columns[name], dtype=np.int64)])

    data = {
        "word_text": ("word", _objects(list(words))),
        **{name: ("entry", joined(name)) for name in _PER_ENTRY},
        **{name: ("sample", joined(name)) for name in _PER_SAMPLE},
        "sample_logprob": ("sample", np.concatenate([old_logprob, logprob]), {"units": "nats"}),
    }
    rest = without_models(study).drop_vars("word_text")
    names = [*before, *(player.name for player in players)]
    return rest.assign_coords(model=("model", _objects(names)), source=("source", _objects(sources))).assign(data)


def _objects(texts: Sequence[str]) -> NDArray[np.object_]:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array
