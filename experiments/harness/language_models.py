"""What experiments with language models share: which ones the config names, the store, shards, and progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf

from estimators.errors import InputError, unknown_choice
from experiments.harness.replication import progress_bar
from inference.lm.settings import ModelSettings, model_settings
from inference.lm.stored import StoredResults, compute_stored
from inference.store.keys import Shard, parse_shard
from inference.store.store import OperationKey, Store, open_store

__all__ = ["Work", "batches_by_length", "chosen_models", "generator_settings", "open_work"]


def chosen_models(cfg: DictConfig) -> dict[str, ModelSettings]:
    """Models of ``model=[...]``, by name, in the order given.

    Raises
    ------
    InputError
        If a setting is wrong, or two models have one name.
    """
    given = _mapping(OmegaConf.select(cfg, "models") or OmegaConf.create({}))
    models: dict[str, ModelSettings] = {}
    for key, its in given.items():
        if not isinstance(its, dict):
            raise InputError(f"is {its!r}, should be the settings of a model", source="models", field=key)
        settings = model_settings(its, name=key)
        if settings.name in models:
            raise InputError(f"{settings.name!r} is the name of two models", source="models", field=f"{key}.name")
        models[settings.name] = settings
    return models


def generator_settings(cfg: DictConfig, models: Mapping[str, ModelSettings]) -> ModelSettings:
    """Settings of the model that draws: ``generator=NAME``, or ``generator.name=`` one of the models.

    Raises
    ------
    InputError
        If no model is named, or a model has the generator's name and other settings.
    """
    given = _mapping(cfg.generator)
    name = given.get("name")
    if given.get("source") is None:
        if name is not None and name in models:
            return models[name]
        if name is not None or len(models) != 1:
            raise unknown_choice(
                "generator", name, [*models, "or any model of generator=NAME that says its source, such as smollm2"]
            )
        return next(iter(models.values()))
    settings = model_settings(given)
    if models.get(settings.name, settings) != settings:
        raise InputError(
            f"{settings.name!r} is the generator with other settings; give one of them another name", source="models"
        )
    return settings


def _mapping(node: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", OmegaConf.to_container(node, resolve=True, throw_on_missing=True))


@dataclass
class Work:
    """A store, the part of the work that this run does, and what it has counted.

    Parameters
    ----------
    store : Store
    shard : Shard, optional
    items_per_batch : int
        Most items of a batch: what a killed run loses.
    n_computed, n_found : int
        Results that this run computed, and that were there.
    """

    store: Store
    shard: Shard | None
    items_per_batch: int
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
        """Compute what the store lacks of some items, and give the results of all of them.

        ``what`` is shown with the progress; see :func:`~inference.lm.stored.compute_stored` for the rest.
        """
        done: StoredResults = compute_stored(
            self.store,
            operation,
            items,
            keys,
            compute_batch,
            batches=batches,
            provenance=provenance,
            progress=progress_bar(what),
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


def open_work(cfg: DictConfig) -> Work:
    """Open the store of ``experiment.store`` (by default in the user's cache folder) for ``experiment.shard``.

    ``experiment.items_per_batch`` is read too.

    Raises
    ------
    InputError
        If the store or the shard cannot be used.
    """
    per_batch = cfg.experiment.items_per_batch
    if type(per_batch) is not int or per_batch < 1:
        raise InputError(
            f"is {per_batch!r}, should be a whole number of at least 1", field="experiment.items_per_batch"
        )
    folder = cfg.experiment.store
    if folder is None:
        import pooch  # noqa: PLC0415 - a fifth of a second

        folder = Path(pooch.os_cache("shannon-game")) / "store"
    return Work(open_store(str(folder)), parse_shard(cfg.experiment.shard), per_batch)


def batches_by_length(
    length: Callable[[Any], int], *, n_items: int, n_tokens: int | None = None
) -> Callable[[list[Any]], list[list[int]]]:
    """Cut items into batches of similar length, the longest first.

    Parameters
    ----------
    length : callable
        Tokens of an item.
    n_items : int
        Most items of a batch: what a killed run loses.
    n_tokens : int, optional
        Most tokens of a batch, unless one item has more.

    Returns
    -------
    callable
        Takes items, gives lists of positions.
    """

    def cut(items: list[Any]) -> list[list[int]]:
        lengths = [length(item) for item in items]
        batches: list[list[int]] = []
        total = 0
        for position in sorted(range(len(items)), key=lambda i: (-lengths[i], i)):
            total += lengths[position]
            is_full = not batches or len(batches[-1]) == n_items or (n_tokens is not None and total > n_tokens)
            if is_full:
                batches.append([])
                total = lengths[position]
            batches[-1].append(position)
        return batches

    return cut
