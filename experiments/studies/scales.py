"""Whether the values of a column are on the scale that the settings say: fractions among percentages, shares for chips.

On a scale of 100 a value is small if it is above 0 and below 1, as a fraction is and a whole percentage or chip never.
Refused are a participant with :data:`ENOUGH` values or more, none above 1 and one of them small, and a table a quarter
of whose values are small. Fewer values of a participant are noted: 0.5 % may be what somebody meant. On a scale of 1
small values are honest; refused is a table none of whose values, :data:`ENOUGH` or more, is above a hundredth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shannon_game.experiments.studies.parsing import Note, shown
from shannon_game.experiments.studies.plain_table import Table

ENOUGH = 3
"""Values of one participant that are not all small by chance."""

_PART = 0.25
_SMALLEST_WIDE = 10


def check_scale(
    table: Table,
    column: str,
    values: NDArray[np.float64],
    rows: NDArray[np.intp],
    *,
    top: float,
    cure: str,
    least: NDArray[np.float64] | None = None,
) -> None:
    """Refuse values, in some rows of the table, that are on another scale than from 0 to `top`."""
    wide = top >= _SMALLEST_WIDE
    right = f"should be on a scale from 0 to {top:g}; {cure}"
    low = values <= (1.0 if wide else top / 100) * (1 + 1e-9)
    if low.all() and values.size >= ENOUGH and not wide and (values > 0).any():
        raise table.error(f"is at most {values.max():g}, {right}", column)
    parts = values if least is None else least
    small = low & (parts > 0) & (parts < 1)
    if not wide or not small.any():
        return
    names, code = np.unique(table.texts("participant")[rows].astype(str), return_inverse=True)
    n = np.bincount(code)
    odd = (np.bincount(code, low) == n) & (np.bincount(code, small) > 0)
    sure = odd & (n >= ENOUGH)
    first = int(np.flatnonzero(small & sure[code] if sure.any() else small)[0])
    where = table.where(rows[first])
    if sure.any() or small.mean() >= _PART:
        whose = f"none of the {n[code[first]]} of {shown(str(names[code[first]]))} is above 1"
        found = whose if sure.any() else f"{int(small.sum())} of {small.size} are below 1"
        raise table.error(f"is {parts[first]:g} in {where} ({found}), {right}", column)
    if odd.any():
        text = f"participants with too few values to tell, none above 1 on a scale from 0 to {top:g}; taken as they are"
        table.notes.append(Note(text, int(odd.sum()), "warning"))
    elif small.sum() > 1:
        text = f"values of {column} between 0 and 1 on a scale from 0 to {top:g}, taken as they are (first: {where})"
        table.notes.append(Note(text, int(small.sum()), "warning"))
