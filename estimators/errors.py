"""The one exception that means "your input is wrong", wherever it is found."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["InputError", "unknown_choice"]


class InputError(ValueError):
    """Bad input: the message names the source, the field, the value and what would be right.

    Parameters
    ----------
    problem : str
        What is wrong and what would be right, as one sentence.
    source : str, optional
        The file, dataset or argument group in which it was found.
    field : str, optional
        The field, column, variable or parameter.
    """

    def __init__(self, problem: str, *, source: object = None, field: object = None) -> None:
        place = ", ".join(str(part) for part in (source, field) if part is not None)
        super().__init__(f"{place}: {problem}" if place else problem)


def unknown_choice(what: str, value: object, valid: Iterable[object], *, source: object = None) -> InputError:
    """Build the error for a name that is not among the valid ones, which it lists.

    Parameters
    ----------
    what : str
        What the name should have named, for example ``"rounding"``.
    value : object
        The name that was given.
    valid : iterable
        The names that exist.
    source : object, optional
        Where the name was read.

    Returns
    -------
    InputError
    """
    names = ", ".join(str(name) for name in valid)
    return InputError(f"unknown {what} {value!r}; choose one of: {names}", source=source)
