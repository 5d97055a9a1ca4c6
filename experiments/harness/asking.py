"""What questions repeat that ask live models: the refusal to ask nobody, and results by way of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.language_models import Work
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.store.keys import operation_key


def need_models(models: Mapping[str, Any]) -> None:
    """Refuse to ask nobody."""
    if not models:
        raise InputError("names no model; add model=[smollm2]", source="settings", field="model")


def ask_model(
    work: Work,
    model: LanguageModel,
    items: Sequence[Any],
    compute: Callable[[list[Any]], Mapping[str, NDArray[Any]]],
    *,
    said: str,
    operation: str,
    parameters: Mapping[str, Any],
    keys: Sequence[str],
    batches: Callable[[list[Any]], list[list[int]]],
) -> Mapping[str, NDArray[Any]]:
    """Compute what the store lacks of an operation."""
    return work.compute(
        f"{model.name}, {said}",
        operation_key(operation, model=model.identity, parameters=parameters, compute=compute),
        items,
        keys,
        compute,
        batches=batches,
        provenance=model_record(model),
    )
