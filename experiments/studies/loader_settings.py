"""Checks of a loader's settings that several loaders share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from estimators.errors import InputError, unknown_choice

__all__ = ["cache_folder", "check_switches", "loader_settings", "optional_path", "public_url"]


def loader_settings(
    config: Mapping[str, Any],
    defaults: Mapping[str, Any],
    *,
    source: str,
    choices: Mapping[str, Iterable[str]] | None = None,
    own_name: bool = False,
) -> dict[str, Any]:
    """Fill in the defaults of a loader's settings.

    Parameters
    ----------
    config : mapping
        Settings that were given.
    defaults : mapping
        Every setting that the loader knows.
    source : str
        The study, for messages.
    choices : mapping of str to iterable of str, optional
        Settings that are one of some words.
    own_name : bool
        Whether ``name`` says which loader is meant, and can be no other than the default.

    Returns
    -------
    dict

    Raises
    ------
    InputError
        For a setting that is unknown or none of its choices.
    """
    for key in config:
        if key not in defaults:
            raise unknown_choice("setting", key, defaults, source=source)
    given = {**defaults, **config}
    if own_name and given["name"] != defaults["name"]:
        raise InputError(f"is {given['name']!r}, this loader reads {defaults['name']!r}", source=source, field="name")
    for key, valid in (choices or {}).items():
        if given[key] not in valid:
            raise unknown_choice(key, given[key], valid, source=source)
    return given


def check_switches(given: Mapping[str, Any], names: Iterable[str], *, source: str) -> None:
    """Refuse what is neither true nor false."""
    for name in names:
        if not isinstance(given[name], bool):
            raise InputError(f"is {given[name]!r}, should be true or false", source=source, field=name)


def optional_path(given: Mapping[str, Any], name: str, *, source: str) -> Path | None:
    """Path that a setting names, with the user's folder for ``~``; None where it is null."""
    value = given[name]
    if value is None:
        return None
    if not isinstance(value, str | Path) or not str(value):
        raise InputError(f"is {value!r}, should be a path or null", source=source, field=name)
    return Path(value).expanduser()


def cache_folder(given: Mapping[str, Any], *, source: str) -> Path:
    """``cache_dir``, or the user's own folder for such things."""
    import pooch  # noqa: PLC0415 - a tenth of a second that loaders without a cache do not need

    return optional_path(given, "cache_dir", source=source) or Path(pooch.os_cache("shannon-game"))


def public_url(given: Mapping[str, Any], *, source: str) -> str:
    """Address of the public copy: ``url`` with ``commit`` filled in."""
    commit, url = given["commit"], given["url"]
    if not isinstance(commit, str) or not re.fullmatch(r"\w[\w.-]*", commit):
        raise InputError(f"is {commit!r}, should be a commit's name", source=source, field="commit")
    if not isinstance(url, str) or not re.match(r"https?://.", url):
        raise InputError(f"is {url!r}, should start with https://", source=source, field="url")
    return url.replace("{commit}", commit)
