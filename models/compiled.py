"""Functions that Numba compiles, and keeps on disk, where other chains run meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from shannon_game.estimators.content import content_digest, file_sha256

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile with Numba; another process takes what is on disk if all that the function is made of is the same."""
    made = njit(nogil=True, error_model="numpy")(function)
    made._cache = _Cache(function)
    return cast("Function", made)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's files, each with its checksum beside it: machine code that was damaged would be run."""

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _save_index(self, overloads: Any) -> None:
        super()._save_index(overloads)
        _sum_of(self._index_path).write_text(file_sha256(Path(self._index_path)), encoding="ascii")

    def _load_data(self, name: str) -> Any:
        if not _is_whole(self._data_path(name)):
            raise FileNotFoundError(name)  # Numba then compiles
        return super()._load_data(name)

    def _save_data(self, name: str, data: Any) -> None:
        super()._save_data(name, data)
        _sum_of(self._data_path(name)).write_text(file_sha256(Path(self._data_path(name))), encoding="ascii")


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's own knows the file of a function, and not the constants and functions that it takes from others."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    @cached_property
    def _content(self) -> str:
        return content_digest(self._py_func)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), self._content)


def _sum_of(path: str) -> Path:
    return Path(f"{path}.sha256")


def _is_whole(path: str) -> bool:
    try:
        return _sum_of(path).read_text(encoding="ascii") == file_sha256(Path(path))
    except (OSError, ValueError):
        return False
