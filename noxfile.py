"""Everything that a change is checked with, by name: ``nox --list`` says what there is.

Every session makes a virtual environment of its own. ``nox -R -s NAME`` uses the one of the last time.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "types", "unit"]

PINS = {"3.11": "constraints.txt", "3.12": "constraints-3.12.txt", "3.13": "constraints-3.12.txt"}
"""The exact versions for each Python; a Python without any takes the newest that fit."""

PYTHON = "3.11"


def install(session: nox.Session, extras: str) -> None:
    """Install this project in the session, with the exact versions for its Python."""
    pins = ["-c", PINS[session.python]] if session.python in PINS else []
    session.install(*pins, "-e", f".[{extras}]")


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Style, formatting and the direction of imports: ruff, import-linter."""
    session.install("-c", "constraints.txt", "ruff", "import-linter")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache")


@nox.session(python=PYTHON)
def types(session: nox.Session) -> None:
    """Types: mypy, strict."""
    install(session, "dev,test")
    session.run("mypy", "--strict")


@nox.session(python=PYTHON)
def unit(session: nox.Session) -> None:
    """Tests that compile no sampler, start no process and import no torch."""
    install(session, "test")
    # pyproject.toml leaves the others out
    session.run("pytest", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """All tests but the slow ones."""
    install(session, "test")
    session.run("pytest", "-m", "not slow", "-n", "2", "--dist", "loadfile", *session.posargs)


@nox.session(python=PYTHON)
def slow(session: nox.Session) -> None:
    """The slow tests."""
    install(session, "test,sweeps")
    session.run("pytest", "-m", "slow", *session.posargs)


@nox.session(python=PYTHON)
def docs(session: nox.Session) -> None:
    """Pages and API reference; a warning is an error."""
    install(session, "dev")
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "docs", "docs/_build/html")


@nox.session(python=PYTHON)
def build(session: nox.Session) -> None:
    """Build wheel and sdist in ``dist``, and check what an index would: metadata, and the README as its page."""
    session.install("build", "twine")
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build")
    session.run("twine", "check", "--strict", *sorted(map(str, Path("dist").iterdir())))


@nox.session(python=["3.11", "3.12", "3.13"])
def wheel(session: nox.Session) -> None:
    """Install the wheel of ``nox -s build`` and nothing else, and run what a new user runs, far from the project."""
    (built,) = Path("dist").glob("*.whl")
    session.install("-c", PINS[str(session.python)], str(built))
    session.chdir(session.create_tmp())
    shutil.rmtree("demo", ignore_errors=True)
    session.run("shannon-game", "--version")
    session.run("shannon-game", "doctor", "--no-gpu")
    session.run("shannon-game", "+exp=perplexity", "hydra.run.dir=run")
    session.run("shannon-game", "demo", "demo")


@nox.session(python=["3.11", "3.13"])
def latest(session: nox.Session) -> None:
    """All tests but the slow ones with the newest dependencies that pyproject.toml allows."""
    session.install("--upgrade", "-e", ".[test]")
    session.run("pytest", "-m", "not slow", "-n", "2", "--dist", "loadfile", *session.posargs)
