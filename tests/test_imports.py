"""The direction of imports: conf -> experiments -> inference -> models -> estimators.

Kinds of study do not import each other, no import goes in a circle, and importing estimators costs little.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("estimators", "models", "inference", "experiments")
KINDS = ("comparison", "cloze", "guesses", "rankings", "bets", "documents")
# rooms of experiments that may import every kind, and that nothing else imports
ABOVE = ("papers", "planning", "collect", "first_steps")
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
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or for_type_checker(node)
        for inner in ast.walk(node)
    }
    kept = [node for node in ast.walk(tree) if id(node) not in skipped]
    for node in kept:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (name.split(".")[0] for name, _ in imported(node))


def kind_of(module: str) -> str | None:
    """Kind of study that a module belongs to; those above them are of their own, shared rooms have none."""
    parts = module.split(".")
    place = 2 if parts[:2] == ["experiments", "studies"] else 1
    room = parts[place] if len(parts) > place and parts[0] in FLOORS else None
    # the loader of what collect stored gives studies of every kind
    room = "collect" if (place, room) == (2, "collected") else room
    return room if room in KINDS or (parts[0] == "experiments" and room in ABOVE) else None


def other_kinds(module: str, source: str) -> set[str]:
    """Kinds that a module imports and may not: the rooms above see every kind, documents are open to all kinds."""
    own = kind_of(module)
    if module in FLOORS:
        return set()
    found = {kind_of(name) for name in imported_names(ast.parse(source))} - {None, own}
    if own in ABOVE:
        return found & set(ABOVE)
    return found - {"documents"} if own else found


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Every imported name in full: ``from shannon_game.models import cloze`` is ``shannon_game.models.cloze``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def without_annotations(source: str) -> ast.Module:
    """Drop what a module imports for the type checker only: no import that runs depends on it."""
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if not for_type_checker(node)]
    return tree


def for_type_checker(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def modules() -> dict[str, Path]:
    """Every module of the project by its dotted name."""
    paths = [path for package in FLOORS for path in (ROOT / package).rglob("*.py")]
    dotted = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths}
    return {name.removesuffix(".__init__"): path for path, name in dotted.items()}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules on or behind a circle: what is left when all that import no other one are taken away, again and again."""
    left = {module: set(needed) for module, needed in graph.items()}
    while free := {module for module, needed in left.items() if not needed & left.keys()}:
        left = {module: needed for module, needed in left.items() if module not in free}
    return sorted(left)


@pytest.mark.parametrize("package", FLOORS)
def test_imports_point_down(package):
    modules = sorted((ROOT / package).rglob("*.py"))
    assert modules
    found = {str(path.relative_to(ROOT)): upward(package, path.read_text(encoding="utf-8")) for path in modules}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_every_folder_with_modules_is_a_package():
    """The reference has no page of a module in a folder that is none."""
    folders = {path.parent for package in FLOORS for path in (ROOT / package).rglob("*.py")}
    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_conf_has_no_code():
    assert [path.name for path in (ROOT / "conf").rglob("*.py")] == ["__init__.py"]
    assert list(imported(ast.parse((ROOT / "conf/__init__.py").read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("estimators", "import shannon_game.models.reports"),
        ("estimators", "def f():\n    from shannon_game.experiments import outputs"),
        ("models", "from shannon_game.inference import posterior"),
        ("inference", "import numpy, experiments"),
        ("experiments", "from tests.oracles import loops"),
    ],
)
def test_the_check_sees_an_upward_import(package, source):
    assert upward(package, source)


def test_kinds_of_study_do_not_import_each_other():
    found = {
        (str(path.relative_to(ROOT)), kind)
        for module, path in modules().items()
        for kind in other_kinds(module, path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    ("module", "source", "kinds"),
    [
        (
            "shannon_game.models.guesses.accuracy",
            "from shannon_game.estimators.comparison import HUMAN",
            {"comparison"},
        ),
        ("shannon_game.models.guesses.accuracy", "def f():\n    from shannon_game.models import cloze", {"cloze"}),
        (
            "shannon_game.experiments.studies.guesses.table",
            "import shannon_game.experiments.studies.comparison.file",
            {"comparison"},
        ),
        (
            "shannon_game.inference.store.store",
            "from shannon_game.estimators.documents import document_tokens",
            {"documents"},
        ),
        ("shannon_game.experiments.cloze.tvd", "from shannon_game.experiments.papers import published", {"papers"}),
        ("shannon_game.experiments.cloze.tvd", "from shannon_game.experiments.planning import points", {"planning"}),
        (
            "shannon_game.experiments.planning.games",
            "from shannon_game.experiments.papers import published",
            {"papers"},
        ),
        ("shannon_game.experiments.planning.games", "from shannon_game.estimators import bets, cloze", set()),
        (
            "shannon_game.estimators.documents.study",
            "from shannon_game.estimators.cloze.study import SAMPLES",
            {"cloze"},
        ),
        (
            "shannon_game.estimators.guesses.study",
            "from shannon_game.estimators.documents import document_tokens",
            set(),
        ),
        ("shannon_game.experiments.papers.published", "from shannon_game.estimators import cloze, comparison", set()),
        (
            "shannon_game.experiments.collect.games.cloze",
            "from shannon_game.estimators import cloze, comparison",
            set(),
        ),
        (
            "shannon_game.experiments.studies.collected.cloze",
            "import shannon_game.experiments.collect, shannon_game.estimators.cloze",
            set(),
        ),
        (
            "shannon_game.experiments.collect.server",
            "from shannon_game.experiments.papers import published",
            {"papers"},
        ),
        (
            "shannon_game.experiments.studies.cloze.table",
            "from shannon_game.experiments.collect import tables",
            {"collect"},
        ),
        ("shannon_game.experiments.studies.cloze.provo", "from shannon_game.estimators.cloze import words", set()),
        ("estimators", "from shannon_game.estimators import cloze", set()),
    ],
)
def test_the_check_sees_another_kind(module, source, kinds):
    assert other_kinds(module, source) == kinds


def test_no_circle_of_imports():
    there = modules()
    graph = {}
    for module, path in there.items():
        names = imported_names(without_annotations(path.read_text(encoding="utf-8")))
        graph[module] = {name if name in there else name.rpartition(".")[0] for name in names} - {module}
    assert circle(graph) == []


def test_the_check_sees_a_circle():
    assert circle({"a": {"b"}, "b": {"c", "os"}, "c": {"a"}, "d": set()}) == ["a", "b", "c"]


def test_estimators_need_only_numpy_and_scipy():
    needed = {
        (path.name, name)
        for path in (ROOT / "estimators").rglob("*.py")
        for name in at_import(ast.parse(path.read_text(encoding="utf-8")))
    }
    allowed = {"numpy", "scipy", "estimators", *sys.stdlib_module_names}
    assert {pair for pair in needed if pair[1] not in allowed} == set()
    assert {"numpy", "estimators"} <= {name for _, name in needed}


@pytest.mark.subprocess
def test_importing_estimators_loads_nothing_heavy():
    code = f"import sys, estimators; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.subprocess
def test_importing_the_language_model_engine_loads_no_torch():
    modules = sorted(path.stem for path in (ROOT / "inference/lm").glob("*.py") if path.stem != "__init__")
    assert {"loading", "forward", "next_token", "words", "scoring", "stored"} <= set(modules)
    imports = ", ".join(f"shannon_game.inference.lm.{module}" for module in modules)
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
