"""Filters of rows: every row that one leaves out is counted, and a filter that leaves nothing is an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.parsing import Note, some_of


@dataclass
class Kept:
    """Rows that the filters have left, with ``row_id`` and ``participant``; what they are (``"answers"``); notes."""

    rows: pd.DataFrame
    of: str
    source: str
    notes: list[Note] = field(default_factory=list)

    def keep(self, mask: pd.Series[bool] | NDArray[np.bool_], what: str, setting: str | None = None) -> None:
        """Keep the rows, of those left, where `mask` holds, and note how many went."""
        dropped = int((~mask).sum())
        if mask.size and dropped == mask.size:
            raise InputError(
                f"leaves no {self.of}: all {mask.size} that were left are {what}", source=self.source, field=setting
            )
        self.rows = self.rows[mask]
        if dropped:
            self.notes.append(Note(f"{self.of} left out{f' ({setting})' if setting else ''}: {what}", dropped))

    def exclude(self, names: Sequence[str], people: Sequence[str], known: Sequence[str] = ()) -> None:
        """Leave out participants by name; `people` are all that there are."""
        present = list(dict.fromkeys(people))
        for name in names:
            if name not in present and name not in known:
                raise InputError(
                    f"there is no participant {name!r} among the {len(present)}; they are called {some_of(present)}",
                    source=self.source,
                    field="exclude_participants",
                )
        text = f"by the {len(set(names))} excluded participants"
        self.keep(~self.rows["participant"].isin(names), text, "exclude_participants")

    def keep_repeats(self, by: list[str], how: Any, *, said: str, kept: str, left_out: str) -> None:
        """Do with rows that agree in some columns what the setting ``repeats`` says; `said` is filled by a row."""
        again = self.rows.duplicated(by)
        if not again.any():
            return
        if how == "error":
            row = self.rows[again].iloc[0]
            raise InputError(
                f"{said.format(**row)} more than once ({int(again.sum())} such {self.of}, this one has row_id "
                f"{row['row_id']}); study.repeats=first, last or keep says what to do",
                source=self.source,
                field="repeats",
            )
        if how == "keep":
            self.notes.append(Note(kept, int(again.sum())))
        else:
            self.keep(~self.rows.duplicated(by, keep=how), f"{left_out}; the {how} one counts", f"repeats={how}")
