"""Run a page of the documentation: its fenced python and bash blocks, in order, from a folder of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from markdown_it import MarkdownIt

from shannon_game.experiments.harness.command_line import models_by_path
from shannon_game.experiments.harness.job import experiment_settings
from shannon_game.experiments.harness.registry import entry_of, given_to, load_target
from shannon_game.inference.settings import settings_from
from tests.experiments.command import ROOT, config

RUN = ("python", "bash", "r")
DOCS = ROOT / "docs"
# the reference is made from docstrings, and _build holds what is built
FOLDERS = (DOCS, DOCS / "gallery", DOCS / "mathematics", DOCS / "tutorials")
WRITTEN = (ROOT / "README.md", *sorted(path for folder in FOLDERS for path in folder.glob("*.md")))
"""Every page that a person, or the gallery's script, wrote."""


@dataclass(frozen=True)
class Block:
    """A fenced block; ``line`` is that of its first line of code, from 1."""

    language: str
    code: str
    line: int


def name_of(page: Path) -> str:
    """The name of a page from the repository's root, without its suffix: three pages are a README."""
    return str(page.relative_to(ROOT).with_suffix(""))


def script(name: str) -> ModuleType:
    """Import a script of the folder of pages, anew."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def check_settings(overrides: Sequence[str]) -> None:
    """Raise what the command raises for settings that its experiment or its study does not take."""
    cfg = config(*models_by_path(overrides))
    entry = entry_of(cfg.experiment, what="experiment")
    experiment_settings(load_target(entry, what="experiment"), cfg, given_to(cfg.experiment), tuple(overrides))
    entry = entry_of(cfg.study, what="study")
    settings_from(load_target(entry, what="study").settings_class, given_to(cfg.study))


class PageError(AssertionError):
    """A block that failed; the message names page and line."""


def blocks(text: str) -> Iterator[Block]:
    """Fenced python, bash and r blocks of a page, in order; ``sh``, ``text`` and the like are only shown."""
    for token in MarkdownIt().parse(text):
        if token.type == "fence" and token.info.strip() in RUN and token.map is not None:
            yield Block(token.info.strip(), token.content, token.map[0] + 2)


def run_page(page: Path, folder: Path) -> int:
    """Run a page's blocks in ``folder``, which is the working directory; returns how many ran.

    Python blocks share one namespace; a bash block ends at its first command that fails.
    """
    names: dict[str, Any] = {"__name__": "__page__"}
    count = 0
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            run_python(page, block, names)
        elif block.language == "r":
            run_r(page, block, folder)
        else:
            run_bash(page, block, folder)
        count += 1
    return count


def run_python(page: Path, block: Block, names: dict[str, Any]) -> None:
    # empty lines before the code, so that Python itself counts the page's lines
    code = "\n" * (block.line - 1) + block.code
    try:
        exec(compile(code, str(page), "exec"), names)
    except Exception as error:
        # a mistake in the syntax has no frame of the page, but a line
        trace = error.__traceback__
        lines = []
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == str(page):
                lines.append(trace.tb_lineno)
            trace = trace.tb_next
        line = lines[0] if lines else getattr(error, "lineno", block.line)
        raise PageError(f"{page.name}, line {line}: {type(error).__name__}: {error}") from error


def run_r(page: Path, block: Block, folder: Path) -> None:
    """Run a block in an R of its own, which ends at the first error."""
    command = ["Rscript", "--vanilla", "-e", block.code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PageError(f"{page.name}, line {block.line}: {done.stderr[-4000:]}")


def run_bash(page: Path, block: Block, folder: Path) -> None:
    places = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = os.environ | {"PATH": os.pathsep.join(places), "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    # the trap stands in the page's first line, and empty lines follow: bash counts the page's lines
    trap = f"trap 'echo \"{page.name}, line $LINENO: exit code $?\" >&2' ERR"
    done = subprocess.run(
        ["bash", "-Eeuo", "pipefail", "-c", trap + "\n" * (block.line - 1) + block.code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        where = done.stderr.strip().splitlines()[-1:] or [
            f"{page.name}, line {block.line}: exit code {done.returncode}"
        ]
        raise PageError("\n".join([*where, done.stdout[-2000:], done.stderr[-4000:]]))
