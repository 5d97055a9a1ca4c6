"""What ``models`` and ``inference`` offer: each name is documented as numpydoc says, and costs nothing at import."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from typing import Any

import pytest

import inference
import inference.api
import inference.lm
import models
from estimators.errors import InputError
from tests.experiments.command import ROOT
from tests.public_names import public, public_functions, sections

PACKAGES = (models, inference, inference.lm, inference.api)
FUNCTIONS = {
    f"{package.__name__}.{name}": function
    for package in PACKAGES
    for name, function in public_functions(package).items()
}
CLASSES = {
    f"{package.__name__}.{name}": what
    for package in PACKAGES
    for name, what in public(package).items()
    if inspect.isclass(what)
}


def described(section: str) -> set[str]:
    """Names that a section explains: `a, b : type` or `a`."""
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for line in lines for name in line.partition(" : ")[0].split(",")}


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_a_summary_line(name: str) -> None:
    first, *rest = (inspect.getdoc({**FUNCTIONS, **CLASSES}[name]) or "").split("\n")
    assert first.endswith((".", ":"))
    assert not rest or rest[0] == ""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_they_take_give_and_refuse(name: str) -> None:
    function = FUNCTIONS[name]
    its = sections(inspect.getdoc(function) or "")
    signature = inspect.signature(function)
    assert not set(signature.parameters) - described(its.get("Parameters", ""))
    if signature.return_annotation not in (None, "None"):
        assert its.keys() & {"Returns", "Yields"}
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(inspect.getsource(function))))
    assert not raises or "Raises" in its


@pytest.mark.parametrize("name", [name for name, what in CLASSES.items() if dataclasses.is_dataclass(what)])
def test_dataclasses_explain_every_field(name: str) -> None:
    found = sections(inspect.getdoc(CLASSES[name]) or "")
    explained = described(found.get("Parameters", "")) | described(found.get("Attributes", ""))
    assert not {field.name for field in dataclasses.fields(CLASSES[name])} - explained


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_no_name_is_also_a_module(package: Any) -> None:
    """Importing such a module would put itself in the place of the function of the same name."""
    names = {path.name for path in pkgutil.iter_modules(package.__path__)}
    assert not names & public(package).keys()


@pytest.mark.subprocess
def test_importing_loads_nothing_heavy() -> None:
    kinds = ", ".join(package.__name__ for package in PACKAGES)
    heavy = ("pymc", "arviz", "torch", "xarray", "pandas", "scipy", "httpx")
    code = f"import sys, {kinds}; print([name for name in {heavy} if name in sys.modules])"
    # the variable makes lazy_loader import every name at once, to find errors early
    environment = {name: value for name, value in os.environ.items() if name != "EAGER_IMPORT"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


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
