"""What parsers of public files share: notes, JSON, strings, and how a value is shown in a message."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError
from estimators.layout import add_note

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Note", "add_notes", "objects", "parse_json", "shown", "some_of", "whole_characters"]

_SHOWN = 80


@dataclass(frozen=True)
class Note:
    """A note for the study, see :func:`estimators.layout.add_note`."""

    text: str
    count: int | None = None
    level: Literal["info", "warning"] = "info"


def add_notes(study: xr.Dataset, notes: Iterable[Note]) -> None:
    """Append notes to those of the study."""
    for note in notes:
        add_note(study, note.text, count=note.count, level=note.level)


def parse_json(content: bytes | str, source: object, field: object = None) -> Any:
    """Parse JSON; InputError names the place where it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"is not valid JSON ({error}); it has {len(content)} bytes and may be truncated", source=source, field=field
        ) from None


def objects(strings: Sequence[str]) -> NDArray[np.object_]:
    """Array of ``str`` objects, which lose nothing: NumPy's own strings drop null characters at the end."""
    array = np.empty(len(strings), dtype=object)
    array[:] = strings
    return array


def whole_characters(text: str) -> str:
    """Replace halves of surrogate pairs, which JSON can hold and UTF-8 cannot, by U+FFFD; two that fit are joined."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shown(value: object) -> str:
    """Show a value in a message, cut short where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def some_of(names: Sequence[str], listed: int = 5) -> str:
    """List the first names in a message, and how many more there are."""
    return ", ".join(names[:listed]) + (f" and {len(names) - listed} more" if len(names) > listed else "")
