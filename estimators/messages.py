"""Settings in messages, as data: written as on the command line, ``study.missing=drop``; in Python, ``missing='drop'``.

Whoever reads a message is known while it is made, so each part is written once, and no text is ever searched for names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

Reader = Literal["python", "command"]
_UNSET: Any = object()

# what Hydra reads as the text that it is; letters beyond ASCII are none to its grammar
_PLAIN = re.compile(r"(?!(?i:null|true|false|inf|nan)\Z)(?!\.?[0-9])[\w./@][\w./@-]*", flags=re.ASCII)
_BEFORE_QUOTE = re.compile(r"(\\+)('|$)")
_SAFE_IN_A_SHELL = re.compile(r"[\w./@+=,:\[\]-]*", flags=re.ASCII)
# functions of Python whose name on the command line is another one
_FUNCTIONS = {"designed": "designed_simulated", "collected": "collected_study", "cloze_groups": "cloze_simulated"}

# of the process, not of the thread: what a command starts in threads has the same reader
_readers: list[Reader] = ["python"]


@contextmanager
def for_command() -> Iterator[None]:
    """Write messages for a reader of the command line, instead of one of Python."""
    _readers.append("command")
    try:
        yield
    finally:
        _readers.pop()


def word(value: object, reader: Reader | None = None) -> str:
    """Null, true or false as its reader writes it; anything else as Python shows it."""
    is_yaml = (reader or _readers[-1]) == "command" and (value is None or isinstance(value, bool))
    return in_yaml(value) if is_yaml else repr(value)


@dataclass(frozen=True)
class Set:
    """A setting, with a value or without; ``...`` stands for any value, and a text in capitals for one to fill in.

    Examples
    --------
    >>> from shannon_game.estimators.messages import Set, for_command
    >>> f"{Set('study.missing', 'drop')} leaves them out"
    "missing='drop' leaves them out"
    >>> with for_command():
    ...     f"{Set('study.missing', 'drop')} leaves them out"
    'study.missing=drop leaves them out'
    """

    name: str
    """As on the command line."""
    value: Any = _UNSET

    def __str__(self) -> str:
        if _readers[-1] == "command":
            return self.name if self.value is _UNSET else for_shell(f"{self.name}={in_yaml(self.value)}")
        first, *rest = self.name.split(".")[self.name.startswith(("study.", "experiment.")) :]
        value = self.value
        if first == "model":
            # a file of conf has more than the name
            first, value = "models", value if value is _UNSET else {name: {"source": name, ...: ...} for name in value}
        if value is _UNSET:
            return ".".join([first, *rest])
        for part in reversed(rest):
            value = {part: value}
        return f"{first}={_in_python(value)}"


@dataclass(frozen=True)
class Ask:
    """A question, ``+exp=NAME``, in Python a function."""

    name: str

    def __str__(self) -> str:
        return f"+exp={self.name}" if _readers[-1] == "command" else f"{self.name}()"


@dataclass(frozen=True)
class Load:
    """A study, ``study=NAME``, with settings; in Python a function."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [str(Set(f"study.{name}", value)) for name, value in self.settings.items()]
        if _readers[-1] == "command":
            return " ".join([f"study={self.name}", *words])
        return f"{_FUNCTIONS.get(self.name, self.name)}({', '.join(words)})"


def quoted(text: str) -> str:
    """A string as Hydra's grammar of overrides reads it, whatever it holds."""
    if _PLAIN.fullmatch(text):
        return text
    # a backslash counts only before a quote
    escaped = _BEFORE_QUOTE.sub(r"\1\1\2", text).replace("'", "\\'")
    return f"'{escaped}'"


def for_shell(text: str) -> str:
    """A word of a command, in quotes where a shell would read signs of it."""
    if _SAFE_IN_A_SHELL.fullmatch(text):
        return text
    return f'"{text}"' if "'" in text and not set(text) & set('"\\$`!') else shlex.quote(text)


def in_yaml(value: Any) -> str:
    """Value of a setting as the command line has it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {in_yaml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(in_yaml, value))}]"
    if isinstance(value, str):
        return quoted(value)
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else _in_python(value)


def _in_python(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (("...",) if key is ... else (repr(key), _in_python(each)) for key, each in value.items())
        return "{" + ", ".join(": ".join(pair) for pair in pairs) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_in_python, value))}]"
    return "..." if value is ... else repr(value)
