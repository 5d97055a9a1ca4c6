"""What the tests of public names share: a package's functions, and the sections and examples of their docstrings."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytensor

from shannon_game import estimators, models


def public(package: ModuleType) -> dict[str, Any]:
    """Public names of a package that are no modules."""
    found = {name: getattr(package, name) for name in dir(package) if not name.startswith("_")}
    return {name: what for name, what in found.items() if not inspect.ismodule(what)}


def public_functions(package: ModuleType) -> dict[str, Callable[..., Any]]:
    """Functions among them, without what wraps them (a cache)."""
    found = {name: inspect.unwrap(what) for name, what in public(package).items() if callable(what)}
    return {name: what for name, what in found.items() if inspect.isfunction(what)}


def sections(doc: str) -> dict[str, str]:
    """Text of every section of a docstring, by its title."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def example_of(function: Callable[..., Any]) -> str:
    """Examples of a docstring, "" where it has none."""
    return sections(inspect.getdoc(function) or "").get("Examples", "")


def run_example(function: Callable[..., Any]) -> None:
    """Run the example of a docstring, without a compiler where nothing is sampled."""
    text = example_of(function)
    mode = "FAST_COMPILE" if "tune=" not in text else pytensor.config.mode
    kinds = {name: getattr(estimators, name) for name in estimators.__all__}
    given = {"np": np, "models": models} | kinds
    test = doctest.DocTestParser().get_doctest(text, given, function.__qualname__, None, 0)
    said: list[str] = []
    with pytensor.config.change_flags(mode=mode):
        result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert result.attempted
    assert not result.failed, "".join(said)
