"""What word rules do to people's answers: how many are several words or no word, and what becomes of them."""

from __future__ import annotations

import math

import xarray as xr

from shannon_game.estimators.cloze import StudyWords, study_words, word_rules
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.parsing import Note

_SMALL_SHARE = 0.02
_SHOWN = 10


def answer_notes(study: xr.Dataset) -> list[Note]:
    """Count answers that the study's own word rules cut or leave out."""
    rules = word_rules(str(study.attrs["word_rules"]))
    words = study_words(study, human=rules, model=rules, corpus=rules, models=[])
    unit = "answers" if words.human is not None else "shares of answers (their sum)"
    notes = [
        (
            f"{unit} of several words; the study's word rules {rules.name!r} take the first of them, and "
            f"{Set('experiment.words.pieces', 'join')} all: {_most_frequent(words, shown='{text!r} ({times:.3g} x)')}",
            sum(times for _, times in words.human_cut.values()),
        ),
        (
            f"{unit} that are no word by the word rules {rules.name!r}, left out "
            f"({Set('experiment.words.more_non_answers')} adds to them)",
            words.human_missing.get("no answer", 0),
        ),
    ]
    return [Note(text, math.ceil(count)) for text, count in notes if count]


def answer_warnings(words: StudyWords) -> tuple[str, ...]:
    """Warn where the answers that lose words are more than a small share."""
    share = sum(times for _, times in words.human_cut.values()) / words.n_human
    if share <= _SMALL_SHARE:
        return ()
    return (
        f"{share:.1%} of people's answers are several words, of which only the first counts: {_most_frequent(words)}. "
        f"{Set('experiment.words.pieces', 'join')} keeps all their words, drop leaves such answers out, and "
        f"{Set('experiment.words.more_non_answers', [...])} names those that are no word",
    )


def _most_frequent(words: StudyWords, shown: str = "{text!r} becomes {word!r} ({times:.3g} x)") -> str:
    found = [shown.format(text=text, word=word, times=times) for text, (word, times) in words.human_cut.items()]
    more = len(found) - _SHOWN
    return ", ".join(found[:_SHOWN]) + (f", and {more} more" if more > 0 else "")
