"""One table of variables for each kind of study: it checks a study and writes the docstring of the kind's validator."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])

# name of a type -> NumPy's letters for it, and how a message calls it
_TYPES = {"int": ("iu", "an integer"), "float": ("f", "float"), "bool": ("b", "bool"), "str": ("OUT", "str")}
_MEANING_WIDTH = 60
KIND = "kind"
"""Attribute of a study: its kind, such as "cloze"; validators write it."""
# attribute of a variable that holds positions: what names them, so that a part of a study is read as its whole
_POINTS_TO = "points_to"


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
    codes: tuple[str, ...] = ()  # what -1, -2, ... stand for among positions
    goes_with: bool = False
    unique: bool = False
    filled: bool = False
    gaps: bool = False

    @cached_property
    def dim_names(self) -> tuple[str, ...]:
        """Its dimensions, one by one."""
        return tuple(self.dims.split(", "))

    @property
    def is_coordinate(self) -> bool:
        """Whether its values are the labels of a dimension."""
        return self.name == self.dims

    @property
    def coded(self) -> list[str]:
        """What its codes stand for."""
        return [f"{-number} is {what}" for number, what in enumerate(self.codes, start=1)]

    def is_needed(self, study: Dataset) -> bool:
        """Whether this study has to have it."""
        return self.needed is True or self.needed in study.dims or self.needed in study

    def described(self) -> tuple[str, str, str, str]:
        """Cells of its row of the table: name, dimensions, type with unit, meaning with range."""
        when = "" if self.needed is True else "optional: " if self.needed is False else f"with ``{self.needed}``: "
        notes = [f"label along ``{self.label_of}``"] * bool(self.label_of)
        notes += [f"position along ``{self.position_along}``"] * bool(self.position_along)
        notes += self.coded
        notes += [self.range.words] if self.range else []
        notes += ["label, each once (coordinate)"] * self.is_coordinate + ["each once"] * self.unique
        unit = self.unit or (self.range.unit if self.range else "")
        kind = f"{self.type}, {unit}" if unit else self.type
        return f"``{self.name}``", self.dims, kind, when + "; ".join([self.meaning, *notes])


optional = partial(Variable, needed=False)
"""A variable that a study may lack."""

owned = partial(Variable, goes_with=True)
"""A variable that says what its rows are part of: where that was cut, they go with it."""


def _number(dim: str) -> Variable:
    """Coordinate that numbers what a dimension holds as the study was made."""
    return optional(f"{dim}_number", dim, "int", "its number in the study as it was made: what positions name")


@dataclass(frozen=True)
class Schema:
    """The variables of one kind of study."""

    kind: str
    cure: str
    variables: tuple[Variable, ...]
    may_be_empty: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    """Dimensions whose order has a meaning, besides those that positions are along."""

    def __post_init__(self) -> None:
        """Number the dimensions that positions are along."""
        object.__setattr__(self, "variables", (*self.variables, *map(_number, self._numbered)))

    @cached_property
    def _numbered(self) -> list[str]:
        along = [variable.position_along for variable in self.variables if variable.position_along]
        return list(dict.fromkeys([*along, *self.ordered]))

    def source(self, study: Dataset) -> str:
        """Name a study in messages, such as ``comparison study 'simulated'``; refuse one that says another kind."""
        if not is_dataset(study):
            raise InputError(f"is a {type(study).__name__}, should be an xarray.Dataset; {self.cure}", field="study")
        name, kind = study.attrs.get("name", "(unnamed)"), study.attrs.get(KIND, self.kind)
        if kind != self.kind:
            raise InputError(f"is {kind!r}, should be {self.kind!r}; {self.cure}", source=f"study {name!r}", field=KIND)
        return f"{self.kind} study {name!r}"

    def check(self, study: Dataset) -> tuple[Dataset, str]:
        """Check every variable of a study by itself; return it as :meth:`read` does, and its name for messages."""
        study, source = self.read(study), self.source(study)
        for variable in self.variables:
            if variable.name in study:
                _check_values(study, variable, source)
        return study, source

    def read(self, study: Dataset) -> Dataset:
        """Read a study by its labels, whatever it was cut to or reordered: the same where there is nothing to do.

        Its variables have the dimensions of the schema, in that order; positions are along what the study now holds.
        Rows of what was cut go with it where the schema says so; other positions of it are refused.
        """
        source = self.source(study)
        there = [(each, study.variables[each.name]) for each in self.variables if each.name in study]
        turned = {
            each.name: found.transpose(*each.dim_names)
            for each, found in there
            if found.dims != each.dim_names and {*found.dims} == {*each.dim_names}
        }
        study = study.assign(turned) if turned else study
        needed = [each for each in self.variables if each.is_needed(study)]
        self._check_shape(study, needed, source)
        for dim in self._numbered:
            if dim in study.dims:
                study = self._counted_anew(study, dim, source)
        self._check_sizes(study, needed, source)
        return study if study.attrs.get(KIND) == self.kind else study.assign_attrs({KIND: self.kind})

    def _check_shape(self, study: Dataset, needed: list[Variable], source: str) -> None:
        for variable in needed:
            if variable.name not in study and not variable.is_coordinate:
                cure = f"the study needs it with dims {variable.dim_names}"
                cure = cure if variable.needed is True else f"it goes with {variable.needed}"
                raise InputError(f"is missing; {cure}", source=source, field=variable.name)
        for variable in self.variables:
            if variable.name not in study:
                continue
            found = study.variables[variable.name]
            letters, name = _TYPES[variable.type]
            if found.dims != variable.dim_names:
                problem = f"has dims {found.dims}, should be {variable.dim_names}"
                raise InputError(problem, source=source, field=variable.name)
            if found.dtype.kind not in letters:
                raise InputError(f"has dtype {found.dtype}, should be {name}", source=source, field=variable.name)
            if variable.position_along and variable.position_along not in study.dims:
                problem = f"holds positions along {variable.position_along}, which the study does not have"
                raise InputError(problem, source=source, field=variable.name)

    def _check_sizes(self, study: Dataset, needed: list[Variable], source: str) -> None:
        for dim in dict.fromkeys(dim for variable in needed for dim in variable.dim_names):
            if dim not in self.may_be_empty and study.sizes.get(dim, 0) == 0:
                raise InputError("is empty; at least one is needed", source=source, field=dim)
        for variable in needed:
            if variable.name not in study:
                raise InputError("has no coordinate values", source=source, field=variable.name)
            if variable.is_coordinate and not study.get_index(variable.name).is_unique:
                labels = study.get_index(variable.name)
                twice = labels[labels.duplicated()].tolist()[0]
                raise InputError(f"{twice!r} is there twice", source=source, field=variable.name)

    def _counted_anew(self, study: Dataset, dim: str, source: str) -> Dataset:
        """Let positions along a dimension count what it holds now: they name its numbers."""
        name, n = _number(dim).name, study.sizes[dim]
        along = [each for each in self.variables if each.position_along == dim and each.name in study]
        marked = [each.name for each in along if study.variables[each.name].attrs.get(_POINTS_TO) == name]
        if name not in study and (marked or (dim in self.ordered and KIND in study.attrs)):
            problem = f"is missing; {' and '.join(marked) or dim} cannot be read without this coordinate"
            raise InputError(problem, source=source, field=name)
        number = study.variables[name].values if name in study else np.arange(n)
        counted = np.array_equal(number, np.arange(n))
        # where the last ones were cut the numbers still count, and what pointed to those is left
        whole = counted and all((study.variables[each].values < n).all() for each in marked)
        if whole and name in study and len(marked) == len(along):
            return study
        if not counted and (dim in self.ordered or np.unique(number).size < n):
            right = f"0 to {n - 1}, in order; only the last can be cut" if dim in self.ordered else "different numbers"
            raise InputError(f"should hold {right}", source=source, field=name)
        for each in along:
            variable = study.variables[each.name]
            if not whole and each.name not in marked:
                problem = f"has no attribute {_POINTS_TO}: write {name!r} if it holds such numbers, else drop {name}"
                raise InputError(problem, source=source, field=each.name)
            held, known = variable.values, np.ones(variable.shape, dtype=bool)
            if not whole:
                held, known = _positions(number, held)
                right = f"the study was cut along {dim}, and this number is gone"
                refuse(study, source, each.name, known | each.goes_with, right)
            study = study.assign({each.name: (variable.dims, held, {**variable.attrs, _POINTS_TO: name})})
            study = study if known.all() else study.isel({each.dims: np.flatnonzero(known)})
        return study.assign_coords({name: (dim, np.arange(n))})

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


def _positions(number: NDArray[Any], named: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Where numbers stand in an array that holds each once, and which are there; negative ones name nothing."""
    places = {value: place for place, value in enumerate(number.tolist())}
    at = np.array([value if value < 0 else places.get(value, -1) for value in named.tolist()], dtype=np.intp)
    return at, (at >= 0) | (named < 0)


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
        lowest = -len(variable.codes)
        right = "; ".join([f"should be {lowest} to {n - 1}", *variable.coded])
        refuse(study, source, name, (values >= lowest) & (values < n), right)
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
