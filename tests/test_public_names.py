"""What users import: each public name is documented as numpydoc says, hides no other, and costs little at import."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest

import shannon_game.inference.api
import shannon_game.inference.lm
from shannon_game import estimators, inference, models
from shannon_game.estimators.errors import InputError
from tests.experiments.command import ROOT
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


def test_constants_have_a_docstring_in_their_module() -> None:
    """Sphinx and editors show the string after an assignment; a constant of the public API has one."""
    constants = {name for kind in KINDS for name, what in public(kind).items() if not callable(what)}
    documented = set()
    for path in (ROOT / "estimators").rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for before, after in pairwise(body):
            target = before.targets[0] if isinstance(before, ast.Assign) else getattr(before, "target", None)
            is_doc = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(target, ast.Name) and is_doc:
                documented.add(target.id)
    assert constants <= documented


def loaded_by(code: str) -> set[str]:
    """Modules that a fresh interpreter has after ``code``, above those of NumPy."""
    code = f"import sys, numpy; before = set(sys.modules); {code}; print(*set(sys.modules) - before)"
    # the variable makes lazy_loader import every name at once, to find errors early
    environment = {name: value for name, value in os.environ.items() if name != "EAGER_IMPORT"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.subprocess
def test_importing_loads_nothing_heavy() -> None:
    assert loaded_by("import shannon_game") - {"shannon_game"} <= sys.stdlib_module_names
    assert loaded_by("from shannon_game import estimators") - {"shannon_game"} <= sys.stdlib_module_names | {"numpy"}
    others = loaded_by(
        "from shannon_game import inference, models; import shannon_game.inference.lm, shannon_game.inference.api"
    )
    assert not others & {"pymc", "arviz", "torch", "xarray", "pandas", "scipy", "httpx"}


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name="pymc")

    monkeypatch.setattr(importlib, "import_module", absent)
    for package, name in ((models, "ard_model"), (inference, "fit_participants")):
        with pytest.raises(InputError, match=rf"{package.__name__}\.{name}: pymc not installed.*\[bayes\]"):
            package.__getattr__(name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="fit_everything"):
        inference.fit_everything  # noqa: B018
