"""What an import costs, and what a folder of code needs; pyproject.toml has the direction of imports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("estimators", "models", "inference", "experiments")


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


def at_import(tree: ast.Module) -> Iterator[str]:
    """Top-level packages that a module needs to be imported (not those in functions or for the type checker)."""
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or for_type_checker(node)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in skipped:
            yield from (name.split(".")[0] for name in imported(node))


def for_type_checker(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def needed_by(*folders: str) -> dict[str, set[str]]:
    """Packages that every module of some folders needs to be imported."""
    return {
        str(path.relative_to(ROOT)): set(at_import(ast.parse(path.read_text(encoding="utf-8"))))
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }


def test_every_folder_with_modules_is_a_package():
    """The reference has no page of a module in a folder that is none."""
    folders = {path.parent for package in FLOORS for path in (ROOT / package).rglob("*.py")}
    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_conf_has_no_code():
    assert [path.name for path in (ROOT / "conf").rglob("*.py")] == ["__init__.py"]
    assert list(imported(ast.parse((ROOT / "conf/__init__.py").read_text(encoding="utf-8")))) == []


def test_every_folder_of_code_has_a_link_in_the_package():
    links = {path.name: path.resolve() for path in (ROOT / "shannon_game").iterdir()}
    assert {name: ROOT / name for name in (*FLOORS, "conf")}.items() <= links.items()


def test_estimators_need_only_numpy_and_scipy():
    needed = set().union(*needed_by("estimators").values())
    assert needed - sys.stdlib_module_names == {"numpy", "scipy", "shannon_game"}


def test_torch_is_imported_nowhere_outside_functions():
    assert [path for path, needed in needed_by(*FLOORS).items() if {"torch", "transformers"} & needed] == []


def loaded_by(code: str) -> set[str]:
    """Packages that a fresh interpreter has after ``code``, above those of NumPy."""
    code = f"import sys, numpy; before = set(sys.modules); {code}; print(*set(sys.modules) - before)"
    # the variable makes lazy_loader import every name at once, to find errors early
    environment = {name: value for name, value in os.environ.items() if name != "EAGER_IMPORT"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.subprocess
def test_importing_loads_nothing_heavy():
    own = sys.stdlib_module_names | {"shannon_game"}
    assert loaded_by("import shannon_game") <= own
    assert loaded_by("from shannon_game import estimators") <= own | {"numpy"}
    others = loaded_by(
        "from shannon_game import inference, models; import shannon_game.inference.lm, shannon_game.inference.api"
    )
    assert not others & {"pymc", "arviz", "torch", "xarray", "pandas", "scipy", "httpx"}


@pytest.mark.subprocess
def test_importing_the_language_model_engine_loads_no_torch():
    modules = sorted(path.stem for path in (ROOT / "inference/lm").glob("*.py") if path.stem != "__init__")
    assert {"loading", "forward", "next_token", "words", "scoring", "stored"} <= set(modules)
    found = loaded_by("import " + ", ".join(f"shannon_game.inference.lm.{module}" for module in modules))
    heavy = {"transformers", "tokenizers", "safetensors", "huggingface_hub", "gguf"}
    assert not found & {"torch", "pymc", "xarray", "pandas", *heavy}


@pytest.mark.subprocess
def test_the_papers_need_no_pymc():
    found = loaded_by(
        "import importlib; from shannon_game.experiments.papers.reproduce.experiment import OWN_CODE;"
        " [importlib.import_module(module) for module, *_ in OWN_CODE.values()]"
    )
    assert "sklearn" not in found
    assert not found & {"pymc", "pytensor", "torch"}


@pytest.mark.subprocess
def test_a_folder_with_packages_of_our_names_is_no_hindrance(tmp_path):
    for name in (*FLOORS, "conf"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise RuntimeError('not this one')\n", encoding="utf-8")
    code = (
        "import sys; from pathlib import Path; import shannon_game as sg\n"
        "from shannon_game import inference, models, perplexity\n"
        "import shannon_game.experiments.run\n"
        f"assert Path(sg.estimators.__file__).resolve() == Path({str(ROOT)!r}, 'estimators/__init__.py')\n"
        f"assert not set({FLOORS}) & set(sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
