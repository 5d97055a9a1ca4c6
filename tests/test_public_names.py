"""What users import: each public name is documented, and hides no other."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import shannon_game.inference.api
import shannon_game.inference.lm
from shannon_game import estimators, inference, models
from shannon_game.estimators.errors import InputError
from tests.public_names import example_of, public, public_functions, sections

KINDS = [getattr(estimators, name) for name in estimators.__all__ if inspect.ismodule(getattr(estimators, name))]
LAZY = [models, inference, shannon_game.inference.lm, shannon_game.inference.api]


def described(section: str) -> set[str]:
    """Names that a section explains: `a, b : type` or `a`."""
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for line in lines for name in line.partition(" : ")[0].split(",")}


def wrong(what: Any) -> Iterator[str]:
    """What the docstring of a public function or class lacks, or says of no parameter or field.

    A parameter or result whose name and type say all needs no text.
    """
    doc = inspect.getdoc(what) or ""
    its = sections(doc)
    if not doc:
        yield "summary"
    said = described(its.get("Parameters", "")) | described(its.get("Attributes", ""))
    if inspect.isfunction(what):
        yield from said - set(inspect.signature(what).parameters)
    elif dataclasses.is_dataclass(what):
        yield from said - {field.name for field in dataclasses.fields(what)}


@pytest.mark.parametrize("package", [*KINDS, *LAZY], ids=lambda package: package.__name__)
def test_every_name_is_documented(package: ModuleType) -> None:
    classes = {name: what for name, what in public(package).items() if inspect.isclass(what)}
    documented = public_functions(package) | classes
    assert documented
    assert {name: gaps for name, what in documented.items() if (gaps := sorted(wrong(what)))} == {}


@pytest.mark.parametrize("package", LAZY, ids=lambda package: package.__name__)
def test_no_name_is_also_a_module(package: ModuleType) -> None:
    """Importing such a module would put itself in the place of the function of the same name."""
    assert not {path.name for path in pkgutil.iter_modules(package.__path__)} & public(package).keys()


@pytest.mark.parametrize(
    "package", [models, inference, shannon_game.inference.lm], ids=lambda package: package.__name__
)
def test_every_function_has_an_example(package: ModuleType) -> None:
    assert [name for name, function in public_functions(package).items() if not example_of(function)] == []


def test_estimators_offer_a_name_once() -> None:
    names = [name for kind in KINDS for name in public(kind)]
    assert len(set(names)) == len(names)


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name="pymc")

    monkeypatch.setattr(importlib, "import_module", absent)
    for package, name in ((models, "ard_model"), (inference, "fit_participants")):
        with pytest.raises(InputError, match=rf"{package.__name__}\.{name}: pymc not installed.*\[bayes\]"):
            package.__getattr__(name)
