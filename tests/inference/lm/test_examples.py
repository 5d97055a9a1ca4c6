"""The examples in the docstrings of ``shannon_game.inference.lm`` run as they stand, in a folder that holds a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shannon_game.inference import lm
from tests.public_names import public_functions, run_example

FUNCTIONS = public_functions(lm)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_runs(
    name: str, folder_of: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny").symlink_to(folder_of("gpt2"))
    monkeypatch.chdir(tmp_path)
    run_example(FUNCTIONS[name])
