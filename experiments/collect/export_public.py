"""A collection in the public layout of the original site, so that its authors' own programs read it."""

from __future__ import annotations

from pathlib import Path

from estimators.errors import InputError
from experiments.studies.collected.loader import collected_study
from experiments.studies.collected.settings import CollectedSettings
from experiments.studies.comparison.lm_game_write import write_lm_game

__all__ = ["PUBLIC_GAMES", "write_public"]

PUBLIC_GAMES = ("comparison",)
"""Games that the original site had, of those that a collection can hold."""


def write_public(settings: CollectedSettings, folder: Path | str) -> Path:
    """Write the answers of a game as the files of the original site.

    Comparison: ``multi_comparisons/doc{i}.json``, questions numbered from 0 in the order in which they were served, and
    ``results_raw/res_loss_anonym.json``. ``study=lm_game study.root=FOLDER`` reads them, with ``study.sets`` and
    ``study.reference`` [0, number of questions - 1], ``study.participants=all`` and ``study.repeats=keep``.

    Parameters
    ----------
    settings : CollectedSettings
        Which answers count.
    folder : Path or str

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        If the original site had no such game, or the database holds no such answers.
    """
    if settings.game not in PUBLIC_GAMES:
        problem = f"is {settings.game!r}; the original site had {' and '.join(PUBLIC_GAMES)}"
        raise InputError(problem, field="game")
    return write_lm_game(collected_study(settings), folder)
