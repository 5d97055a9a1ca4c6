"""``study=collected``: what people answered in ``+exp=collect``, as the study that its game gives."""

from __future__ import annotations

import xarray as xr

from shannon_game.experiments.collect.settings import GameName
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.collected.answers import read_collection
from shannon_game.experiments.studies.collected.comparison import collected_comparisons
from shannon_game.experiments.studies.collected.settings import CollectedSettings
from shannon_game.experiments.studies.collected.words import collected_bets, collected_guesses, collected_words
from shannon_game.experiments.studies.parsing import Note, add_notes
from shannon_game.inference.progress import counted

KIND_OF_GAME: dict[GameName, str] = {
    "comparison": "comparison",
    "cloze": "cloze",
    "top1": "guess",
    "guess_until_right": "guess",
    "bets": "bet",
}
"""Kind of study that each game gives."""


@loader(CollectedSettings)
def collected_study(settings: CollectedSettings) -> xr.Dataset:
    """Load the answers of one game from the database of ``collect``.

    A study of the game's kind (:data:`KIND_OF_GAME`), which the attribute ``kind`` names. Participants are
    pseudonyms. Answers of training rounds, attention checks, pilots and people who withdrew are left out, and
    counted in the notes.
    """
    found = read_collection(settings)
    if settings.game == "comparison":
        study = collected_comparisons(found, settings.served)
    elif settings.game == "cloze":
        study = collected_words(found, settings)
    elif settings.game == "bets":
        study = collected_bets(found)
    else:
        study = collected_guesses(found)
    people, items = found.answers["participant"].nunique(), found.answers["item"].nunique()
    n_answers = len(found.answers.drop_duplicates(["session", "order"]))
    text = f"answers that count, by {counted(people, 'participant')} on {counted(items, 'question')}"
    add_notes(study, [*found.notes, Note(text, n_answers)])
    return study.assign_attrs(kind=KIND_OF_GAME[settings.game], game=settings.game)
