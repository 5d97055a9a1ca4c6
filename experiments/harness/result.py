"""What an experiment gives, and the decorators that make one function serve a notebook and the command."""

from __future__ import annotations

import base64
import html
import inspect
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.schema import NAMES, is_dataset
from shannon_game.experiments.harness.tables import (
    for_readers,
    for_screen,
    markdown_plain,
    markdown_table,
    screen_table,
    split_constants,
)
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Settings

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

S = TypeVar("S", bound=Settings)

_LONGEST = 60
"""Rows of a table that a report shows."""


@dataclass(frozen=True, repr=False, eq=False)
class ExperimentResult:
    """What an experiment found."""

    table: pd.DataFrame
    """Tidy: one row per estimate, units in the column names."""
    dataset: xr.Dataset
    """Everything needed to draw the figures again."""
    figures: Mapping[str, Figure]
    """By file name without extension, in the order of the report."""
    text: str
    """Markdown paragraphs; a report begins with the first that is a list or opens in bold (`answer`)."""
    warnings: tuple[str, ...] = ()
    """What the reader should doubt."""
    gate_failed: bool = False
    """A convergence check failed that the settings do not excuse: exit code 3."""
    posteriors: Mapping[str, Any] = field(default_factory=dict)
    """By what follows ``posterior_`` in the name of the file, the main one first."""
    on_screen: pd.DataFrame | None = None
    """What readers see of the table (:meth:`summary`), where its first columns and all its rows are not the answer."""
    conclusion: tuple[str, ...] = ()
    """Lines that the command prints under it."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Further tables, one row per item or a participant; written as ``NAME.csv``."""
    files: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    """Other files or folders: what writes them, given the path."""
    body: str | None = None
    """Markdown that stands in the report in place of the table and the figures."""
    title: str | None = None
    """Of the report, in place of the names of experiment and study."""

    @property
    def posterior(self) -> Any:
        """The main posterior, an ``InferenceData`` (ArviZ 0.23) or ``DataTree`` (ArviZ 1)."""
        if not self.posteriors:
            raise InputError("this result has no posterior; the experiment fitted no model", field="posterior")
        return next(iter(self.posteriors.values()))

    @property
    def answer(self) -> str:
        """`text` with the numbers before what introduces them."""
        parts = self.text.strip().split("\n\n")
        at = next((at for at, part in enumerate(parts) if part.startswith(("- ", "**"))), 0)
        before = [f"{part.removesuffix(':')}." if part.endswith(":") else part for part in parts[:at]]
        return "\n\n".join([parts[at], *before, *parts[at + 1 :]])

    @property
    def report(self) -> str:
        """The result in Markdown: what was found, what to doubt, the table."""
        doubts = ["## Warnings", "\n".join(f"- {text}" for text in self.warnings)] if self.warnings else []
        body = ["## Table", *table_sections(self, "`result.table`")] if self.body is None else [self.body]
        return "\n\n".join([self.answer, *doubts, *body]) + "\n"

    def summary(self) -> pd.DataFrame:
        """Return what a person reads first: at most eight columns, intervals as texts; `table` has all, as numbers."""
        return for_readers(for_screen(self.table) if self.on_screen is None else self.on_screen)

    def __repr__(self) -> str:
        parts = [f"{counted(len(self.table), 'row')}", f"figures: {', '.join(self.figures) or 'none'}"]
        parts += [f"posteriors: {', '.join(self.posteriors)}"] if self.posteriors else []
        parts += [counted(len(self.warnings), "warning")] if self.warnings else []
        return f"<ExperimentResult: {'; '.join(parts)}>\n{screen_table(self.summary())}"

    def _repr_html_(self) -> str:
        doubts = "".join(f"<li>{html.escape(text)}</li>" for text in self.warnings)
        images = "".join(f'<img style="max-width: 100%" src="{_data_url(figure)}">' for figure in self.figures.values())
        varying, constants = split_constants(self.summary())
        said = f"<p>{html.escape(constants)}</p>" if constants else ""
        return f"{varying.to_html(index=False)}{said}<ul>{doubts}</ul>{images}"


def _data_url(figure: Figure) -> str:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100, bbox_inches="tight")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def table_sections(result: ExperimentResult, whole: str = "`table.csv`") -> list[str]:
    """What readers see of the table, in Markdown; what is the same in every row is said once, and `whole` has all."""
    shown, (n_rows, n_columns) = result.summary(), result.table.shape
    varying, constants = split_constants(shown)
    more = f"{whole} has {counted(n_rows, 'row')} and {counted(n_columns, 'column')}."
    return [
        *([f"In every row: {markdown_plain(constants)}."] if constants else []),
        markdown_table(varying.head(_LONGEST)),
        *([more] if n_columns > len(varying.columns) or n_rows > min(len(shown), _LONGEST) else []),
    ]


class Experiment(Protocol[S]):
    """A question to a study: takes settings as an object or by name, gives an :class:`ExperimentResult`."""

    settings_class: type[S]
    __name__: str

    def __call__(self, study: xr.Dataset, settings: S | None = None, **changes: Any) -> ExperimentResult:
        """Answer the question."""
        ...


class Loader(Protocol[S]):
    """Reads one layout of data: takes settings as an object or by name, gives a study."""

    settings_class: type[S]
    __name__: str

    def __call__(self, settings: S | None = None, **changes: Any) -> xr.Dataset:
        """Read the study."""
        ...


def experiment(
    settings_class: type[S], *, reads: Callable[[Any], xr.Dataset] | None = None
) -> Callable[[Callable[[xr.Dataset, S], ExperimentResult]], Experiment[S]]:
    """Let a function of a study and settings take the settings by name too; complete its docstring.

    `reads` makes a study of anything else that a notebook hands over, such as a DataFrame.
    """

    def decorate(function: Callable[[xr.Dataset, S], ExperimentResult]) -> Experiment[S]:
        @wraps(function)
        def call(study: xr.Dataset, settings: S | None = None, **changes: Any) -> ExperimentResult:
            if not is_dataset(study) and reads is not None:
                study = reads(study)
            if not is_dataset(study):
                raise InputError(
                    f"is a {type(study).__name__}, should be an xarray.Dataset; comparison_study, cloze_study, "
                    "guess_study, ranking_study and bet_study of experiments make one of a DataFrame",
                    source=function.__name__,
                    field="study",
                )
            chosen = _settings(settings_class, settings, changes)
            try:
                return function(study, chosen)
            except KeyError as error:
                lacking = _lacking(study, error)
                if lacking is None:
                    raise
                name = study.attrs.get("name", "(unnamed)")
                problem = f"is missing, and {function.__name__} needs it; the study is not whole, or of another kind"
                raise InputError(problem, source=f"study {name!r}", field=lacking) from error

        _document(call, function, settings_class, _OF_EXPERIMENT)
        return call  # type: ignore[return-value]

    return decorate


def _lacking(study: xr.Dataset, error: KeyError) -> str | None:
    """What a study does not have, where an error is about that."""
    said = re.match(r"(?:No variable named )?'?(\w+)'?(?:\.|$)", str(error.args[0]) if error.args else "")
    name = said[1] if said else ""
    return name if name in NAMES and name not in {*study.variables, *study.dims, *study.attrs} else None


_OF_EXPERIMENT = """\
Parameters
----------
study : xarray.Dataset
    A study of a kind that the question takes.
settings : {}, optional
    Or its fields by name.

Returns
-------
ExperimentResult
    ``table`` has one row per estimate; ``tables``, ``figures`` and ``files`` what else a run writes.

Raises
------
InputError
    For a setting that is wrong or does not fit, and a study that lacks what the question needs; names the place.
"""
_OF_LOADER = """\
Parameters
----------
settings : {}, optional
    Or its fields by name.

Returns
-------
xarray.Dataset
    A study of its kind (``shannon_game.experiments.harness.registry.KINDS`` names the validators). Its notes count what
    was left out, repaired or kept in spite of doubts; ``attrs["data_sha256"]`` identifies the data.

Raises
------
InputError
    For a setting that is wrong, and data that are missing or cannot be used; names the place.
"""


def with_sections(function: Callable[..., object], sections: str) -> str:
    """Docstring of a function with more sections, before its examples."""
    head, title, examples = inspect.cleandoc(function.__doc__ or "").partition("Examples\n--------\n")
    return f"{head.rstrip()}\n\n{sections}\n{title}{examples}"


def _document(call: Any, function: Callable[..., object], settings_class: type[Settings], sections: str) -> None:
    """Give a decorated function its class of settings, and those sections of the docstring that it lacks."""
    parts = sections.format(settings_class.__name__).split("\n\n")
    missing = [part for part in parts if part[:12] not in inspect.cleandoc(function.__doc__ or "")]
    call.__doc__ = with_sections(function, "\n\n".join(missing))
    call.settings_class = settings_class


def loader(settings_class: type[S]) -> Callable[[Callable[[S], xr.Dataset]], Loader[S]]:
    """Do for a loader, ``function(settings) -> study``, what :func:`experiment` does, and complete its docstring."""

    def decorate(function: Callable[[S], xr.Dataset]) -> Loader[S]:
        @wraps(function)
        def call(settings: S | None = None, **changes: Any) -> xr.Dataset:
            return function(_settings(settings_class, settings, changes))

        _document(call, function, settings_class, _OF_LOADER)
        return call  # type: ignore[return-value]

    return decorate


def _settings(settings_class: type[S], settings: S | None, changes: Mapping[str, Any]) -> S:
    if settings is None:
        return settings_class(**changes)
    if not isinstance(settings, settings_class):
        raise InputError(f"is a {type(settings).__name__}, should be {settings_class.__name__}(...)", field="settings")
    return settings.changed(**changes) if changes else settings


CHOICES = ("vary", "of", "look")
"""Groups of settings that change what an experiment asks."""


def choice(setting: str, own: str, others: Mapping[str, str]) -> Callable[[Experiment[S]], Experiment[S]]:
    """Let an experiment, whose own name for this is `own`, pass on to others by dotted name.

    On the command line the setting is a group of Hydra's, whose files name the same functions.
    """

    def decorate(first: Experiment[S]) -> Experiment[S]:
        @wraps(first)
        def call(study: xr.Dataset, settings: S | None = None, **changes: Any) -> ExperimentResult:
            name = changes.pop(setting, own)
            if name == own:
                return first(study, settings, **changes)
            if name not in others:
                raise unknown_choice(setting, name, [own, *others], source=first.__name__)
            module, _, function = others[name].rpartition(".")
            found: Experiment[Any] = getattr(import_module(module), function)
            return found(study, settings, **changes)

        call.choices = {setting: others}  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate
