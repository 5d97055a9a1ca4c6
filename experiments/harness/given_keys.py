"""Keys that were given as settings: refused, and kept out of what a run writes. Hydra writes every setting to files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.registry import leaves
from shannon_game.inference.api.keys import is_variable, may_hold_key

_SECRET = re.compile(
    r"(.*_)?(api_?key|secret(_?key)?|password|passwd|credential|authorization|bearer|(access|auth|api)_?token)s?",
    re.IGNORECASE,
)
# no setting of a model is called so
_SECRET_OF_MODEL = re.compile(r"(.*_)?(keys?|token)", re.IGNORECASE)
# a name and its value, alone or in a mapping
_PAIR = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*[=:]\s*([^\s,{}\[\]]*)")


def refuse_keys(overrides: Iterable[str]) -> None:
    """Refuse a key on the command line, before any file is made; no message repeats it."""
    for text in overrides:
        # what a sweep lists stands without a name
        name, _, value = text.partition("=")
        listed = ((name.rpartition(".")[2], each) for each in value.split(","))
        of_model = name.lstrip("+").startswith("models")
        for its, given in (*listed, *_PAIR.findall(text)):
            if _is_key(its, given.strip(" '\""), of_model=of_model):
                raise _refusal("command line", its)


def hide_keys(cfg: DictConfig, folder: Path) -> None:
    """Refuse a key in a YAML file of settings, and take it out of the copies that Hydra made."""
    plain: Any = OmegaConf.to_container(cfg)
    found = []
    for name, given in leaves(plain):
        own, value = next((part for part in reversed(name.split(".")) if not part.isdigit()), ""), str(given)
        # an interpolation stands in Hydra's files as it is
        readable = isinstance(given, str | int) and not value.startswith("${")
        if readable and _is_key(own, value, of_model=name.startswith("models.")):
            found.append((own, value))
    if not found:
        return
    for path in filter(Path.is_file, _of_hydra(folder)):
        text = path.read_text(encoding="utf-8")
        for _, value in found:
            text = text.replace(value, "(hidden)")
        path.write_text(text, encoding="utf-8")
    raise _refusal("settings", found[0][0])


def _of_hydra(folder: Path) -> Iterator[Path]:
    """Files of settings that Hydra wrote for this job, and no others."""
    inner: str | None = ".hydra"
    if HydraConfig.initialized():
        hydra = HydraConfig.get()
        folder, inner = Path(hydra.runtime.output_dir), hydra.output_subdir
        if hydra.mode == RunMode.MULTIRUN:
            yield Path(hydra.sweep.dir, "multirun.yaml")
    if inner is not None:
        yield from (folder / inner / f"{name}.yaml" for name in ("config", "hydra", "overrides"))


def _is_key(name: str, value: str, *, of_model: bool) -> bool:
    if not value or value in ("null", "None", "???"):
        return False
    if name == "key_env":
        return not is_variable(value)
    if name == "base_url":
        return may_hold_key(value)
    return _SECRET.fullmatch(name) is not None or (of_model and _SECRET_OF_MODEL.fullmatch(name) is not None)


def _refusal(source: str, name: str) -> InputError:
    return InputError(
        "a key is not given as a setting, where files and lists of processes show it; put it into an environment "
        "variable and give the variable's NAME: models.api.key_env=NAME. What was given is not shown. If it is a key, "
        "replace the key",
        source=source,
        field=name,
    )
