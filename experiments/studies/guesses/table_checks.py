"""Whether a table's own column of right and wrong fits its guesses and targets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from estimators.layout import response_positions
from experiments.studies.cells import bare
from experiments.studies.parsing import Note, shown
from experiments.studies.plain_table import Table

__all__ = ["contradictions"]


def contradictions(study: xr.Dataset, table: Table, columns: Mapping[str, str]) -> list[Note]:
    """Compare the column of right and wrong with guess and target; whoever scored may have let a spelling pass."""
    if "correct" not in columns or "guess" not in study or "target_token" not in study:
        return []
    guess, correct = study["guess"].to_numpy(), study["correct"].to_numpy()
    target = study["target_token"].to_numpy()[response_positions(study)]
    wrong = ~correct & (guess == target)
    right = correct & (bare(guess) != bare(target))
    if 2 * int(wrong.sum() + right.sum()) > correct.size:
        row = int(np.flatnonzero(wrong | right)[0])
        raise table.error(
            f"says that {shown(guess[row])} for {shown(target[row])} is {'right' if correct[row] else 'wrong'} in "
            f"{table.where(int(study['table_row'][row]) - 1)} ({int(wrong.sum() + right.sum())} of {correct.size} rows "
            "contradict guess and target); is it inverted?",
            columns["correct"],
        )
    found = (
        Note("guesses that are the target and are wrong by the table; taken as wrong", int(wrong.sum()), "warning"),
        Note("guesses that are not the target and are right by the table; taken as right", int(right.sum())),
    )
    return [note for note in found if note.count]
