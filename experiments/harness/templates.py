"""Text files from templates: a report, and what stands in a bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shannon_game.experiments.harness.tables import markdown_plain

__all__ = ["fill"]


def fill(name: str, **values: Any) -> str:
    """Fill in the template ``NAME.jinja`` beside this module; its filter ``plain`` escapes text for Markdown."""
    from jinja2 import Environment  # noqa: PLC0415 - a job that was done before needs none

    # no HTML: what is Markdown is escaped as such
    environment = Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters["plain"] = markdown_plain
    text = Path(__file__).with_name(f"{name}.jinja").read_text(encoding="utf-8")
    return environment.from_string(text).render(values)
