"""Help for one experiment, made from the class of its settings."""

from __future__ import annotations

import inspect
import io
from pathlib import Path

from hydra import compose, initialize_config_module
from rich.console import Console
from rich.table import Table

from experiments.harness.job import SHARED
from experiments.harness.registry import entry_of, load_target
from inference.settings import setting_lines

__all__ = ["experiment_help"]

_GROUPS = {"models": "model"}


def experiment_help(name: str, config_dir: str | None = None, *, width: int = 120) -> str:
    """Say what an experiment answers, and every setting that it takes: default, what is right, meaning.

    Parameters
    ----------
    name : str
        As in ``+exp=NAME``.
    config_dir : str, optional
        Folder of the user's own YAML files.
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
    own = [f"hydra.searchpath=[file://{Path(config_dir).absolute()}]"] if config_dir else []
    with initialize_config_module("conf", version_base="1.3"):
        cfg = compose("config", overrides=[f"+exp={name}", *own], return_hydra_config=False)
    entry, _ = entry_of(cfg.experiment, what="experiment")
    function = load_target(entry, what="experiment")
    settings_class = function.settings_class  # type: ignore[attr-defined]
    table = Table(box=None, pad_edge=False, show_header=True, header_style="bold")
    for column in ("setting", "default", "takes", "meaning"):
        table.add_column(column, overflow="fold")
    for line in setting_lines(settings_class, lambda field: field if field in SHARED else f"experiment.{field}"):
        table.add_row(*line)
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, markup=False)
    summary = inspect.cleandoc(function.__doc__ or "").split("\n\n")[0]
    console.print(f"+exp={name} takes a {entry.kind} study. {summary}\n")
    console.print(table)
    groups = [_GROUPS.get(each, each) for each in SHARED if each in settings_class.model_fields]
    console.print(f"\nOf the run: {', '.join(groups) or 'nothing'}. The study: study=NAME study.SETTING=VALUE.")
    if entry.extra:
        console.print(f"Needs the extra {', '.join(entry.extra)}.")
    return stream.getvalue()
