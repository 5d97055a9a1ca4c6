"""Settings of data that others published: where they lie on disk, and where they are downloaded from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pooch
from pydantic import AfterValidator

from estimators.errors import InputError
from inference.settings import Settings, UserPath

__all__ = ["Address", "CachedSettings", "Commit", "PublicSettings"]


def _commit(value: str) -> str:
    if not re.fullmatch(r"\w[\w.-]*", value):
        raise InputError(f"is {value!r}, should be the name of a commit")
    return value


def _address(value: str) -> str:
    if not re.match(r"https?://.", value):
        raise InputError(f"is {value!r}, should start with https://")
    return value


Commit = Annotated[str, AfterValidator(_commit)]
"""Name of a commit, which can stand in a file name."""

Address = Annotated[str, AfterValidator(_address)]
"""Address of a file in the web."""


class CachedSettings(Settings):
    """Settings of a loader that keeps files between runs."""

    cache_dir: UserPath | None = None
    """Folder for downloads and parsed files; null is the user's own cache folder."""

    @property
    def cache_folder(self) -> Path:
        """The folder, whoever chose it."""
        return self.cache_dir or Path(pooch.os_cache("shannon-game"))


class PublicSettings(CachedSettings):
    """Settings of a loader that can download its data."""

    root: UserPath | None = None
    """Folder with the data; null downloads them once into cache_dir and verifies every file."""
    commit: Commit
    """Commit of the public repository; it replaces {commit} in url."""
    url: Address
    """Address of the public data."""

    @property
    def address(self) -> str:
        """Address at that commit."""
        return self.url.replace("{commit}", self.commit)
