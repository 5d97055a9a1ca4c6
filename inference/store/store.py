"""The store: results of language models on disk, computed once, by whatever process.

A folder has one subfolder an operation and in it one immutable file a batch
(:mod:`shannon_game.inference.store.files`). There is no index: files say which keys are there, so that many processes
fill one store without speaking to each other. What is computed twice is kept twice and counts once.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.disk import whole
from shannon_game.inference.store.keys import SCHEMA_VERSION, OperationKey

log = logging.getLogger("shannon-game")

_FILE_NAME = re.compile(r"[0-9a-f]{64}\.arrow")
_MARKER = "store.json"
_FORMAT = "shannon-game store"
_OPERATION = "operation.json"
_ABANDONED_SECONDS = 3600.0
# positions of a key: file number in the high bits, row in the low ones; a tuple a key would take four times the memory
_ROW_BITS = 32


@dataclass
class _Known:
    """What this process has seen of one operation's folder."""

    folder: Path
    files: list[Path] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    verified: set[int] = field(default_factory=set)
    place: dict[str, int] = field(default_factory=dict)


class Store:
    """Results by operation and key in one folder. Made by :func:`open_store`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[OperationKey, _Known] = {}

    def missing(self, operation: OperationKey, keys: Sequence[str]) -> NDArray[np.intp]:
        """Positions of the keys that have no result yet, as far as the disk says now."""
        known = self._known_of(operation)
        self._refresh(operation, known)
        return np.array([position for position, key in enumerate(keys) if key not in known.place], dtype=np.intp)

    def append(
        self,
        operation: OperationKey,
        keys: Sequence[str],
        arrays: Mapping[str, NDArray[Any]],
        *,
        provenance: Mapping[str, Any] | None = None,
    ) -> Path:
        """Add the results of one batch: all of them or, if the process is killed meanwhile, none."""
        from shannon_game.inference.store import files  # noqa: PLC0415 - pyarrow comes with the extra lm

        known = self._known_of(operation)
        if not known.folder.is_dir():
            description = json.dumps(json.loads(operation.description), indent=2, sort_keys=True) + "\n"
            # for readers of the folder; every file says the same, and the store reads it there
            _write(known.folder / _OPERATION, description.encode("ascii"))
        content = files.encode(operation, keys, arrays, provenance or {})
        path = known.folder / f"{hashlib.sha256(content).hexdigest()}.arrow"
        _write(path, content)
        return path

    def read(self, operation: OperationKey, keys: Sequence[str]) -> dict[str, NDArray[Any]]:
        """Read the results of keys, in their order."""
        known = self._known_of(operation)
        if any(key not in known.place for key in keys):
            self._refresh(operation, known)
        absent = [key for key in keys if key not in known.place]
        if absent:
            raise InputError(
                f"has no result of {operation.name} for {len(absent)} of the {len(keys)} keys, the first is "
                f"{absent[0]}; compute them first",
                source=self.folder,
            )
        places = np.fromiter((known.place[key] for key in keys), dtype=np.int64, count=len(keys))
        return _gathered(known, operation, places)

    def _known_of(self, operation: OperationKey) -> _Known:
        if operation not in self._known:
            self._known[operation] = _Known(self.folder / f"{operation.name}-{operation.digest[:16]}")
            self._say_what_other_code_made(operation)
        return self._known[operation]

    def _say_what_other_code_made(self, operation: OperationKey) -> None:
        if self._known[operation].folder.is_dir():
            return
        wanted = json.loads(operation.description)
        for path in sorted(self.folder.glob(f"{operation.name}-*/{_OPERATION}")):
            try:
                found = json.loads(path.read_text(encoding="ascii"))
            except (OSError, ValueError, RecursionError):
                # for readers alone; every file of results says by itself what it is of
                continue
            if isinstance(found, dict) and found | {"code": wanted["code"]} == wanted:
                log.warning("the results in %s were made by other code, and are computed again", path.parent)

    def _refresh(self, operation: OperationKey, known: _Known) -> None:
        """Take in the files that have come since the last look."""
        if not known.folder.is_dir():
            return
        from shannon_game.inference.store import files  # noqa: PLC0415

        try:
            names = sorted(entry.name for entry in known.folder.iterdir())
        except OSError as problem:
            raise InputError(f"cannot be read: {problem.strerror or problem}", source=known.folder) from problem
        for name in names:
            if name in known.seen or name == _OPERATION:
                continue
            if name.startswith("."):
                _remove_abandoned(known.folder / name)
                continue
            path = known.folder / name
            if not _FILE_NAME.fullmatch(name):
                raise InputError("is no file of this store; move it away", source=path)
            keys = files.read_keys(path, operation)
            base = len(known.files) << _ROW_BITS
            for row, key in enumerate(keys):
                before = known.place.get(key)
                # of a key computed twice, every process takes the result in the file that is first by name
                if before is None or name < known.files[before >> _ROW_BITS].name:
                    known.place[key] = base + row
            known.files.append(path)
            known.seen.add(name)


def open_store(folder: Path | str) -> Store:
    """Open a store, or make one in a folder that is empty or not there yet."""
    folder = Path(folder).expanduser()
    marker = folder / _MARKER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not marker.exists():
            others = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
            # another process may have made the store since the first look
            if others and not marker.exists():
                raise InputError(
                    f"is no store and not empty (it holds {others[0]}); name a new or empty folder", source=folder
                )
            made = json.dumps({"format": _FORMAT, "schema_version": SCHEMA_VERSION}) + "\n"
            _write(marker, made.encode("ascii"))
        content = marker.read_bytes()
    except OSError as problem:
        raise InputError(f"cannot be used as a store: {problem.strerror or problem}", source=folder) from problem
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"is damaged ({problem}); a store begins with this file", source=marker) from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise InputError(f"does not say {_FORMAT!r}; the folder is no store", source=marker, field="format")
    if found.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"is {found.get('schema_version')!r}, this version of shannon-game reads {SCHEMA_VERSION}; name another "
            "folder",
            source=marker,
            field="schema_version",
        )
    return Store(folder)


def ragged(rows: Sequence[Sequence[Any] | NDArray[Any]]) -> NDArray[np.object_]:
    """Lay rows of unequal lengths out as the store takes them: one array of one-dimensional arrays."""
    array = np.empty(len(rows), dtype=object)
    for position, row in enumerate(rows):
        is_text = not isinstance(row, np.ndarray) and any(isinstance(value, str) for value in row)
        array[position] = np.array(row, dtype=object) if is_text else np.asarray(row)
    return array


def _write(path: Path, content: bytes | memoryview) -> None:
    """Write a file in one step: a reader sees the whole file or none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole(path) as partial, partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        raise InputError(
            f"cannot be written to: {problem.strerror or problem}; what is stored is kept, make room or name another "
            "store",
            source=path.parent,
        ) from problem


def _gathered(known: _Known, operation: OperationKey, places: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Rows of many files, put in the order asked for."""
    from shannon_game.inference.store import files  # noqa: PLC0415

    result: dict[str, NDArray[Any]] = {}
    file_numbers, rows = places >> _ROW_BITS, places & ((1 << _ROW_BITS) - 1)
    order = np.argsort(file_numbers, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(file_numbers[order])) + 1) if len(order) else []:
        number = int(file_numbers[group[0]])
        path = known.files[number]
        found = files.read_arrays(
            path, operation, verify=number not in known.verified, rows=rows[group].astype(np.intp)
        )
        known.verified.add(number)
        if not result:
            result = {
                name: np.empty((len(places), *array.shape[1:]), dtype=array.dtype) for name, array in found.items()
            }
        _check_alike(found, result, path)
        for name, array in found.items():
            result[name][group] = array
    return result


def _check_alike(found: Mapping[str, NDArray[Any]], wanted: Mapping[str, NDArray[Any]], path: Path) -> None:
    layout, expected = (
        {name: (array.dtype, array.shape[1:]) for name, array in arrays.items()} for arrays in (found, wanted)
    )
    if layout != expected:
        raise InputError(f"has arrays {layout}, other files of the operation have {expected}", source=path)


def _remove_abandoned(path: Path) -> None:
    """Remove what a killed process left half written; one that still writes has touched its file just now."""
    try:
        if ".partial" in path.name and time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
            path.unlink()
            log.info("removed %s, which a process that was stopped had not finished", path)
    except OSError:
        # finished, removed by another process, or of a store that can only be read
        pass
