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

_COLUMNS = ("setting", "default", "takes", "meaning")


def experiment_help(name: str, more: Sequence[str] = (), *, width: int = 120) -> str:
    """Say what an experiment answers, and every setting that it takes: default, what is right, meaning."""
    from rich.console import Console  # noqa: PLC0415 - every run imports this module, few show help
    from rich.table import Table  # noqa: PLC0415

    with initialize_config_module("shannon_game.conf", version_base="1.3"):
        cfg = compose("config", overrides=[f"+exp={name}", *more])
    entry = entry_of(cfg.experiment, what="experiment")
    function: Any = load_target(entry, what="experiment")
    settings_class = function.settings_class
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    lines = setting_lines(settings_class, lambda name: before(name, settings_class))
    # a name that is broken over two lines cannot be copied; what it takes and means can be
    name_width = max((len(line[0]) for line in lines), default=0) + 1
    default_width = min(max(len(word) for line in lines for word in (*line[1].split(), "default")) + 1, 26)
    left = max(width - name_width - default_width - 4, 48)
    for column, its in zip(_COLUMNS, (name_width, default_width, left * 2 // 5, left - left * 2 // 5), strict=True):
        table.add_column(column, overflow="fold", width=its)
    width = max(width, name_width + default_width + left + 4)
    for line in lines:
        table.add_row(*line)
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
