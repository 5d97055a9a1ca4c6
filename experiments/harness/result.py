"""What an experiment gives, and the decorators that make one function serve a notebook and the command."""

from __future__ import annotations

import atexit
import inspect
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast, get_args

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import notes
from shannon_game.estimators.schema import is_dataset
from shannon_game.experiments.harness.kinds import checked_study
from shannon_game.experiments.harness.public_help import OF_EXPERIMENT, OF_FRAMES, OF_LOADER, complete
from shannon_game.experiments.harness.rows import Column, Row, columns_in, typed
from shannon_game.experiments.harness.shipped import kinds_of, makers
from shannon_game.experiments.harness.tables import markdown_plain, markdown_table, screen_table
from shannon_game.experiments.harness.views import View, for_readers
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Probability, Settings

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

S = TypeVar("S", bound=Settings)

P = ParamSpec("P")

_LONGEST, _FEW = 60, 12
"""Rows of a table that a report and a notebook show."""


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
    """Markdown paragraphs; the first sentence is the answer."""
    warnings: tuple[str, ...] = ()
    """What the reader should doubt, and what to do."""
    gate_failed: bool = False
    """A convergence check failed that the settings do not excuse: exit code 3."""
    posteriors: Mapping[str, Any] = field(default_factory=dict)
    """By what follows ``posterior_`` in the name of the file, the main one first."""
    row: type[Row] | None = None
    """What declares the columns of the table."""
    on_screen: pd.DataFrame | View | None = None
    """What readers see of the table (:meth:`summary`), where its first columns and all its rows are not the answer."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Further tables, one row per item or participant; written as ``NAME.csv``."""
    writers: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    """What writes the other files or folders of a run, by name, given the path."""
    body: str | None = None
    """Markdown that stands in the report in place of the table and the figures."""
    title: str | None = None
    """Of the report, in place of the names of experiment and study."""
    interval: float = 0.9
    """Probability inside what readers see of a standard error: the setting `interval`, where there is one."""

    @cached_property
    def files(self) -> dict[str, Path]:
        """Paths of the other files or folders of a run, such as ``files["study.nc"]``; copy what you keep."""
        folder = Path(mkdtemp(prefix="shannon-game-"))
        atexit.register(rmtree, folder, ignore_errors=True)
        for name, write in self.writers.items():
            write(folder / name)
        return {name: folder / name for name in self.writers}

    @property
    def answer(self) -> str:
        """What the command prints: what `text` says in bold and in lists, or else its first paragraph."""
        parts = [part for part in self.text.strip().split("\n\n") if part.startswith(("**", "- "))]
        return "\n".join(parts or self.text.strip().split("\n\n")[:1]).replace("**", "")

    @property
    def posterior(self) -> Any:
        """The main posterior, an ``InferenceData`` (ArviZ 0.23) or ``DataTree`` (ArviZ 1)."""
        if not self.posteriors:
            raise InputError("this result has no posterior; the experiment fitted no model", field="posterior")
        return next(iter(self.posteriors.values()))

    @property
    def report(self) -> str:
        """The result in Markdown: what was found, what to doubt, the table."""
        return self._report(_LONGEST)

    def _report(self, n_rows: int) -> str:
        doubts = ["## Warnings", "\n".join(f"- {text}" for text in self.warnings)] if self.warnings else []
        body = ["## Table", *table_sections(self, "`result.table`", n_rows)] if self.body is None else [self.body]
        return "\n\n".join([self.text.strip(), *doubts, *body, self._named()]).strip() + "\n"

    def _named(self) -> str:
        there = {"figures": self.figures, "tables": self.tables, "files": self.writers, "posteriors": self.posteriors}
        return "; ".join(f"`result.{what}`: {', '.join(names)}" for what, names in there.items() if names)

    @cached_property
    def view(self) -> View:
        """What a person reads first, and what is the same in every row."""
        if isinstance(self.on_screen, View):
            return self.on_screen
        shown = self.table if self.on_screen is None else self.on_screen
        return for_readers(shown, typed(shown) if self.row is None else self.row.columns, self.interval)

    @property
    def columns(self) -> Sequence[Column]:
        """What the columns of the table are."""
        return typed(self.table) if self.row is None else columns_in(self.table, self.row.columns)

    def summary(self) -> pd.DataFrame:
        """Return what a person reads first: at most eight columns, intervals as texts; `table` has all, as numbers."""
        return self.view.table

    def __repr__(self) -> str:
        doubts = "\n".join(f"Warning: {text}" for text in self.warnings)
        shown = screen_table(self.summary().head(_FEW), constants=self.view.constants)
        parts = [self.text.strip().replace("**", ""), doubts, shown, self._named()]
        return "\n\n".join(part.strip("\n") for part in parts if part)

    def _repr_html_(self) -> str:
        # only a notebook needs them
        from markdown_it import MarkdownIt  # noqa: PLC0415

        from shannon_game.experiments.harness.figures import png_of  # noqa: PLC0415

        source = "data:image/png;base64,"
        images = "".join(
            f'<img style="max-width: 100%" alt="figure {name}" src="{source}{b64encode(png_of(figure)).decode()}">'
            for name, figure in self.figures.items()
        )
        parser = MarkdownIt("commonmark", {"html": False}).enable("table")
        return str(parser.render(self._report(_FEW))) + images


def table_sections(result: ExperimentResult, whole: str = "`table.csv`", n_rows: int = _LONGEST) -> list[str]:
    """What readers see of the table, in Markdown; what is the same in every row is said once, and `whole` has all."""
    varying, constants, shape = result.view.table, result.view.constants, result.table.shape
    more = f"{whole} has {counted(shape[0], 'row')} and {counted(shape[1], 'column')}."
    return [
        *([f"In every row: {markdown_plain(constants)}."] if constants else []),
        markdown_table(varying.head(n_rows)),
        *([more] if shape[1] > len(varying.columns) or shape[0] > min(len(varying), n_rows) else []),
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
    settings_class: type[S], *, reads: Callable[..., xr.Dataset] | None = None, row: type[Row] | None = None
) -> Callable[[Callable[[xr.Dataset, S], ExperimentResult]], Experiment[S]]:
    """Let a function of a study and settings take the settings by name too; complete its docstring.

    `row` declares the columns of the table, where the result names no others and its table has them.

    `reads` makes a study of anything else that a notebook hands over, such as a DataFrame, with settings of its own.
    """
    of_reader = {
        each.name
        for each in (inspect.signature(reads).parameters.values() if reads else ())
        if each.kind is each.KEYWORD_ONLY and each.name not in settings_class.model_fields
    }

    def decorate(function: Callable[[xr.Dataset, S], ExperimentResult]) -> Experiment[S]:
        @wraps(function)
        def call(study: xr.Dataset, settings: S | None = None, **changes: Any) -> ExperimentResult:
            is_made = not is_dataset(study)
            if is_made and reads is not None:
                study = reads(study, **{name: changes.pop(name) for name in of_reader & set(changes)})
            study = checked_study(study, kinds_of("exp", function.__name__), function.__name__)
            result = _answer(function, study, _settings(settings_class, settings, changes), row)
            # who handed over texts or a table does not see the notes of the study that was made of it
            return replace(result, warnings=(*loader_warnings(study), *result.warnings)) if is_made else result

        kinds = kinds_of("exp", function.__name__)
        made_by = ", ".join(makers(kinds)) or "a loader"
        if reads is not None:
            made_by += f"; or what {reads.__name__} takes (a list, a DataFrame), with its settings"
        sections = OF_EXPERIMENT.format(" or ".join(kinds) or "suitable", made_by)
        if row is not None:
            sections += f"\nColumns\n-------\n{row.documented()}\n"
        return cast("Experiment[S]", complete(call, settings_class, sections))

    return decorate


def loader_warnings(study: xr.Dataset) -> tuple[str, ...]:
    """Doubts of the loader, with how often each arose."""
    return tuple(
        (f"{entry['count']:,} x " if entry["count"] is not None else "") + entry["text"]
        for entry in notes(study)
        if entry["level"] == "warning"
    )


def _answer(
    function: Callable[[xr.Dataset, S], ExperimentResult], study: xr.Dataset, settings: S, row: type[Row] | None
) -> ExperimentResult:
    """Answer a question about a study of its kind: the one place through which every answer goes."""
    result = function(study, settings)
    field = type(settings).model_fields.get("interval")
    # somebody's own question may call minutes so
    if field is not None and field.metadata == get_args(Probability)[1].metadata:
        result = replace(result, interval=getattr(settings, "interval"))  # noqa: B009 - most settings have none
    declared = {one.name for one in row.columns if not (one.optional or one.family)} if row else set()
    return replace(result, row=row) if result.row is None and declared <= set(result.table) else result


def loader(settings_class: type[S]) -> Callable[[Callable[[S], xr.Dataset]], Loader[S]]:
    """Do for a loader, ``function(settings) -> study``, what :func:`experiment` does, and complete its docstring."""

    def decorate(function: Callable[[S], xr.Dataset]) -> Loader[S]:
        @wraps(function)
        def call(settings: S | None = None, **changes: Any) -> xr.Dataset:
            try:
                return function(_settings(settings_class, settings, changes))
            except FileNotFoundError as error:
                raise InputError("no such file", source=error.filename) from error

        kinds = kinds_of("study", function.__name__)
        return cast("Loader[S]", complete(call, settings_class, OF_LOADER.format(" or ".join(kinds) or "validated")))

    return decorate


def of_frames(
    settings_class: type[Settings] | None = None, *, but: Collection[str] = ()
) -> Callable[[Callable[P, xr.Dataset]], Callable[P, xr.Dataset]]:
    """Let the docstring of a function of DataFrames list its settings, all `but` some."""

    def decorate(function: Callable[P, xr.Dataset]) -> Callable[P, xr.Dataset]:
        return cast("Callable[P, xr.Dataset]", complete(function, settings_class, OF_FRAMES, but))

    return decorate


def _settings(settings_class: type[S], settings: object, changes: Mapping[str, Any]) -> S:
    if settings is None:
        return settings_class(**changes)
    if not isinstance(settings, settings_class):
        problem = f"is a {type(settings).__name__}, should be {settings_class.__name__}(...)"
        if isinstance(settings, str | Path) and "path" in settings_class.model_fields:
            problem += f"; for a file write path={str(settings)!r}"
        raise InputError(problem, field="settings")
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
        named = (
            f"another question, with other settings; ``help({first.__name__}.choices[{setting!r}][NAME])`` lists them."
        )
        asks = f"{setting} : one of {', '.join(others)}\n    Asks {named}\n\nReturns\n-------\n"
        own_signature = inspect.signature(first)
        given = inspect.Parameter(setting, inspect.Parameter.KEYWORD_ONLY, default=own)
        call.__signature__ = own_signature.replace(parameters=[*own_signature.parameters.values(), given])  # type: ignore[attr-defined]
        call.__doc__ = (first.__doc__ or "").replace("\nReturns\n-------\n", asks, 1)
        return call  # type: ignore[return-value]

    return decorate
