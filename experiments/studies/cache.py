"""Arrays kept between runs in one netCDF file: never stale, never half-written, never trusted when damaged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
from numpy.typing import NDArray

from estimators.code_identity import code_hash, package_version
from estimators.content import content_digest
from experiments.studies.parsing import Note
from inference.disk import whole

__all__ = [
    "Cached",
    "DamagedCacheError",
    "arrays_from_cached",
    "cached_from_arrays",
    "join_strings",
    "read_cache",
    "split_strings",
    "through_cache",
    "write_cache",
]


class DamagedCacheError(Exception):
    """The cache file exists and cannot be trusted; the message says why."""


@dataclass(frozen=True)
class Cached:
    """What a cache file holds: arrays of numbers by name, and JSON-like values by name."""

    arrays: Mapping[str, NDArray[Any]]
    values: Mapping[str, Any]


def through_cache(path: Path, key: str, make: Callable[[], Cached]) -> tuple[Cached, list[Note]]:
    """Read a cache file, or make its contents and write it.

    A file that is damaged, or a folder that cannot be written to, costs time and is noted.
    """
    notes = []
    made_by = [code_hash("estimators", "experiments.studies"), *map(package_version, ("numpy", "pandas"))]
    key = content_digest([key, made_by])
    try:
        found = read_cache(path, key)
        if found is not None:
            return found, []
    except DamagedCacheError as error:
        notes.append(Note(f"the cache file {path.name} was damaged ({error}) and was made again", 1, "warning"))
    made = make()
    try:
        write_cache(path, key, made)
    except OSError as error:
        text = f"the cache folder {path.parent} cannot be written to ({error.strerror or error}); nothing was cached"
        notes.append(Note(text, None, "warning"))
    return made, notes


def read_cache(path: Path, key: str) -> Cached | None:
    """Read a cache file."""
    if not path.is_file():
        return None
    try:
        with h5py.File(path, "r") as bare:
            bare.attrs.get("_nc3_strict")  # h5netcdf complains once more of what HDF5 refuses
        with h5netcdf.File(path, "r") as file:
            if file.attrs["key"] != key:
                return None
            arrays = {name: np.asarray(variable[...]) for name, variable in file.variables.items()}
            values = str(file.attrs["values"])
            expected = file.attrs["checksum"]
    except Exception as error:  # a damaged HDF5 file can raise nearly anything, and none of it is worth stopping for
        raise DamagedCacheError(f"{type(error).__name__}: {error}") from error
    if _checksum(key, arrays, values) != expected:
        raise DamagedCacheError("its contents do not match its checksum")
    return Cached(arrays, json.loads(values))


def write_cache(path: Path, key: str, cached: Cached) -> None:
    """Write a cache file, replacing an older one in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = json.dumps(cached.values)
    with whole(path) as partial, h5netcdf.File(partial, "w") as file:
        for name, array in cached.arrays.items():
            dims = tuple(f"{name}_{axis}" for axis in range(array.ndim))
            file.dimensions.update(dict(zip(dims, array.shape, strict=True)))
            file.create_variable(name, dims, data=np.ascontiguousarray(array))
        file.attrs.update({"key": key, "values": values, "checksum": _checksum(key, cached.arrays, values)})


def join_strings(strings: Iterable[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Put strings end to end as bytes, with the position at which each one ends.

    HDF5's own strings stop at a null character and refuse half a surrogate pair; tokens may hold both.
    """
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.cumsum([len(part) for part in encoded], dtype=np.int64)
    return np.frombuffer(b"".join([*encoded, b"\0"]), dtype=np.uint8), ends


def split_strings(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.object_]:
    """Undo :func:`join_strings`; the result holds ``str`` objects."""
    joined = text.tobytes()
    strings = np.empty(len(ends), dtype=object)
    start = 0
    for position, end in enumerate(ends.tolist()):
        strings[position] = joined[start:end].decode("utf-8", "surrogatepass")
        start = end
    return strings


def cached_from_arrays(arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> Cached:
    """Lay arrays of numbers and of strings out for a cache file."""
    kept: dict[str, NDArray[Any]] = {}
    strings = []
    for name, array in arrays.items():
        if array.dtype.kind == "O":
            strings.append(name)
            kept[f"{name}_text"], kept[f"{name}_ends"] = join_strings(array.tolist())
        else:
            kept[name] = array
    return Cached(kept, {**values, "strings": strings})


def arrays_from_cached(cached: Cached) -> dict[str, NDArray[Any]]:
    """Undo :func:`cached_from_arrays`."""
    strings = cached.values["strings"]
    parts = {f"{name}_{part}" for name in strings for part in ("text", "ends")}
    arrays: dict[str, NDArray[Any]] = {name: array for name, array in cached.arrays.items() if name not in parts}
    for name in strings:
        arrays[name] = split_strings(cached.arrays[f"{name}_text"], cached.arrays[f"{name}_ends"])
    return arrays


def _checksum(key: str, arrays: Mapping[str, NDArray[Any]], values: str) -> str:
    digest = hashlib.sha256(f"{key}\n{values}\n".encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
