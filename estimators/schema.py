"""One table of variables for each kind of study: it checks a study and writes the docstring of the kind's validator."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])

# name of a type -> NumPy's letters for it, and how a message calls it
_TYPES = {"int": ("iu", "an integer"), "float": ("f", "float"), "bool": ("b", "bool"), "str": ("OUT", "str")}
_MEANING_WIDTH = 60
NAMES = {"name", "generator", "tokens", "word_rules", "split", "group", "part"}
"""Attributes, variables and dimensions of the kinds of study that are imported."""


@dataclass(frozen=True)
class Range:
    """Numbers that a variable may hold."""

    words: str
    lowest: float = -np.inf
    highest: float = np.inf
    open_ends: bool = False
    nan: bool = False
    infinite: bool = False
    unit: str = ""

    def holds(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Say which values are in the range."""
        above, below = (np.greater, np.less) if self.open_ends else (np.greater_equal, np.less_equal)
        good: NDArray[np.bool_] = above(values, self.lowest) & below(values, self.highest)
        if not self.infinite:
            good &= np.isfinite(values)
        return good | np.isnan(values) if self.nan else good


@dataclass(frozen=True)
class Variable:
    """One variable of a kind of study."""

    name: str
    dims: str
    type: Literal["int", "float", "bool", "str"]
    meaning: str
    needed: bool | str = True
    unit: str = ""
    range: Range | None = None
    label_of: str = ""
    position_along: str = ""
    unique: bool = False
    filled: bool = False
    gaps: bool = False

    @property
    def dim_names(self) -> tuple[str, ...]:
        """Its dimensions, one by one."""
        return tuple(self.dims.split(", "))

    @property
    def is_coordinate(self) -> bool:
        """Whether its values are the labels of a dimension."""
        return self.name == self.dims

    def is_needed(self, study: Dataset) -> bool:
        """Whether this study has to have it."""
        return self.needed is True or self.needed in study.dims or self.needed in study

    def described(self) -> tuple[str, str, str, str]:
        """Cells of its row of the table: name, dimensions, type with unit, meaning with range."""
        when = "" if self.needed is True else "optional: " if self.needed is False else f"with ``{self.needed}``: "
        notes = [f"label along ``{self.label_of}``"] * bool(self.label_of)
        notes += [f"position along ``{self.position_along}``"] * bool(self.position_along)
        notes += [self.range.words] if self.range else []
        notes += ["label, each once (coordinate)"] * self.is_coordinate + ["each once"] * self.unique
        unit = self.unit or (self.range.unit if self.range else "")
        kind = f"{self.type}, {unit}" if unit else self.type
        return f"``{self.name}``", self.dims, kind, when + "; ".join([self.meaning, *notes])


optional = partial(Variable, needed=False)
"""A variable that a study may lack."""


@dataclass(frozen=True)
class Schema:
    """The variables of one kind of study."""

    kind: str
    cure: str
    variables: tuple[Variable, ...]
    may_be_empty: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Let :data:`NAMES` have its variables and dimensions."""
        NAMES.update(name for variable in self.variables for name in (variable.name, *variable.dim_names))

    def source(self, study: Dataset) -> str:
        """Name a study in messages, such as ``comparison study 'simulated'``, once it is known to be of this kind."""
        if not is_dataset(study):
            raise InputError(f"is a {type(study).__name__}, should be an xarray.Dataset; {self.cure}", field="study")
        needed = [variable.name for variable in self.variables if variable.needed is True]
        missing = [name for name in needed if name not in study]
        if 2 * len(missing) > len(needed):
            raise InputError(f"is no {self.kind} study, without {', '.join(missing[:4])}; {self.cure}", field="study")
        return f"{self.kind} study {study.attrs.get('name', '(unnamed)')!r}"

    def check(self, study: Dataset) -> str:
        """Check every variable of a study by itself, and return the study's name for messages."""
        source = self.source(study)
        there = [variable for variable in self.variables if variable.name in study]
        needed = [variable for variable in self.variables if variable.is_needed(study)]
        for variable in needed:
            if variable.name not in study and not variable.is_coordinate:
                cure = f"the study needs it with dims {variable.dim_names}"
                cure = cure if variable.needed is True else f"it goes with {variable.needed}"
                raise InputError(f"is missing; {cure}", source=source, field=variable.name)
        for variable in there:
            found = study[variable.name]
            letters, name = _TYPES[variable.type]
            if found.dims != variable.dim_names:
                problem = f"has dims {found.dims}, should be {variable.dim_names}"
                raise InputError(problem, source=source, field=variable.name)
            if found.dtype.kind not in letters:
                raise InputError(f"has dtype {found.dtype}, should be {name}", source=source, field=variable.name)
        for dim in dict.fromkeys(dim for variable in needed for dim in variable.dim_names):
            if dim not in self.may_be_empty and study.sizes.get(dim, 0) == 0:
                raise InputError("is empty; at least one is needed", source=source, field=dim)
        for variable in needed:
            if variable.name not in study:
                raise InputError("has no coordinate values", source=source, field=variable.name)
        for variable in there:
            _check_values(study, variable, source)
        return source

    def documented(self, function: Function) -> Function:
        """Write the table of variables into a docstring."""
        if function.__doc__:
            function.__doc__ = function.__doc__.replace("{variables}", "\n    ".join(self._table()))
        return function

    def _table(self) -> list[str]:
        """Lines of a simple table of reStructuredText."""
        rows = [("variable", "dims", "type", "meaning"), *(variable.described() for variable in self.variables)]
        widths = [max(len(row[column]) for row in rows) for column in range(3)] + [_MEANING_WIDTH]
        rule = "  ".join("=" * width for width in widths)
        lines = [rule]
        for row in rows:
            for number, part in enumerate(textwrap.wrap(row[3], _MEANING_WIDTH, break_long_words=False)):
                cells = (*row[:3], part) if number == 0 else ("", "", "", part)
                lines.append("  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())
            if row is rows[0]:
                lines.append(rule)
        return [*lines, rule]


def is_dataset(study: object) -> bool:
    """Whether something is an ``xarray.Dataset``, without importing xarray."""
    return hasattr(study, "data_vars") and hasattr(study, "attrs")


def refuse(study: Dataset, source: str, name: str, good: NDArray[np.bool_] | Iterable[bool], right: str) -> None:
    """Refuse a variable whose values are not all good."""
    bad = ~np.asarray(good, dtype=bool)
    if not bad.any():
        return
    values = study[name].values
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    place = ", ".join(
        f"{dim} {study[dim].values[i]}" if dim in study.coords and dim != name else f"{dim} {i}"
        for dim, i in zip(study[name].dims, index, strict=True)
    )
    value = values[index].item() if isinstance(values[index], np.generic) else values[index]
    raise InputError(f"is {value!r} at {place} ({int(bad.sum())} such); {right}", source=source, field=name)


def _check_values(study: Dataset, variable: Variable, source: str) -> None:
    name, values = variable.name, study[variable.name].values
    if values.dtype == object and not variable.gaps:
        # an object may be anything
        strings = np.array([isinstance(value, str) for value in values.ravel().tolist()], dtype=bool)
        refuse(study, source, name, strings.reshape(values.shape), "should be a string")
    if variable.filled:
        refuse(study, source, name, values.astype(object) != "", "should be a string that is not empty")
    if variable.range:
        refuse(study, source, name, variable.range.holds(values), f"should be {variable.range.words}")
    if variable.position_along:
        n = study.sizes[variable.position_along]
        refuse(study, source, name, (values >= 0) & (values < n), f"should be 0 to {n - 1}")
    if variable.label_of:
        labels = set(study[variable.label_of].values.tolist())
        known = np.array([value in labels for value in values.tolist()], dtype=bool)
        refuse(study, source, name, known, f"the study has no such {variable.label_of}")
    if variable.unique or variable.is_coordinate:
        seen: set[Any] = set()
        for value in values.tolist():
            if value in seen:
                raise InputError(f"{value!r} is there twice", source=source, field=name)
            seen.add(value)
