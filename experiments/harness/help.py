"""Help for one experiment, made from the class of its settings."""

from __future__ import annotations

import inspect
import io
from collections.abc import Sequence
from typing import Any

from hydra import compose, initialize_config_module

from shannon_game.experiments.harness.job import before, read_of_the_run
from shannon_game.experiments.harness.registry import entry_of, load_target
from shannon_game.inference.settings import setting_lines


def experiment_help(name: str, more: Sequence[str] = (), *, width: int = 120) -> str:
    """Say what an experiment answers, and every setting that it takes: default, what is right, meaning."""
    from rich.console import Console  # noqa: PLC0415 - every run imports this module, few show help
    from rich.table import Table  # noqa: PLC0415

    with initialize_config_module("shannon_game.conf", version_base="1.3"):
        cfg = compose("config", overrides=[f"+exp={name}", *more])
    entry = entry_of(cfg.experiment, what="experiment")
    function: Any = load_target(entry, what="experiment")
    settings_class = function.settings_class
    table = Table(box=None, pad_edge=False, header_style="bold")
    # a name that is broken over two lines cannot be copied; the rest can be
    table.add_column("setting", no_wrap=True)
    table.add_column("default", overflow="fold", max_width=26)
    table.add_column("takes", overflow="fold", ratio=2)
    table.add_column("meaning", overflow="fold", ratio=3)
    lines = setting_lines(settings_class, lambda name: before(name, settings_class))
    for line in lines:
        table.add_row(*line)
    width = max(width, max(len(line[0]) for line in lines) + 80)
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False)
    summary = inspect.cleandoc(function.__doc__ or "").split("\n\n")[0]
    console.print(f"+exp={name} takes a {' or '.join(entry.kinds)} study. {summary}\n")
    console.print(table)
    console.print(f"\nOf the run: {read_of_the_run(settings_class)}. The study: study=NAME study.SETTING=VALUE.")
    for setting, others in getattr(function, "choices", {}).items():
        console.print(f"With {setting}=NAME it asks something else, with other settings: {', '.join(others)}.")
    if entry.extra:
        console.print(f"Needs the extra {', '.join(entry.extra)}.")
    return stream.getvalue()
