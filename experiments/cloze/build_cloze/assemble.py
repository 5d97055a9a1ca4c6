"""A cloze study of some contexts of another, with further models in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze.study import SAMPLES, model_names
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_positions
from shannon_game.experiments.cloze.build_cloze.players import Player

_OF_MODELS = ("model", "entry", "source", "sample")


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
            fix = f"name the live one differently (models.{player.model}.name=...), or leave the study's out"
            problem = f"{player.name!r} is a model of the study too; {fix} (experiment.keep_models=false)"
            raise InputError(problem, source="settings", field="model")
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
        "word_text": ("word", _objects(list(words))),
        "sample_logprob": ("sample", logprob, {"units": "nats"}),
    }
    for name, values in new.items():
        old = study[name].to_numpy() if has_models else np.zeros(0, dtype=np.int64)
        data[name] = name.partition("_")[0], np.concatenate([old, np.array(values, dtype=np.int64)])
    rest = without_models(study).drop_vars("word_text")
    names = [*before, *(player.name for player in players)]
    coords = {"model": ("model", _objects(names)), "source": ("source", _objects(list(sources)))}
    return rest.assign_coords(coords).assign(data)


def _objects(texts: Sequence[str]) -> NDArray[np.object_]:
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array
