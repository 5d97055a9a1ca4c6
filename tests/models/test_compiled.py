"""What Numba keeps on disk is taken only where all that a function is made of is the same, and its files are whole."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

KERNEL = """
from shannon_game.models.compiled import compiled
from {constants} import FACTOR, twice

@compiled
def kernel(x):
    return twice(FACTOR * x)
"""
CONSTANTS = """
from shannon_game.models.compiled import compiled
FACTOR = {factor}

@compiled
def twice(x):
    return {times} * x
"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a kernel and the module that it takes a constant and a function from, and import both anew."""
    # beside the file, wherever this machine keeps machine code
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_kernel.py").write_text(KERNEL.format(constants="own_constants"))

    def imported(*, factor: float = 3.0, times: float = 2.0) -> Any:
        (tmp_path / "own_constants.py").write_text(CONSTANTS.format(factor=factor, times=times))
        for name in ("own_kernel", "own_constants"):
            sys.modules.pop(name, None)
            for left in tmp_path.glob(f"__pycache__/{name}.*.pyc"):
                left.unlink()
        importlib.invalidate_caches()
        return importlib.import_module("own_kernel").kernel

    return imported


def hits(function: Any) -> int:
    return sum(function.stats.cache_hits.values())


def test_a_kernel_is_compiled_anew_where_another_file_changed_what_it_takes(kernel: Any) -> None:
    assert kernel()(1.0) == 6.0
    again = kernel()
    assert (again(1.0), hits(again)) == (6.0, 1)
    assert kernel(factor=5.0)(1.0) == 10.0
    assert kernel(factor=5.0, times=3.0)(1.0) == 15.0


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_machine_code_is_not_run(kernel: Any, tmp_path: Path, suffix: str) -> None:
    kernel()(1.0)
    for path in tmp_path.glob(f"__pycache__/own_kernel*{suffix}"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    again = kernel()
    assert (again(1.0), hits(again)) == (6.0, 0)
    once_more = kernel()
    assert (once_more(1.0), hits(once_more)) == (6.0, 1)
