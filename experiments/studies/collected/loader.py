"""``study=collected``: what people answered in ``+exp=collect``, as the study that its game gives."""

from __future__ import annotations

from collections.abc import Callable

import xarray as xr

from shannon_game.experiments.collect.games.registry import GAMES
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.collected.answers import Collected, read_collection
from shannon_game.experiments.studies.collected.comparison import collected_comparisons
from shannon_game.experiments.studies.collected.settings import CollectedSettings
from shannon_game.experiments.studies.collected.words import collected_bets, collected_guesses, collected_words
from shannon_game.experiments.studies.parsing import Note, add_notes
from shannon_game.inference.progress import counted

_STUDIES: dict[str, Callable[[Collected, CollectedSettings], xr.Dataset]] = {
    "comparison": lambda found, settings: collected_comparisons(found, settings.served),
    "cloze": collected_words,
    "guess": lambda found, _: collected_guesses(found),
    "bet": lambda found, _: collected_bets(found),
}


@loader(CollectedSettings)
def collected_study(settings: CollectedSettings) -> xr.Dataset:
    """Load the answers of one game from the database of ``collect``.

    A study of the game's kind (its ``kind``), which the attribute ``kind`` names. Participants are
    pseudonyms. Answers of training rounds, attention checks, pilots and people who withdrew are left out, and
    counted in the notes.
    """
    found = read_collection(settings)
    kind = GAMES[settings.game].kind
    study = _STUDIES[kind](found, settings)
    people, items = found.answers["participant"].nunique(), found.answers["item"].nunique()
    n_answers = len(found.answers.drop_duplicates(["session", "order"]))
    text = f"answers that count, by {counted(people, 'participant')} on {counted(items, 'question')}"
    add_notes(study, [*found.notes, Note(text, n_answers)])
    return study.assign_attrs(kind=kind, game=settings.game)
