"""What ``import estimators`` offers: every name is there, documented as numpydoc says, and costs little."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from itertools import pairwise

import pytest

import estimators
from tests.experiments.command import ROOT

KINDS = [name for name in estimators.__all__ if inspect.ismodule(getattr(estimators, name))]
PUBLIC = {
    f"{kind}.{name}": getattr(getattr(estimators, kind), name)
    for kind in KINDS
    for name in getattr(estimators, kind).__all__
}
NAMES = [name for kind in KINDS for name in getattr(estimators, kind).__all__]
FUNCTIONS = [name for name, what in PUBLIC.items() if inspect.isfunction(what)]
CLASSES = [name for name, what in PUBLIC.items() if inspect.isclass(what)]


def sections(doc: str) -> dict[str, str]:
    """Text of every section of a docstring, by its title."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(section: str) -> set[str]:
    """Names that a section explains: `a, b : type` or `a`."""
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for line in lines for name in line.partition(" : ")[0].split(",")}


def test_every_name_is_there_once() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len(NAMES) > 100


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_a_summary_line(name: str) -> None:
    doc = inspect.getdoc(PUBLIC[name])
    assert doc
    first, *rest = doc.split("\n")
    assert first.endswith(".")
    assert not rest or rest[0] == ""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_say_what_they_take_give_and_refuse(name: str) -> None:
    function = PUBLIC[name]
    doc = inspect.getdoc(function) or ""
    its = sections(doc)
    signature = inspect.signature(function)
    if signature.parameters:
        missing = set(signature.parameters) - described(its.get("Parameters", ""))
        assert not missing
    if signature.return_annotation not in (None, "None"):
        assert "Returns" in its
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(inspect.getsource(function))))
    assert not raises or "Raises" in its


@pytest.mark.parametrize("name", [name for name in CLASSES if dataclasses.is_dataclass(PUBLIC[name])])
def test_dataclasses_explain_every_field(name: str) -> None:
    its = PUBLIC[name]
    found = sections(inspect.getdoc(its) or "")
    explained = described(found.get("Parameters", "")) | described(found.get("Attributes", ""))
    assert not {field.name for field in dataclasses.fields(its) if field.repr} - explained


def test_constants_have_a_docstring_in_their_module() -> None:
    """Sphinx and editors show the string after an assignment; a constant of the public API has one."""
    constants = {name.partition(".")[2] for name in PUBLIC.keys() - {*FUNCTIONS, *CLASSES}}
    documented = set()
    for path in (ROOT / "estimators").rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for before, after in pairwise(body):
            target = before.targets[0] if isinstance(before, ast.Assign) else getattr(before, "target", None)
            is_doc = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if isinstance(target, ast.Name) and is_doc:
                documented.add(target.id)
    assert constants <= documented


@pytest.mark.subprocess
def test_importing_costs_little() -> None:
    """Besides NumPy, this package and twenty modules of the standard library: .1 s on an idle machine."""
    code = "import sys, numpy; before = set(sys.modules); import estimators; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    others = [name for name in done.stdout.split() if name.partition(".")[0] != "estimators"]
    assert {name.partition(".")[0] for name in others} <= sys.stdlib_module_names | {"numpy"}
    assert len(others) < 40
