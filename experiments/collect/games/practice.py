"""Practice that no study needs: texts whose next word is obvious, so that whoever has read the rules is right."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from shannon_game.experiments.collect.games.protocol import PRACTICE, Game, QuestionRow
from shannon_game.experiments.harness.yaml_text import parse_yaml

if TYPE_CHECKING:
    from shannon_game.experiments.collect.settings import CollectSettings

_FILE = Path(__file__).parents[1] / "data" / "practice.yaml"


@cache
def _all() -> dict[str, list[dict[str, str]]]:
    """Texts by language, each with the word that obviously follows and one that does not."""
    found: dict[str, list[dict[str, str]]] = parse_yaml(_FILE.read_text(encoding="utf-8"), _FILE)
    return found


def obvious_words() -> dict[str, str]:
    """The word that obviously follows each text, in all languages."""
    return {each["context"]: each["word"] for texts in _all().values() for each in texts}


def practice_rows(name: str, game: Game, settings: CollectSettings) -> list[QuestionRow]:
    """Make the training of a game, each of texts of its own; nothing where too few are in the language.

    A game that goes through a text practises on one of the study's.
    """
    games = [each for each in settings.game if not settings.goes_on(each)]
    if name not in games:
        return []
    bank = _all().get((settings.text_language or "en").split("-")[0], [])
    # a text is of one game, and keeps its number
    texts = dict(list(enumerate(bank))[games.index(name) :: len(games)])
    if not 0 < settings.block(name).training_rounds <= len(texts):
        return []
    contents = {at: {"context": each["context"], "target": each["word"], PRACTICE: True} for at, each in texts.items()}
    return [
        QuestionRow(f"practice-{at}", game.practised(contents[at], each["other"], settings))
        for at, each in texts.items()
    ]
