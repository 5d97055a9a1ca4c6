"""How a table stands in its file: the settings that all loaders of tables share."""

from __future__ import annotations

import codecs
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.inference.settings import Settings

__all__ = ["SEPARATORS", "CellTexts", "TableFile"]

SEPARATORS = {"comma": ",", "tab": "\t", "semicolon": ";", "pipe": "|"}
"""Separators by name."""


def _separator(name: str) -> str:
    if name not in ("auto", *SEPARATORS) and len(name) != 1:
        raise unknown_choice("separator", name, ("auto", *SEPARATORS, "a single character"))
    return SEPARATORS.get(name, name)


def _encoding(name: str) -> str:
    """Python also calls zlib and rot13 encodings, and one that fails on everything."""
    try:
        known = name == "auto" or (codecs.lookup(name)._is_text_encoding and "a,\n".encode(name).decode(name) == "a,\n")
    except (LookupError, ValueError):
        known = False
    if not known:
        right = "auto, or an encoding of text that Python knows, such as utf-8, utf-16, cp1252, latin-1 or mac-roman"
        raise InputError(f"is {name!r}, should be {right}")
    return name


def _as_written(given: object) -> object:
    """A command line reads -99 as a number, and a cell is a text."""
    if not isinstance(given, tuple | list):
        return given
    return tuple(str(each) if isinstance(each, int | float) and not isinstance(each, bool) else each for each in given)


CellTexts = Annotated[tuple[str, ...], BeforeValidator(_as_written)]
"""Texts of cells; numbers stand for themselves."""


class TableFile(Settings):
    """How a table stands in its file; Parquet files need none of it."""

    separator: Annotated[str, AfterValidator(_separator)] = "auto"
    """auto takes the one that gives the columns; or comma, tab, semicolon, pipe, or a character."""
    encoding: Annotated[str, AfterValidator(_encoding)] = "auto"
    """auto is UTF-8 (or UTF-16 with its mark), else Windows-1252 with a warning; or the name of an encoding."""
    quoting: Literal["auto", "standard", "none"] = "auto"
    """What quotation marks around a field do: standard lets it hold separators and line breaks; auto is the same, and
    refuses fields that swallow whole rows; none takes them for characters like others."""
    decimal: Literal["auto", "point", "comma"] = "auto"
    """What stands in a decimal number; auto also takes a comma (counted) in a column where no cell has a point."""
    empty: CellTexts = ()
    """Texts that stand for an empty cell, such as [NA, -99]."""
