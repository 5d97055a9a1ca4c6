"""Filters of rows: every row that one leaves out is counted, and a filter that leaves nothing is an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.parsing import Note, some_of

__all__ = ["Kept", "first_of_key"]


@dataclass
class Kept:
    """Positions of the rows that the filters have left, what the rows are (``"answers"``), and what was noted."""

    at: NDArray[np.intp]
    of: str
    source: str
    notes: list[Note] = field(default_factory=list)

    def keep(self, mask: NDArray[np.bool_], what: str, setting: str | None = None) -> None:
        """Keep the rows, of those left, where `mask` holds, and note how many went."""
        dropped = int((~mask).sum())
        if mask.size and not mask.any():
            raise InputError(
                f"leaves no {self.of}: all {mask.size} that were left are {what}", source=self.source, field=setting
            )
        self.at = self.at[mask]
        if dropped:
            self.notes.append(Note(f"{self.of} left out{f' ({setting})' if setting else ''}: {what}", dropped))

    def exclude(self, names: Sequence[str], people: NDArray[Any], known: Sequence[str] = ()) -> None:
        """Leave out participants by name."""
        present = list(dict.fromkeys(map(str, people.tolist())))
        for name in names:
            if name not in present and name not in known:
                raise InputError(
                    f"there is no participant {name!r} among the {len(present)}; they are called {some_of(present)}",
                    source=self.source,
                    field="exclude_participants",
                )
        mask = ~np.isin(people[self.at].astype(str), names)
        self.keep(mask, f"by the {len(set(names))} excluded participants", "exclude_participants")

    def keep_repeats(
        self,
        keys: NDArray[np.int64],
        how: str,
        *,
        row_id: NDArray[np.int64],
        said: Callable[[int], str],
        kept: str,
        left_out: str,
    ) -> None:
        """Do with rows of one key what the setting ``repeats`` says."""
        first = first_of_key(keys)
        again = ~first
        if not again.any():
            return
        if how == "error":
            row = int(self.at[again][0])
            raise InputError(
                f"{said(row)} more than once ({int(again.sum())} such {self.of}, this one has row_id {row_id[row]}); "
                "study.repeats=first, last or keep says what to do",
                source=self.source,
                field="repeats",
            )
        if how == "keep":
            self.notes.append(Note(kept, int(again.sum())))
            return
        self.keep(
            first if how == "first" else first_of_key(keys[::-1])[::-1],
            f"{left_out}; the {how} one counts",
            f"repeats={how}",
        )


def first_of_key(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the first row of every key."""
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, axis=0, return_index=True)[1]] = True
    return first
