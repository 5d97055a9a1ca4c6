"""Which files below a folder the toolkit wrote, by SHA-256: it replaces and removes no others.

The only module that removes folders. A manifest maps a path below the folder to the digests that its file may have.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, count
from pathlib import Path, PurePosixPath

from shannon_game.estimators.content import file_sha256
from shannon_game.estimators.errors import InputError
from shannon_game.inference.disk import write_whole
from shannon_game.inference.own_folder import LOCK, own

Manifest = Mapping[str, Sequence[str]]

SCRATCH = ".shannon-game-"
"""How the names of folders begin that only the toolkit makes, for what is not finished."""

FITS = ".fits"
"""Folder of the finished fits of a run, as long as it lasts."""

MANIFEST = f"{SCRATCH}files.json"
"""Name of the manifest of a folder that is not a run's, whose ``status.json`` holds it."""


def manifest_of(folder: Path) -> dict[str, tuple[str, ...]]:
    """Manifest of every file below a folder but the manifest itself."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    return {path.relative_to(folder).as_posix(): (file_sha256(path),) for path in files}


def in_the_way(folder: Path, names: Iterable[str], written: Manifest) -> list[str]:
    """Paths below a folder at which stands something else than what the manifest says."""
    return [name for name in names if not _is_free(folder, name) and not is_as_written(folder, name, written)]


def put(staging: Path, folder: Path, written: Manifest, record: Callable[[Manifest], object]) -> Manifest:
    """Move the files of a staging folder to their places, and remove what the manifest lists beside them."""
    new = manifest_of(staging)
    if found := in_the_way(folder, new, written):
        raise InputError(
            f"{found[0]} was not written by the toolkit, or has changed since; move it, or name another folder",
            source=str(folder),
        )
    record({name: (*written.get(name, ()), *new.get(name, ())) for name in chain(written, new)})
    for path in sorted(staging.rglob("*")):
        if path.is_dir():
            (folder / path.relative_to(staging)).mkdir(exist_ok=True)
    for name in new:
        (staging / name).replace(folder / name)
    remove(folder, {name: sums for name, sums in written.items() if name not in new})
    return new


def remove(folder: Path, written: Manifest) -> None:
    """Remove the files of a manifest that are as they were written, then the folders that this leaves empty."""
    gone = [name for name in written if is_as_written(folder, name, written)]
    for name in gone:
        (folder / name).unlink()
    above = {parent for name in gone for parent in PurePosixPath(name).parents if parent.parts}
    for parent in sorted(above, key=lambda each: len(each.parts), reverse=True):
        with suppress(OSError):
            (folder / parent).rmdir()


def _is_free(folder: Path, name: str) -> bool:
    """Whether a file can be made at a path without touching anything."""
    above = [folder / parent for parent in PurePosixPath(name).parents]
    free = all((path.is_dir() and (path == folder or not path.is_symlink())) or not _is_there(path) for path in above)
    return free and not _is_there(folder / name)


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def is_as_written(folder: Path, name: str, written: Manifest) -> bool:
    """Whether a file has one of the digests that a manifest lists for it."""
    path = folder / name
    parts = (path, *(folder / parent for parent in PurePosixPath(name).parents if parent.parts))
    # a link is the user's, wherever it leads, and what a manifest lists outside its folder is none of it
    is_inside = ".." not in PurePosixPath(name).parts and path.is_relative_to(folder)
    is_own = name in written and is_inside and path.is_file() and not any(map(Path.is_symlink, parts))
    return is_own and file_sha256(path) in written[name]


def seal(folder: Path) -> None:
    """Write down what a folder holds, all of which the toolkit has just made."""
    _write_manifest(folder, manifest_of(folder))


def is_sealed(folder: Path) -> bool:
    """Whether a folder has the files of its manifest as they were written, and no others."""
    return read_manifest(folder) == manifest_of(folder)


def claim(folder: Path, what: str) -> Manifest:
    """Make a folder the toolkit's own before anything is written there, and give the manifest of what it holds."""
    found = read_manifest(folder)
    if found is None:
        if folder.exists() and any(path.name != LOCK for path in folder.iterdir()):
            raise InputError(
                f"holds files and is no {what} of this toolkit; name a new or an empty folder", source=str(folder)
            )
        folder.mkdir(parents=True, exist_ok=True)
        _write_manifest(folder, {})
    return found or {}


@contextmanager
def replaced(folder: Path, what: str) -> Iterator[Path]:
    """Give an empty folder whose content replaces what the toolkit wrote in another, once all of it is written."""
    written = claim(folder, what)
    with own(folder), scratch(folder) as staging:
        yield staging
        _write_manifest(folder, put(staging, folder, written, partial(_write_manifest, folder)))


def read_manifest(folder: Path) -> dict[str, tuple[str, ...]] | None:
    """Manifest that a folder holds; None if there is none."""
    if not (folder / MANIFEST).is_file():
        return None
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return {name: tuple(sums) for name, sums in content["sha256"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _write_manifest(folder: Path, written: Manifest) -> None:
    write_whole(folder / MANIFEST, json.dumps({"sha256": written}, indent=1, default=list) + "\n")


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """Make a new folder in one that this process owns, and remove it at the end; so with those of killed processes."""
    for left in parent.glob(f"{SCRATCH}now-*"):
        remove_scratch(left)
    folder = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}now-", dir=parent))
    try:
        yield folder
    finally:
        remove_scratch(folder)


def remove_scratch(folder: Path) -> None:
    """Remove a folder of unfinished work with all that it holds."""
    if not any(name == FITS or name.startswith(SCRATCH) for name in (folder.name, folder.parent.name)):
        raise ValueError(f"{folder} is no folder of unfinished work")
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def take_unused(wanted: Path) -> Path:
    """Make a folder that was not there: the one that is wanted, or ``wanted_2``, ``wanted_3``, ... after it."""
    for number in count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}_{number}")
        # not "is it there?" and then "make it": another run may do both in between
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
    raise AssertionError
