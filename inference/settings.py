"""Settings as typed classes: the one place of a setting's name, type, default, range and meaning.

Pydantic, not OmegaConf's structured configs: ranges, choices and unions are part of a field, one class serves a
notebook and a YAML file, and strict mode coerces nothing (``true`` is no number, ``"3"`` no 3).
"""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin, get_type_hints

import annotated_types
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic.fields import FieldInfo

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Reader, word

S = TypeVar("S", bound="Settings")
D = TypeVar("D")
Prefix = str | Callable[[str], str]

Probability = Annotated[float, Field(gt=0, lt=1)]
"""Strictly between 0 and 1."""

Positive = Annotated[float, Field(gt=0)]
"""A number above 0."""

Count = Annotated[int, Field(ge=1)]
"""A whole number of at least 1."""


_LARGEST = 2**63 - 1
_SECTION = re.compile(r"\n\n(?=\w[\w ]*\n-{3,}\n)")


def _digits_are_text(value: Any) -> Any:
    """YAML and the command line read a name of digits, such as a participant's, as a number."""
    return str(value) if type(value) is int else value


def _alone(value: Any) -> Any:
    return (value,) if type(value) in (str, int) else value


one_or_more = BeforeValidator(_alone)
"""One text or whole number stands for a list of it."""

Text = Annotated[str, Field(min_length=1), BeforeValidator(_digits_are_text)]
"""A text that is not empty; digits are one."""

Names = Annotated[tuple[Text, ...], one_or_more]
"""Names; a list in YAML, or a single one; whole numbers are names."""

OneOrMoreNames = Annotated[Names, Field(min_length=1)]
"""Names, one at least."""

Counts = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(lambda n: (n,) if isinstance(n, int) else n)]
"""Whole numbers of at least 1; a list in YAML, or a single one."""


def _user_path(value: Any) -> Any:
    if not isinstance(value, str | Path) or not str(value):
        return value
    try:
        path = Path(value).expanduser()
        # what no file system has a name for is found here once, and not wherever a path is looked at
        path.is_dir()
    except (OSError, RuntimeError) as error:
        raise InputError(f"cannot be a path: {getattr(error, 'strerror', None) or error}") from None
    return path


UserPath = Annotated[Path, BeforeValidator(_user_path)]
"""A path; ``~`` is the user's folder."""


class Settings(BaseModel):
    """Base of all settings: frozen, strict, no unknown names; the string under a field says what it means."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _input_error(type(self), error) from None

    # settings inside settings are then checked as a part of the whole, and the message has the whole path
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @model_validator(mode="before")
    @classmethod
    def _over_defaults(cls, given: Any) -> Any:
        """YAML has lists, settings are frozen; a mapping changes the default of a group, and leaves the rest of it."""
        given = _tuples(given)
        if not isinstance(given, dict):
            return given
        named = {name: field.default for name, field in cls.model_fields.items() if name in given}
        return given | {name: _changed(default, given[name]) for name, default in named.items()}

    @model_validator(mode="after")
    def _whole_numbers_fit(self) -> Self:
        """NumPy holds whole numbers of 64 bits: what is larger can only end in an OverflowError."""
        for name, value in self:
            for each in value if isinstance(value, tuple) else (value,):
                if isinstance(each, int) and abs(each) > _LARGEST:
                    raise InputError(f"is {each}, should be a whole number of at most {_LARGEST:,}", field=name)
        return self

    def changed(self, **changes: Any) -> Self:
        """Return these settings with some changed, checked like new ones."""
        return type(self)(**{name: getattr(self, name) for name in self.model_fields_set} | changes)


class Group(Settings):
    """Settings that have a name, for which the name alone can stand: ``rounding="interface"``."""

    @model_validator(mode="before")
    @classmethod
    def _a_name_alone(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given


def _changed(default: Any, given: Any) -> Any:
    """Put what a mapping, or a name alone, leaves out in from a default whose own values are not those of its class."""
    if isinstance(default, Group) and isinstance(given, str):
        given = {"name": given}
    if not isinstance(given, dict):
        return given
    if isinstance(default, Settings):
        return {name: getattr(default, name) for name in default.model_fields_set} | given
    if is_dataclass(default):
        changed = {name: v for name, v in vars(default).items() if v != _default_of(type(default), name)}
        return changed | given
    return given


def _default_of(kind: type[Any], name: str) -> Any:
    """Value that a field of a dataclass has where none is given."""
    field = next(each for each in fields(kind) if each.name == name)
    return field.default if field.default_factory is MISSING else field.default_factory()


def _tuples(value: Any) -> Any:
    """YAML has lists, settings are frozen."""
    if isinstance(value, list | tuple):
        return tuple(_tuples(each) for each in value)
    return {key: _tuples(each) for key, each in value.items()} if isinstance(value, dict) else value


def settings_from(cls: type[S], given: Mapping[str, Any], *, prefix: Prefix = "") -> S:
    """Make settings from a mapping, such as a part of a YAML file."""
    try:
        return cls.model_validate(dict(given))
    except ValidationError as error:
        raise _input_error(cls, error, prefix) from None


def settings_of(kind: type[Any], name: str, *, base: type[S], **nested: type[Settings]) -> type[S]:
    """Make a class of settings from a frozen dataclass, which keeps the names, the defaults and the meanings."""
    meanings = _parameter_meanings(kind.__doc__)
    hints = get_type_hints(kind)
    made: dict[str, Any] = {}
    for each in fields(kind):
        its = nested.get(each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        default = its() if its else dict(default) if isinstance(default, Mapping) else default
        made[each.name] = (its or hints[each.name], Field(default, description=meanings.get(each.name)))
    return create_model(name, __base__=base, __module__=kind.__module__, __doc__=kind.__doc__, **made)


def to_dataclass(kind: type[D], settings: Settings) -> D:
    """Make the dataclass of settings that :func:`settings_of` made; its own checks run."""
    return kind(**{each.name: getattr(settings, each.name) for each in fields(kind)})  # type: ignore[arg-type]


def doc_sections(doc: str | None) -> dict[str, str]:
    """Sections of a numpydoc docstring by their names, headings included; what comes before them is ""."""
    about, *sections = _SECTION.split(inspect.cleandoc(doc or ""))
    return {"": about} | {section.partition("\n")[0]: section.strip() for section in sections}


def _parameter_meanings(doc: str | None) -> dict[str, str]:
    """Meaning of every parameter: estimators say it once, in numpydoc, which needs no package at run time."""
    sections = doc_sections(doc)
    meanings: dict[str, str] = {}
    names: list[str] = []
    for line in (sections.get("Parameters") or sections.get("Attributes", "")).splitlines()[2:]:
        if line and not line.startswith(" "):
            names = [name.strip() for name in line.partition(" : ")[0].split(",")]
        for name in names if line.startswith(" ") else ():
            meanings[name] = f"{meanings.get(name, '')} {line.strip()}".strip()
    return meanings


def numbers_of(kind: type[Any]) -> BeforeValidator:
    """Let a mapping that names some numbers of a dataclass stand for the dataclass, as for the scales of priors."""
    return BeforeValidator(lambda value: from_numbers(kind, value) if isinstance(value, Mapping) else value)


def from_numbers(kind: type[D], given: Mapping[str, Any]) -> D:
    """Make a dataclass of some of its numbers; the others have their defaults."""
    valid = [each.name for each in fields(kind)]  # type: ignore[arg-type]
    for name, number in given.items():
        if name not in valid:
            raise unknown_choice("setting", name, valid)
        if not isinstance(number, int | float) or isinstance(number, bool) or not abs(number) <= _LARGEST:
            raise InputError(f"is {number!r}, should be a number", field=name)
    return kind(**given)


def _input_error(cls: type[BaseModel], error: ValidationError, prefix: Prefix = "") -> InputError:
    """Say the first mistake as every other error says one: place, value, what would be right."""
    mistakes = error.errors(include_url=False)
    # a name that is misspelt is why another has no value
    first = next((each for each in mistakes if each["type"] == "extra_forbidden"), mistakes[0])
    owner, field, path = _walk(cls, first["loc"])
    before = prefix(str(next(iter(first["loc"]), ""))) if callable(prefix) else prefix
    place = before + ".".join(path)
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        return unknown_choice("setting", name, owner.model_fields, source=place.rstrip(".") or None)
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        # a check of several fields names its own, as field or as source
        start, source, names = f"{place}." if path else before, cause.source, cause.field
        if not names and not path:
            source, names = None, source
        own = ", ".join(f"{start}{name}" for name in str(names).split(", ")) if names else place or None
        told = InputError(cause.problem, source=source, field=own)
        told.unknown = cause.unknown
        return told
    if first["type"] == "missing":
        lost = [before + ".".join(_walk(cls, each["loc"])[2]) for each in mistakes if each["type"] == "missing"]
        problem = "have no value yet; give each one" if len(lost) > 1 else "has no value yet; give it one"
        return InputError(problem, field=", ".join(lost))
    if field is None or first["type"] == "value_error":
        return InputError(first["msg"].removeprefix("Value error, "), field=place or None)
    wanted = _wanted(field.annotation, field.metadata)
    names = [str(each) for part in _parts(field.annotation) if get_origin(part) is Literal for each in get_args(part)]
    near = get_close_matches(str(first["input"]), names, n=1) if isinstance(first["input"], str) else []
    meant = f"; did you mean {near[0]!r}?" if near else ""
    given = list(first["input"]) if isinstance(first["input"], tuple) else first["input"]
    said = word(given) if repr(given).isprintable() else f"a {type(given).__name__}"
    return InputError(f"is {said}, should be {wanted}{meant}", field=place)


def _walk(cls: type[BaseModel], loc: tuple[int | str, ...]) -> tuple[type[BaseModel], FieldInfo | None, list[str]]:
    """Follow an error's place through nested settings; the tags that unions add are left out."""
    owner: type[BaseModel] = cls
    field: FieldInfo | None = None
    path: list[str] = []
    keyed = False
    nested: list[type[BaseModel]] = []
    for part in loc:
        if isinstance(part, int):
            path[-1:] = [f"{path[-1]}[{part}]"] if path else [f"[{part}]"]
            continue
        if part not in owner.model_fields:
            # the tag of a union says which settings these are
            owner = next((each for each in nested if _tag_of(each) == part), owner)
            if field is not None and get_origin(field.annotation) in (dict, Mapping) and not keyed:
                path.append(part)
                keyed = True
            continue
        field, keyed = owner.model_fields[part], False
        path.append(part)
        nested = [each for each in _parts(field.annotation) if isinstance(each, type) and issubclass(each, BaseModel)]
        owner = nested[0] if nested else owner
    return owner, field, path


def _tag_of(kind: type[BaseModel]) -> object:
    return kind.model_fields["source"].default if "source" in kind.model_fields else None


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in get_args(annotation):
        yield from _parts(each)


_WORDS = {int: "a whole number", float: "a number", str: "a text", Path: "a path"}


def _wanted(annotation: Any, metadata: Any = (), reader: Reader | None = None) -> str:
    """Say in words what a field takes: ``a number above 0 and below 1``."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        return _wanted(inner, [*more, *metadata], reader)
    if origin is Literal:
        return "one of " + ", ".join(str(value) for value in get_args(annotation))
    if origin in (Union, types.UnionType):
        return " or ".join(_wanted(each, metadata, reader) for each in get_args(annotation))
    if origin in (tuple, list):
        least = any(isinstance(each, annotated_types.MinLen) for each in _flat(metadata))
        return f"a list{' of one or more' if least else ''}, each {_wanted(get_args(annotation)[0], reader=reader)}"
    if origin in (dict, Mapping) or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "a mapping"
    words = {**_WORDS, bool: f"{word(True, reader)} or {word(False, reader)}", type(None): word(None, reader)}
    text = words.get(annotation, f"a {getattr(annotation, '__name__', annotation)}")
    if annotation is str and any(isinstance(each, annotated_types.MinLen) for each in _flat(metadata)):
        text += " that is not empty"
    return text + _range(metadata) if annotation in (int, float) else text


def _flat(metadata: Any) -> list[Any]:
    return [each for item in metadata for each in (getattr(item, "metadata", None) or [item])]


_RANGES = (
    (annotated_types.Gt, "gt", "above {:g}"),
    (annotated_types.Ge, "ge", "{:g} or larger"),
    (annotated_types.Lt, "lt", "below {:g}"),
    (annotated_types.Le, "le", "at most {:g}"),
)


def _range(metadata: Any) -> str:
    found = {type(each): each for each in _flat(metadata)}
    words = [text.format(getattr(found[kind], name)) for kind, name, text in _RANGES if kind in found]
    joined = " and ".join(words)
    return f" {joined}" if joined.startswith(("above", "below", "at")) else f", {joined}" if joined else ""


def ordered_fields(cls: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    """Settings of a class, its own first, then those of its bases; groups come last."""

    def place(item: tuple[str, FieldInfo]) -> tuple[bool, int]:
        name, field = item
        depth = next((at for at, base in enumerate(cls.__mro__) if name in inspect.get_annotations(base)), 0)
        value = field.default_factory() if field.default_factory else field.default  # type: ignore[call-arg]
        return isinstance(value, Settings | Mapping) or is_dataclass(value), depth

    return sorted(cls.model_fields.items(), key=place)


@cache
def field_meanings(cls: type[Settings]) -> Mapping[str, str]:
    """The strings under a class's fields, and under those of its bases.

    Pydantic's ``use_attribute_docstrings`` reads them when a class is made: 0.5 s of every command's start.
    """
    found: dict[str, str] = {}
    for each in (its for its in reversed(cls.__mro__) if issubclass(its, Settings)):
        try:
            (made,) = ast.parse(dedent(inspect.getsource(each))).body
        except (OSError, TypeError, SyntaxError):  # typed in, made by a call, or inside a function with odd margins
            continue
        for field, under in pairwise(made.body if isinstance(made, ast.ClassDef) else ()):
            match field, under:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                    found[name] = inspect.cleandoc(text)
    return found


def setting_lines(
    cls: type[Settings],
    prefix: Prefix = "",
    default: Settings | None = None,
    *,
    reader: Reader = "command",
) -> list[tuple[str, str, str, str]]:
    """List every setting: name, default, what it takes, what it means; nested ones too."""
    in_python = reader == "python"
    lines, write = [], repr if in_python else _shown
    for name, field in ordered_fields(cls):
        key = (prefix(name) if callable(prefix) else prefix) + name
        made = field.get_default(call_default_factory=True)
        value = getattr(default, name) if default else made
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            its = value if isinstance(value, Settings) else None
            lines += setting_lines(field.annotation, f"{key}.", its, reader=reader)
        elif is_dataclass(value):
            meanings = _parameter_meanings(type(value).__doc__)
            numbers = [(each.name, getattr(value, each.name)) for each in fields(value)]
            lines += [(f"{key}.{part}", write(it), "a number", meanings.get(part, "")) for part, it in numbers]
        else:
            required = default is None and field.is_required()
            meaning = " ".join((field.description or field_meanings(cls).get(name, "")).split())
            text = ("" if in_python else "???") if required else write(value)
            lines.append((key, text, _wanted(field.annotation, field.metadata, reader), meaning))
            # a group that may be absent, or one by name
            each = ".NAME" * (get_origin(field.annotation) in (dict, Mapping))
            for inner in get_args(field.annotation):
                if isinstance(inner, type) and issubclass(inner, Settings):
                    lines += setting_lines(inner, f"{key}{each}.", reader=reader)
    return lines


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return word(value, "command")
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)
