"""The direction of imports: conf -> experiments -> inference -> models -> estimators, and what estimators may cost."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("estimators", "models", "inference", "experiments")
HEAVY = ("torch", "pymc", "hydra", "omegaconf", "matplotlib", "pandas", "xarray", "scipy.stats")


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            yield node.module, node.lineno


def upward(package: str, source: str) -> list[str]:
    """Imports in a module of ``package`` that reach a higher floor."""
    above = (*FLOORS[FLOORS.index(package) + 1 :], "conf", "tests")
    return [f"line {line}: {name}" for name, line in imported(ast.parse(source)) if name.split(".")[0] in above]


def at_import(tree: ast.Module) -> Iterator[str]:
    """Top-level packages that a module needs to be imported (not those in functions or for the type checker)."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    kept = [node for node in ast.walk(tree) if id(node) not in skipped]
    for node in kept:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (name.split(".")[0] for name, _ in imported(node))


@pytest.mark.parametrize("package", FLOORS)
def test_imports_point_down(package):
    modules = sorted((ROOT / package).rglob("*.py"))
    assert modules
    found = {str(path.relative_to(ROOT)): upward(package, path.read_text(encoding="utf-8")) for path in modules}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_conf_has_no_code():
    assert [path.name for path in (ROOT / "conf").rglob("*.py")] == ["__init__.py"]
    assert list(imported(ast.parse((ROOT / "conf/__init__.py").read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("estimators", "import models.reports"),
        ("estimators", "def f():\n    from experiments import outputs"),
        ("models", "from inference import posterior"),
        ("inference", "import numpy, experiments"),
        ("experiments", "from tests.oracles import loops"),
    ],
)
def test_the_check_sees_an_upward_import(package, source):
    assert upward(package, source)


def test_estimators_need_only_numpy_and_scipy():
    needed = {
        (path.name, name)
        for path in (ROOT / "estimators").rglob("*.py")
        for name in at_import(ast.parse(path.read_text(encoding="utf-8")))
    }
    allowed = {"numpy", "scipy", "estimators", *sys.stdlib_module_names}
    assert {pair for pair in needed if pair[1] not in allowed} == set()
    assert {"numpy", "estimators"} <= {name for _, name in needed}


def test_importing_estimators_loads_nothing_heavy():
    code = f"import sys, estimators; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_language_model_engine_loads_no_torch():
    modules = sorted(path.stem for path in (ROOT / "inference/lm").glob("*.py") if path.stem != "__init__")
    assert {"loading", "forward", "next_token", "words", "scoring", "stored"} <= set(modules)
    imports = ", ".join(f"inference.lm.{module}" for module in modules)
    heavy = (
        "torch",
        "transformers",
        "tokenizers",
        "safetensors",
        "huggingface_hub",
        "gguf",
        "pymc",
        "xarray",
        "pandas",
    )
    code = f"import sys, {imports}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_torch_is_imported_nowhere_outside_functions():
    wrong = {
        str(path.relative_to(ROOT))
        for package in FLOORS
        for path in (ROOT / package).rglob("*.py")
        if {"torch", "transformers"} & set(at_import(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert wrong == set()
