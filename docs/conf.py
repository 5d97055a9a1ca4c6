"""Sphinx: the pages of this folder, and an API reference of every module from its docstrings.

``python -m sphinx -W --keep-going docs docs/_build/html``, from the repository's root, writes HTML (docs/testing.md).
"""

from __future__ import annotations

import pkgutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

project = "Shannon game"
release = installed_version("shannon-game")
# -t pages leaves out the reference, which takes nearly all of the time
ONLY_PAGES = tags.has("pages")  # type: ignore[name-defined]  # noqa: F821 - Sphinx gives it
# the last one brings MathJax into the site, so that a reader's browser fetches nothing from elsewhere
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx_design",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
]
if not ONLY_PAGES:
    extensions.append("sphinx.ext.viewcode")
exclude_patterns = ["_build", "paper", *(["reference"] if ONLY_PAGES else [])]
root_doc = "index"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["scroll.js"]
html_title = "Shannon game"
html_show_copyright = False
html_show_sphinx = False

# notebooks are shown as they were run
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
# types, with shapes and units, are in numpydoc's sections
autodoc_typehints = "none"
numpydoc_show_class_members = False

PACKAGES = ("estimators", "models", "inference", "experiments")
REFERENCE = Path(__file__).parent / "reference"


def write_reference() -> None:
    """Write a page a module, which autodoc fills; the folder is not in git."""
    REFERENCE.mkdir(exist_ok=True)
    wanted: dict[str, str] = {}
    for package in PACKAGES:
        top = f"shannon_game.{package}"
        found = list(pkgutil.walk_packages([str(ROOT / package)], f"{top}."))
        inside = sorted(module.name for module in found)
        folders = {top, *(module.name for module in found if module.ispkg)}
        for name in (top, *inside):
            text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n"
            if name in folders:
                # what a package offers is documented where it is written
                children = [child for child in inside if child.rpartition(".")[0] == name]
                text += "\n.. toctree::\n   :maxdepth: 1\n\n" + "".join(f"   {child}\n" for child in children)
            else:
                text += "   :members:\n"
            wanted[f"{name}.rst"] = text
    for old in REFERENCE.glob("*.rst"):
        if old.name not in wanted:
            old.unlink()
    for file, text in wanted.items():
        path = REFERENCE / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def add_reference(_app: object, name: str, source: list[str]) -> None:
    """Add the reference to the contents of the site, where it is built."""
    if name == root_doc and not ONLY_PAGES:
        names = "\n".join(f"reference/shannon_game.{package}" for package in PACKAGES)
        source[0] += "\n\n```{toctree}\n:hidden:\n:caption: Python\n\n" + names + "\n```\n"


def make_accessible(_app: object, _name: str, _template: str, context: dict[str, object], _doctree: object) -> None:
    """Give captions of the contents a level, and let the keyboard scroll blocks that are wider than the screen."""
    for key, old, new in (
        ("furo_navigation_tree", 'role="heading"', 'role="heading" aria-level="2"'),
        ("body", "<pre>", '<pre tabindex="0">'),
    ):
        if key in context:
            context[key] = str(context[key]).replace(old, new)


def left_out(_app: object, _what: str, name: str, _member: object, skip: bool, _options: object) -> bool:
    """Leave out what SQLAlchemy says of its own, with links into its manual."""
    return skip or name == "metadata"


def setup(app: object) -> None:
    """Register what this file adds; Sphinx calls it."""
    if not ONLY_PAGES:
        write_reference()
    app.connect("autodoc-skip-member", left_out)  # type: ignore[attr-defined]
    # after the theme has made its contents
    app.connect("html-page-context", make_accessible, priority=900)  # type: ignore[attr-defined]
    app.connect("source-read", add_reference)  # type: ignore[attr-defined]
