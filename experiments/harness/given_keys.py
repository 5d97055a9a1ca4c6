"""Keys and passwords in settings: what is refused, and what of settings, files and messages may be written.

Hydra writes every setting to files. A key goes into an environment variable that a setting names; a database finds its
password by itself, or its whole address comes from the environment: ``study.url=${oc.env:NAME}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.registry import leaves
from shannon_game.inference.api.keys import is_variable, may_hold_key
from shannon_game.inference.disk import close_to_others, create_private

T = TypeVar("T")

HIDDEN = "(hidden)"
"""What stands in files where a key or a password was."""

_PASSWORD = r"(?:password|passwd|passphrase|pwd)"
_SECRET = re.compile(
    rf"(.*_)?({_PASSWORD}|(api_?key|secret(_?key)?|private_key|credential|authorization|bearer|(access|auth|api)_?token))s?",
    re.IGNORECASE,
)
# no setting of a model is called so
_SECRET_OF_MODEL = re.compile(r"(.*_)?(keys?|token)", re.IGNORECASE)
# a name and its value, alone or in a mapping
_PAIR = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*[=:]\s*([^\s,{}\[\]]*)")
# of an address with a user; a port and a variable of the environment are none
_ADDRESS = re.compile(r"(://[^:/?#@\s]*:)(?!\d{1,5}/|\$\{|\(hidden\)@)[^\s'\"]+(?=@)")
# of the query of an address, or of the words by which PostgreSQL's own programs name a database
_WORD = re.compile(
    rf"((?<![\w/])\w*{_PASSWORD}\s*=\s*)(?!\$\{{|\(hidden\))('(?:\\.|[^'\\])*'|[^\s&;,'\"]+)", flags=re.IGNORECASE
)
# of providers whose keys begin alike
_LIKE_KEY = re.compile(
    r"((?<![\w-]))(sk-(?=[\w-]*\d)[\w-]{8,}|(hf|gsk)_\w{16,}|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|"
    r"AKIA[A-Z0-9]{12,}|AIza[\w-]{30,}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}(\.[\w-]+)?)"
)
_IN_TEXT = (_ADDRESS, _WORD, _LIKE_KEY)


def public(value: T) -> T:
    """Settings, or a text, as they may be written: a key or a password in them is hidden."""
    shown: Any = value
    if isinstance(value, Mapping):
        shown = {
            key: HIDDEN if isinstance(inner, str | int) and _is_key(str(key), str(inner)) else public(inner)
            for key, inner in value.items()
        }
    elif isinstance(value, list | tuple):
        shown = type(value)([public(inner) for inner in value])
    elif isinstance(value, str):
        for pattern in _IN_TEXT:
            shown = pattern.sub(rf"\g<1>{HIDDEN}", shown)
    return shown  # type: ignore[no-any-return]


def holds_secret(text: str) -> bool:
    """Whether a text holds the password of an address, or what looks like a key."""
    return any(pattern.search(text) for pattern in _IN_TEXT)


def refuse_keys(overrides: Iterable[str]) -> None:
    """Refuse a key on the command line, before any file is made; no message repeats it."""
    for text in overrides:
        # what a sweep lists stands without a name
        name, _, value = text.partition("=")
        own = name.lstrip("+~")
        # a password among the words by which PostgreSQL's programs name a database is no setting's
        if own.rpartition(".")[2] in ("url", "database") and holds_secret(value):
            raise _refusal("command line", own, address=True)
        listed = ((own.rpartition(".")[2], each) for each in value.split(","))
        for its, given in (*listed, *_PAIR.findall(text)):
            if _is_key(its, given.strip(" '\""), of_model=own.startswith("models")):
                raise _refusal("command line", its)
        if holds_secret(value):
            raise _refusal("command line", own, address=not _LIKE_KEY.search(value))


def hide_keys(cfg: DictConfig, folder: Path) -> None:
    """Refuse a key in a YAML file of settings, and take it out of the copies that Hydra made, which the owner reads."""
    if folder.is_dir():
        create_private(folder / "run.log")
    for path in (*_of_hydra(folder), folder / "run.log"):
        close_to_others(path)
    found = {}
    for name, given in leaves(OmegaConf.to_container(cfg)):
        own, value = next((part for part in reversed(name.split(".")) if not part.isdigit()), ""), str(given)
        # an interpolation stands in Hydra's files as it is
        if not isinstance(given, str | int) or value.startswith("${"):
            continue
        if _is_key(own, value, of_model=name.startswith("models.")) or holds_secret(value):
            found[own] = value
    if found:
        take_out(found, folder)
        name, value = next(iter(found.items()))
        raise _refusal("settings", name, address=_ADDRESS.search(value) is not None)


def take_out(found: Mapping[str, str], folder: Path) -> None:
    """Take values, by the last part of their settings' names, out of the copies that Hydra made."""
    for path in filter(Path.is_file, _of_hydra(folder)):
        OmegaConf.save(OmegaConf.create(without(OmegaConf.to_container(OmegaConf.load(path)), found)), path)


def without(value: Any, found: Mapping[str, str]) -> Any:
    """Settings, or texts that set them, without some values."""
    if isinstance(value, Mapping):
        gone = {key for key, inner in value.items() if str(key) in found and str(inner) == found[str(key)]}
        return {key: HIDDEN if key in gone else without(inner, found) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without(inner, found) for inner in value]
    for name, its in found.items() if isinstance(value, str) else ():
        # a short value is a part of other words
        value = (
            value.replace(its, HIDDEN)
            if len(its) > 5
            else re.sub(rf"(?<!\w)({re.escape(name)}\s*[=:]\s*){re.escape(its)}(?!\w)", rf"\g<1>{HIDDEN}", value)
        )
    return value


def values_of(cfg: DictConfig, name: str) -> dict[str, str]:
    """Every value at or below a name that no setting has."""
    parts = ((key.split("."), str(given)) for key, given in leaves(OmegaConf.to_container(cfg)))
    return {key[-1]: given for key, given in parts if name in key and not given.startswith("${")}


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


def _is_key(name: str, value: str, *, of_model: bool = False) -> bool:
    if not value or value in ("null", "None", "???", HIDDEN):
        return False
    if name == "key_env":
        return not is_variable(value)
    if name == "base_url":
        return may_hold_key(value)
    return _SECRET.fullmatch(name) is not None or (of_model and _SECRET_OF_MODEL.fullmatch(name) is not None)


def _refusal(source: str, name: str, *, address: bool = False) -> InputError:
    what, cure = ("key", "put it into an environment variable and give the variable's NAME: models.api.key_env=NAME")
    if address:
        what = "password"
        cure = f"set PGPASSWORD or write ~/.pgpass; or keep the whole address in a variable: '{name}=${{oc.env:NAME}}'"
    problem = f"a {what} is not given as a setting, where files and lists of processes show it; {cure}"
    return InputError(
        f"{problem}. What was given is not shown. If it is a {what}, replace the {what}", source=source, field=name
    )
