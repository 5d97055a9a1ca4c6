"""Settings of the loader of a collection: where it is, which game, which sessions count."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from shannon_game.experiments.collect.settings import GameName
from shannon_game.experiments.studies.cloze.rows import WordRulesName
from shannon_game.inference.settings import Names, Positive, Probability, Settings, Text, UserPath


class CollectedSettings(Settings):
    url: Text = "sqlite:///collect.sqlite"
    """The database that ``collect`` wrote: sqlite:///FILE, or postgresql://USER@HOST/NAME."""
    game: GameName = "comparison"
    """Which game's answers: comparison gives a comparison study, cloze a cloze study, top1 and guess_until_right guess
    studies, bets a bet study."""
    collection: Text | None = None
    """Name or number of the study that was served; needed where the database holds answers to several."""
    sessions: Literal["all", "complete"] = "all"
    """Sessions that count: all, or those that came to their end. Withdrawn ones never count."""
    pilot: bool = False
    """Count the sessions of a pilot, and no others."""
    exclude_participants: Names = ()
    """Pseudonyms to leave out."""
    most_failed_checks: Annotated[int, Field(ge=0)] | None = None
    """Leave out sessions that failed more attention checks; null leaves none out."""
    fastest_ms: Positive | None = None
    """Leave out sessions whose median time from display to answer is shorter; null leaves none out."""
    most_alike: Probability | None = None
    """Leave out sessions in which one and the same answer (box, word) has a larger share; null leaves none out."""
    free_answers: bool = True
    """Comparison: hold the answers of the cloze game on the same contexts as free answers, where there are any."""
    served: UserPath | None = None
    """Comparison: the study that was served (.nc), for what no page needs: the generator's whole distribution, other
    sources of candidates, a simulation's truth."""
    model_words: UserPath | None = None
    """Cloze: a table with the words of language models: item, model, word, count."""
    word_rules: WordRulesName = "clean"
    """Cloze: what makes strings comparable (shannon_game.estimators.cloze.words.WORD_RULES)."""
