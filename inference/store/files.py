"""The files of a store: one Arrow IPC file a batch, immutable, checked by its own name.

A file is one record batch. Column ``key`` holds the keys; every other column is an array with one row per key: shape
(n,) of its own type, shape (n, a, ...) as nested fixed-size lists, rows of unequal lengths as lists. The schema's
metadata ``shannon-game`` is JSON with format, version, the operation and what else the writer wants to be known. The
file's name is the SHA-256 of its bytes, so that a damaged file does not fit it, and two processes that write it do no
harm. No database: the file systems that a cluster's jobs share have no locks to rely on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.inference.store.keys import SCHEMA_VERSION, OperationKey, canonical_json

_FORMAT = "shannon-game results"
_METADATA = b"shannon-game"
_KEY = "key"
_NUMERIC = "fiub"


def read_keys(path: Path, operation: OperationKey) -> list[str]:
    """Read the keys of a file without its arrays, and check that the file belongs to the operation."""
    with _named(path), pa.memory_map(str(path)) as source:
        batch = _open(source, path, operation)
        keys: list[str] = batch.column(_KEY).to_pylist()
    return keys


def read_arrays(
    path: Path,
    operation: OperationKey,
    *,
    verify: bool = True,
    rows: NDArray[np.intp] | None = None,
) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file, after checking its bytes against its name."""
    with _named(path), pa.memory_map(str(path)) as source:
        if verify and hashlib.sha256(source.read_buffer()).hexdigest() != path.stem:
            raise _damaged(path, "its bytes have another SHA-256 than its name says")
        source.seek(0)
        batch = _open(source, path, operation)
        shapes = json.loads(batch.schema.metadata[_METADATA])["shapes"]
        found = {}
        for name in (name for name in batch.schema.names if name != _KEY):
            column = batch.column(name)
            found[name] = _decode(column if rows is None else column.take(pa.array(rows)), shapes[name])
        return found


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn what a damaged or vanished file raises into an error that names it."""
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError as problem:
        raise InputError("was removed while the store was in use", source=path) from problem
    except PermissionError as problem:
        raise InputError("cannot be read: permission denied", source=path) from problem
    except Exception as problem:
        # Arrow raises many kinds for a file that is cut off or changed, and none says more than that
        raise _damaged(path, f"{type(problem).__name__}: {problem}") from problem


def _damaged(path: Path, why: str) -> InputError:
    return InputError(
        f"is damaged or no file of this store ({why}); move it away, its results are then computed again", source=path
    )


def _open(source: Any, path: Path, operation: OperationKey) -> pa.RecordBatch:
    reader = pa.ipc.open_file(source)
    header = json.loads((reader.schema.metadata or {}).get(_METADATA, b"null"))
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise InputError("is an Arrow file, but was not written by a store; move it away", source=path)
    if header.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"is {header.get('schema_version')!r}, this version of shannon-game reads {SCHEMA_VERSION}; use the "
            "version that wrote it, or another store",
            source=path,
            field="schema_version",
        )
    if canonical_json(header.get("operation")) != operation.description:
        raise InputError(
            f"holds results of another operation, {canonical_json(header.get('operation'))}; move it away", source=path
        )
    if reader.num_record_batches != 1:
        raise _damaged(path, f"it has {reader.num_record_batches} record batches, should be 1")
    return reader.get_batch(0)


def encode(
    operation: OperationKey, keys: Sequence[str], arrays: Mapping[str, NDArray[Any]], provenance: Mapping[str, Any]
) -> memoryview:
    """Content of a file of results."""
    columns = [pa.array(list(keys), pa.string()), *(_column(name, array) for name, array in arrays.items())]
    shapes = {name: "ragged" if _is_ragged(array) else list(array.shape[1:]) for name, array in arrays.items()}
    header = {
        "format": _FORMAT,
        "schema_version": SCHEMA_VERSION,
        "operation": json.loads(operation.description),
        "shapes": shapes,
        "provenance": dict(provenance),
    }
    schema = pa.schema(
        [pa.field(name, column.type) for name, column in zip((_KEY, *shapes), columns, strict=True)],
        metadata={_METADATA: canonical_json(header, field="provenance")},
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return memoryview(sink.getvalue())


def _is_ragged(array: NDArray[Any]) -> bool:
    return array.dtype == object and array.ndim == 1 and isinstance(array[0], np.ndarray)


def _column(name: str, array: NDArray[Any]) -> pa.Array:
    if _is_ragged(array):
        return _ragged_column(name, array)
    if 0 in array.shape:
        raise InputError(f"has shape {array.shape}; no dimension may be empty", field=name)
    column = _flat_column(name, array.ravel())
    for size in array.shape[:0:-1]:
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _flat_column(name: str, values: NDArray[Any]) -> pa.Array:
    if values.dtype.kind in _NUMERIC:
        # Arrow is little-endian; NaN stays NaN
        return pa.array(values.astype(values.dtype.newbyteorder("<"), copy=False))
    try:
        return pa.array(values.tolist(), pa.string())
    except UnicodeEncodeError as problem:
        raise InputError(f"holds half of a surrogate pair ({problem}), which UTF-8 cannot", field=name) from None


def _ragged_column(name: str, array: NDArray[Any]) -> pa.Array:
    parts = array.tolist()
    ends = np.cumsum([0, *(len(part) for part in parts)])
    joined = np.concatenate(parts)
    values = _flat_column(name, joined) if joined.size or joined.dtype.kind in _NUMERIC else pa.array([], pa.string())
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), values)


def _decode(column: pa.Array, shape: str | list[int]) -> NDArray[Any]:
    if shape == "ragged":
        offsets = column.offsets.to_numpy()
        # of all rows, the first of which need not begin at 0
        values = _values(column.values)
        rows = np.empty(len(column), dtype=object)
        for position, (start, end) in enumerate(pairwise(offsets)):
            rows[position] = values[start:end].copy()
        return rows
    n_rows = len(column)
    for _ in shape:
        column = column.flatten()
    return _values(column).reshape(n_rows, *shape)


def _values(column: pa.Array) -> NDArray[Any]:
    if pa.types.is_string(column.type):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_pylist()
        return values
    # a copy, as the memory belongs to the file
    numbers: NDArray[Any] = np.array(column.to_numpy(zero_copy_only=False))
    return numbers
