"""The gallery has every experiment; its Python and pictures are of today's code, and its pages of its tables.

``test_commands.py`` checks the commands, which stand on the cards and pages.
"""

from __future__ import annotations

import ast
import importlib

import pytest
from hydra.utils import get_method

from shannon_game import experiments
from tests.docs.pages import script
from tests.experiments.command import ROOT

GALLERY = script("make_gallery")
CHOICES = {
    name: next(iter(getattr(experiments, name).choices.items())) for name in ("perplexity", "recovery", "design")
}
ENTRIES = {entry.name: entry for group in GALLERY.read_groups() for entry in group.entries}


def test_every_experiment_has_one_entry_and_one_run() -> None:
    names = [entry.name for group in GALLERY.read_groups() for entry in group.entries]
    assert len(set(names)) == len(names)
    assert {ENTRIES[name].experiment for name in names} == {path.stem for path in (ROOT / "conf/exp").glob("*.yaml")}
    assert {f"{name}_{option}" for name, (_, options) in CHOICES.items() for option in options} <= set(names)
    assert sorted(GALLERY.read_runs()) == sorted(names)


def test_the_pages_are_those_of_the_tables() -> None:
    pages = GALLERY.pages()
    assert {path.name for path in GALLERY.GALLERY.glob("*.md")} == {path.name for path in pages}
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: python docs/make_gallery.py"


@pytest.mark.parametrize("name", ENTRIES)
def test_the_python_of_an_entry_is_of_today(name: str) -> None:
    """Names that are imported exist, settings by name are settings, and the last line is the picture's figure."""
    entry = ENTRIES[name]
    lines = [line for line in entry.python.strip().splitlines() if line]
    tree = ast.parse(entry.python)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(str(node.module))
            assert all(hasattr(module, alias.name) for alias in node.names)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and hasattr(experiments, node.func.id):
            given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            choice, options = CHOICES.get(node.func.id, ("", {}))
            function = getattr(experiments, node.func.id)
            if choice in given:
                function = get_method(options[ast.literal_eval(given.pop(choice))])
            assert set(given) <= set(function.settings_class.model_fields), ast.unparse(node)
    assert lines[-1].startswith("result.figures[")


def test_every_entry_has_its_pictures() -> None:
    for folder in (GALLERY.PICTURES, GALLERY.THUMBNAILS):
        assert {path.stem for path in folder.glob("*")} == set(ENTRIES)
