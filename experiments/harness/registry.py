"""Which experiments, studies and models there are: what ``conf`` says of each, and the import of one of them.

A YAML file in ``conf/exp`` or ``conf/study`` is the whole registration: ``_target_`` is the function, ``kind`` the kind
of study that it takes or gives, ``extra`` what has to be installed. Hydra finds the files of a user in
``--config-dir FOLDER``, and those of an installed package that has an entry point in the group ``shannon_game.conf``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isfunction
from pkgutil import resolve_name
from typing import Any, NamedTuple

from hydra.core.global_hydra import GlobalHydra
from hydra.plugins.config_source import ConfigLoadError
from hydra.utils import get_object
from omegaconf import DictConfig, ListConfig, OmegaConf

from shannon_game.estimators.errors import InputError, require_packages, unknown_choice
from shannon_game.experiments.harness.kinds import KINDS

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "api": ("httpx", "tenacity"),
    "bayes": ("arviz", "joblib", "nutpie", "pymc"),
    "collect": ("httpx", "itsdangerous", "jinja2", "sqlalchemy", "starlette", "uvicorn"),
    "data": ("pyarrow", "python_calamine", "sklearn"),
    "lm": ("accelerate", "gguf", "pyarrow", "torch", "transformers"),
    "words": ("icu", "simplemma"),
}
"""Extra of the project -> modules that it brings."""

_OWN = ("name", "_target_", "kind", "extra")


class Entry(NamedTuple):
    """What a YAML file says of an experiment or a loader besides its settings."""

    name: str
    target: str
    """Dotted name of the function."""
    kinds: tuple[str, ...]
    """Kinds of study that an experiment takes, or that a loader can give."""
    extra: tuple[str, ...]
    """Extras of the project that it needs."""


def entry_of(node: DictConfig | None, *, what: str) -> Entry:
    """Read what registers a composed node; its settings may have no value yet."""
    own = {} if node is None else node
    name, target, kind, extra = (own.get(key) for key in ("name", "_target_", "kind", "extra"))
    source = f"{what} {name!r}"
    if not isinstance(target, str):
        raise InputError("has no _target_: the dotted name of a function", source=source, field="_target_")
    # an experiment may take studies of several kinds; of a loader that can give several, the study says which it is
    kinds = tuple(kind) if isinstance(kind, ListConfig) and len(kind) else (kind,)
    extras = (extra,) if isinstance(extra, str) else tuple(extra or ())
    for word, given, valid in (("kind", kinds, KINDS), ("extra", extras, EXTRAS)):
        for each in given:
            if each not in valid:
                raise unknown_choice(word, each, valid, source=source)
    return Entry(str(name), target, kinds, extras)


def given_to(node: DictConfig) -> dict[str, Any]:
    """Settings of a composed node, without what registers it."""
    return {str(key): to_plain(node, str(key)) for key in node if key not in _OWN}


def to_plain(cfg: DictConfig, name: str) -> Any:
    """One node of the config as plain Python, its interpolations resolved."""
    node = cfg[name]
    if OmegaConf.is_config(node) and len(missing := sorted(OmegaConf.missing_keys(node))) > 1:
        lost = [f"{name}.{key}" for key in missing]
        problem = f"have no value yet; add {' '.join(f'{key}=...' for key in lost)} to the command"
        raise InputError(problem, field=", ".join(lost))
    return OmegaConf.to_container(node, resolve=True, throw_on_missing=True) if OmegaConf.is_config(node) else node


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested settings, with its full name."""
    if isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from leaves(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def load_target(entry: Entry, *, what: str, to_run: bool = True) -> Callable[..., Any]:
    """Import what a YAML file registers, after a look at what has to be installed; the help looks where it must."""
    source = f"{what} {entry.name!r}"

    def look() -> None:
        for extra in entry.extra:
            require_packages(EXTRAS[extra], extra, source=source)

    if to_run:
        look()
    try:
        # Hydra logs what it cannot import
        target: Callable[..., Any] = get_object(entry.target) if to_run else resolve_name(entry.target)
    except (ImportError, AttributeError) as error:
        look()
        reason = " ".join(str(error).split())
        problem = f"is {entry.target!r}, which cannot be imported: {reason}"
        raise InputError(problem, source=source, field="_target_") from error
    if not hasattr(target, "settings_class"):
        problem = f"is {entry.target!r}, which is no function with settings; decorate it with @experiment or @loader"
        raise InputError(problem, source=source, field="_target_")
    return target


def own_function(dotted: str, gives: str, *, field: object) -> Callable[..., Any]:
    """Import a function of the user's, which makes what `gives` names or is annotated so: no other is ever called."""
    module_name, _, name = dotted.rpartition(".")
    try:
        module = import_module(module_name) if module_name else None
        found = getattr(module, name, None)
    except (ImportError, ValueError, TypeError) as error:
        raise InputError(f"is {dotted!r}, which cannot be imported: {error}", field=field) from error
    if isfunction(found):
        said = found.__annotations__.get("return", "")
        if gives in found.__code__.co_names or re.search(rf"\b{gives}\b", str(said)):
            return found
        problem = f"is {dotted!r}, which does not say that it gives {gives}: write def {name}(...) -> {gives}"
        raise InputError(problem, field=field)
    near = get_close_matches(name, [each for each, its in vars(module or object).items() if isfunction(its)], n=1)
    meant = f"did you mean {near[0]!r}?" if near else "should be MODULE.FUNCTION, a function that stands in a module"
    raise InputError(f"is {dotted!r}, and {module_name!r} has no Python function {name!r}; {meant}", field=field)


def known(group: str, *, kinds: Collection[str] | None = None) -> list[str]:
    """Names in ``conf/GROUP`` and in the user's own folders, of some kinds if asked."""
    loader = GlobalHydra.instance().config_loader()
    names = loader.get_group_options(group)
    if kinds is None:
        return names
    return [name for name in names if set(_kinds(loader.get_sources(), group, name)) & set(kinds)]


def _kinds(sources: Iterable[Any], group: str, name: str) -> tuple[str, ...]:
    for source in sources:
        try:
            config = source.load_config(f"{group}/{name}").config
        except ConfigLoadError:
            continue
        found = OmegaConf.select(config, "kind", default=OmegaConf.select(config, "experiment.kind"))
        return tuple(found) if isinstance(found, ListConfig) else (found,)
    return ()


def installed_configs() -> list[str]:
    """Folders with YAML files of installed packages, as Hydra writes them: ``pkg://package.conf``."""
    return [f"pkg://{entry.value}" for entry in entry_points(group="shannon_game.conf")]
