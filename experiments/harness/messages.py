"""Settings in messages: written as on the command line, ``study.missing=drop``; in Python, ``missing='drop'``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files

from shannon_game.estimators.errors import InputError

_FROM_COMMAND = ContextVar("_FROM_COMMAND", default=False)
_VALUE = r"(\{[^}]*\}|\[[^\]]*\]|(?:[^\s,;:.()\[\]{}'\"`]|[.:/](?=[\w/{]))+)"
_KEY = r"(?:experiment|study|sampler|models|generator|estimator|rounding|data)\.(?!nc\b)\w+(?:\.\w+)*"
_STUDY = re.compile(rf"\bstudy=([a-z]\w+)((?: study\.\w+={_VALUE})*)")
_SETTING = re.compile(rf"'?\b({_KEY})(?:={_VALUE}'?)?")
_MODEL = re.compile(r"\bmodel=\[?(\w+)\]?")
_YAML = {"null": "None", "true": "True", "false": "False"}


@contextmanager
def from_command() -> Iterator[None]:
    """Leave messages as the command line writes them."""
    token = _FROM_COMMAND.set(True)
    try:
        yield
    finally:
        _FROM_COMMAND.reset(token)


@contextmanager
def spoken() -> Iterator[None]:
    """Let errors name settings as the caller wrote them."""
    try:
        yield
    except InputError as error:
        if _FROM_COMMAND.get():
            raise
        raise InputError(in_python(str(error))) from error.__cause__


def as_called(text: str) -> str:
    """Text that names settings as the caller wrote them."""
    return text if _FROM_COMMAND.get() else in_python(text)


def in_python(text: str) -> str:
    """Text whose settings and commands are written in Python."""
    text = _STUDY.sub(lambda found: f"{function_of('study', found[1])}({_arguments(found[2])})", text)
    text = re.sub(r"\+exp=(\w+)", r"\1()", text)
    text = _MODEL.sub(lambda found: f"models={{'{found[1]}': {{'source': '{found[1]}', ...}}}}", text)
    text = _SETTING.sub(lambda found: _argument(found[1], found[2]), text)
    text = re.sub(r"^(?:settings, )?model:", "models:", text).removeprefix("settings, ")
    return re.sub(r"\btrue or false\b", "True or False", re.sub(r"\bnull\b(?! char)", "None", text))


def _arguments(words: str) -> str:
    return ", ".join(_argument(*word.split("=", 1)) for word in words.split())


def _argument(key: str, value: str | None = None) -> str:
    parts = key.split(".")[key.startswith(("experiment.", "study.")) :]
    if value is None:
        return ".".join(parts)
    text = _value(value)
    for part in reversed(parts[1:]):
        text = f"{{'{part}': {text}}}"
    return f"{parts[0]}={text}"


def _value(text: str) -> str:
    if text[0] in "{[":
        pieces = [piece.strip() for piece in text[1:-1].split(",") if piece.strip()]
        pairs = [piece.partition(": ") for piece in pieces]
        inner = [f"{key!r}: {_value(its)}" if sign else _value(key) for key, sign, its in pairs]
        return f"{text[0]}{', '.join(inner)}{'}' if text[0] == '{' else ']'}"
    is_literal = re.fullmatch(r"-?[\d.]+(e-?\d+)?|N|\.\.\.|\{.*", text)
    return _YAML.get(text) or (text if is_literal else repr(text.strip("'")))


@cache
def _shipped(group: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Name in our own ``conf/GROUP`` -> function and kinds, read without Hydra, as the help of Python does."""
    found = {}
    for file in sorted((files("shannon_game.conf") / group).iterdir(), key=lambda file: file.name):
        text = file.read_text(encoding="utf-8") if file.name.endswith(".yaml") else ""
        if target := re.search(r"_target_: \S*\.(\w+)$", text, flags=re.MULTILINE):
            kinds = re.search(r"^ *kind: (.*)$", text, flags=re.MULTILINE)
            found[file.name.removesuffix(".yaml")] = target[1], tuple(re.findall(r"\w+", kinds[1] if kinds else ""))
    return found


def function_of(group: str, name: str) -> str:
    """Public function behind a name of the command line."""
    return _shipped(group)[name][0] if name in _shipped(group) else name


def kinds_of(group: str, function: str) -> list[str]:
    """Kinds of study that a public function takes, or gives."""
    return list(dict.fromkeys(kind for its, kinds in _shipped(group).values() if its == function for kind in kinds))


def makers(kinds: Collection[str]) -> list[str]:
    """Public functions that give a study of one of these kinds."""
    loaders = [function for function, its in _shipped("study").values() if set(its) & set(kinds)]
    frames = {"text_study": "texts"} | {f"{kind}_study": f"{kind}_table" for kind in kinds}
    return sorted({*loaders, *(name for name, table in frames.items() if table in loaders)})
