"""What a slow reader made of public files, kept between runs: never stale, never trusted when damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from shannon_game.estimators.code_identity import code_hash, package_version
from shannon_game.estimators.content import content_digest
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.parsing import Note
from shannon_game.experiments.studies.study_file import read_study, write_study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["through_cache"]

_KIND = "cached"


def through_cache(path: Path, key: str, make: Callable[[], xr.Dataset]) -> tuple[xr.Dataset, list[Note]]:
    """Read a cache file, or make its contents and write it.

    A file that is damaged, or a folder that cannot be written to, costs time and is noted.
    """
    notes = []
    made_by = [
        code_hash("shannon_game.estimators", "shannon_game.experiments.studies"),
        *map(package_version, ("numpy", "pandas")),
    ]
    key = content_digest([key, made_by])
    try:
        found = read_study(path, kind=_KIND) if path.is_file() else None
        if found is not None and found.attrs.pop("key", None) == key:
            return found, []
    except InputError as error:
        text = f"the cache file {path.name} was damaged and was made again ({error})"
        notes.append(Note(text, 1, "warning"))
    made = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        write_study(made.assign_attrs(key=key), path, kind=_KIND)
    except (OSError, InputError) as error:
        text = f"the cache folder {path.parent} cannot be written to ({error}); nothing was cached"
        notes.append(Note(text, None, "warning"))
    return made, notes
