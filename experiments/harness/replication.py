"""Experiments made of many independent fits: where those are stored, how many run at a time."""

from __future__ import annotations

from pathlib import Path

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import word
from shannon_game.inference.settings import Count, Settings, UserPath

REPLICATES = "replicates.jsonl"
"""Name of the file in the output folder of a run."""

PARTS = "parts"
"""Name of the folder, in the output folder of a run, of runs that it starts."""


class ReplicationSettings(Settings):
    """Settings of an experiment that makes many independent fits."""

    replicates: UserPath | None = None
    """File with the fits done, to go on with; null starts a new one in the output folder."""
    set_aside: bool = False
    """Rename a file of other settings or code and begin anew, instead of refusing it; so in the output folder."""
    n_jobs: Count = 1
    """Processes at a time."""


def replicates_path(settings: ReplicationSettings) -> Path:
    """File of the fits."""
    if settings.replicates is None:
        raise InputError(f"is {word(None)}, and there is no output folder; name a file", field="replicates")
    return settings.replicates
