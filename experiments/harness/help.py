"""Help for one experiment, made from the class of its settings."""

from __future__ import annotations

import inspect
import io
from collections.abc import Sequence

from hydra import compose, initialize_config_module
from rich.console import Console
from rich.table import Table

from experiments.harness.job import before, read_of_the_run
from experiments.harness.registry import entry_of, load_target
from inference.settings import setting_lines

__all__ = ["experiment_help"]


def experiment_help(name: str, search_path: Sequence[str] = (), *, width: int = 120) -> str:
    """Say what an experiment answers, and every setting that it takes: default, what is right, meaning.

    Parameters
    ----------
    name : str
        As in ``+exp=NAME``.
    search_path : sequence of str
        Overrides that say where Hydra finds YAML files besides ours.
    width : int
        Of the text, in characters.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If the experiment cannot be imported.
    hydra.errors.HydraException
        If there is no such experiment.
    """
    with initialize_config_module("conf", version_base="1.3"):
        cfg = compose("config", overrides=[f"+exp={name}", *search_path])
    entry = entry_of(cfg.experiment, what="experiment")
    function = load_target(entry, what="experiment")
    settings_class = function.settings_class  # type: ignore[attr-defined]
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for column in ("setting", "default", "takes", "meaning"):
        table.add_column(column, overflow="fold")
    for line in setting_lines(settings_class, lambda name: before(name, settings_class)):
        table.add_row(*line)
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False)
    summary = inspect.cleandoc(function.__doc__ or "").split("\n\n")[0]
    console.print(f"+exp={name} takes a {' or '.join(entry.kinds)} study. {summary}\n")
    console.print(table)
    console.print(f"\nOf the run: {read_of_the_run(settings_class)}. The study: study=NAME study.SETTING=VALUE.")
    if entry.extra:
        console.print(f"Needs the extra {', '.join(entry.extra)}.")
    return stream.getvalue()
