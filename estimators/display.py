"""How results are shown: one line, a text, a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from html import escape
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.arrays import DataFrame
from shannon_game.estimators.errors import InputError

# format characters but those that join letters, which are part of the spelling
INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_ROWS_SHOWN = 10
_FIELDS_SHOWN = 4
_SHORT = 40


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Base of results: dataclasses that people look at in a notebook."""

    made_by: ClassVar[str] = ""

    @classmethod
    def require(cls, **values: object) -> None:
        """Refuse arguments that are not of this class, and say what makes one."""
        for name, value in values.items():
            if not isinstance(value, cls):
                problem = f"is a {type(value).__name__}, should be {cls.__name__}; {cls.made_by} makes one"
                raise InputError(problem, field=name)

    def __repr__(self) -> str:
        values = self._values()
        numbers = {name: value for name, value in values.items() if isinstance(value, (str, float, int, np.generic))}
        shown = [f"{name}={_short(value)}" for name, value in (numbers or values).items()]
        more = ["..."] if len(shown) > _FIELDS_SHOWN else []
        return f"{type(self).__name__}({', '.join([*shown[:_FIELDS_SHOWN], *more])})"

    def summary(self) -> DataFrame:
        """Table of the arrays that are as long as the first, or one row of the numbers where there is no array."""
        import pandas as pd  # noqa: PLC0415 - seconds that importing estimators should not cost

        return pd.DataFrame(self._columns())

    def _repr_html_(self) -> str:
        table = self.summary()
        more = f"<p>{len(table) - _ROWS_SHOWN} more rows</p>" if len(table) > _ROWS_SHOWN else ""
        return f"<p>{escape(repr(self))}</p>{table.head(_ROWS_SHOWN).to_html()}{more}"

    def _values(self) -> dict[str, Any]:
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.repr}

    def _columns(self) -> dict[str, Any]:
        values = self._values()
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray) and value.ndim == 1}
        if not arrays:
            return {name: [value] for name, value in values.items() if isinstance(value, (str, float, int, np.generic))}
        length = len(next(iter(arrays.values())))
        return {name: value for name, value in arrays.items() if len(value) == length}


def interval_rows(draws: Mapping[str, ArrayLike], *, probability: float = 0.9) -> DataFrame:
    """Median and equal-tailed interval of each quantity's draws."""
    import pandas as pd  # noqa: PLC0415 - seconds that importing estimators should not cost

    tail = (1 - probability) / 2
    rows = {name: np.quantile(np.asarray(values), [0.5, tail, 1 - tail]) for name, values in draws.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["median", "lower", "upper"])


def _short(value: object) -> str:
    """Write a value in a few characters."""
    if isinstance(value, Result):
        return repr(value) if len(repr(value)) <= _SHORT else f"{type(value).__name__}(...)"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, (bool, np.bool_, str)) or value is None:
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_short(one)}" for key, one in value.items()) + "}"
    text = str(value)
    return text if len(text) <= _SHORT else f"{type(value).__name__}(...)"
