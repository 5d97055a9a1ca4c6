"""What a person sees of a result: one line as text, a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

__all__ = ["Summarised", "Table", "interval_rows"]

Table = pd.DataFrame
"""What :meth:`Summarised.summary` gives."""


class Summarised:
    """Base of results: a class gives :meth:`summary` and :meth:`headline`, and has ``repr=False`` as a dataclass."""

    def summary(self) -> Table:
        """Numbers of the result that a person wants to see."""
        raise NotImplementedError

    def headline(self) -> str:
        """Say the result in a few words."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.summary().to_html()}"


def interval_rows(draws: Mapping[str, ArrayLike], *, probability: float = 0.9) -> Table:
    """Median and equal-tailed interval of each quantity's draws.

    Parameters
    ----------
    draws : mapping of str to array_like
        Draws, of any shape, by the name of the quantity.
    probability : float
        Of the intervals.

    Returns
    -------
    pandas.DataFrame
        Columns ``median``, ``lower``, ``upper``; a row a quantity.

    Examples
    --------
    >>> from inference.summary import interval_rows
    >>> interval_rows({"gap_nats": range(101)}, probability=0.8)
              median  lower  upper
    gap_nats    50.0   10.0   90.0
    """
    tail = (1 - probability) / 2
    rows: dict[str, Any] = {
        name: np.quantile(np.asarray(values), [0.5, tail, 1 - tail]) for name, values in draws.items()
    }
    return Table.from_dict(rows, orient="index", columns=["median", "lower", "upper"])
