"""Settings of the next-token game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.lm_game_archive import GameSettings
from shannon_game.experiments.studies.parsing import shown
from shannon_game.inference.settings import Names, Text

_MOST_QUESTIONS = 10**6
_Number = Annotated[int, Field(ge=0)]


def _spans(questions: Any) -> list[tuple[int, int]]:
    """First and last question of every range that a setting names; two numbers alone are one."""
    is_range = len(questions) == 2 and all(isinstance(bound, int) for bound in questions)
    return [part if isinstance(part, tuple) else (part, part) for part in ([questions] if is_range else questions)]


def _numbers(questions: Any) -> list[int]:
    return [item for first, last in _spans(questions) for item in range(first, last + 1)]


def _checked(given: Any) -> Any:
    if not given or any(first > last or last - first >= _MOST_QUESTIONS for first, last in _spans(given)):
        right = f"with 0 <= first <= last and at most {_MOST_QUESTIONS:,} questions"
        raise InputError(f"is {shown(given)}, should be [first, last] {right}, or a list of numbers and such ranges")
    if len(set(_numbers(given))) < len(_numbers(given)):
        raise InputError(f"is {shown(given)}, which names a question twice")
    return given


def _disjoint(sets: Mapping[str, Any]) -> Mapping[str, Any]:
    seen: dict[int, str] = {}
    for name, questions in sets.items():
        for item in _numbers(questions):
            if seen.setdefault(item, name) != name:
                raise InputError(f"question {item} is in both {seen[item]!r} and {name!r}; a question has one set")
    return sets


Questions = Annotated[tuple[_Number | tuple[_Number, _Number], ...], AfterValidator(_checked)]
"""[first, last]; or a list of questions, in which a range is a list of two."""


class LmGameSettings(GameSettings):
    participants: Literal["paper", "complete", "all"] = "paper"
    """Which participants count.

    paper: those whose number of answers in a set is the number of its questions, with all their answers. complete: the
    sets of which a participant answered every question at least once. all: everybody.
    """
    exclude_participants: Names = ()
    """Names (hashes) of participants to leave out before that rule."""
    repeats: Literal["auto", "keep", "first", "last", "error"] = "auto"
    """What to do with further answers to the same comparison; auto is first with participants=complete, else keep."""
    items: Literal["all", "word_tokens"] = "all"
    """Answers that count: all, or those on questions whose target is a space followed by letters."""
    automatic: Literal["keep", "drop_different_token", "drop"] = "keep"
    """What to do with the 50% that the site answered by itself because both strings were equal.

    keep, as the paper; drop_different_token leaves out those on two tokens that only share a string; drop leaves out
    all of them, which biases the loss.
    """
    answers: bool = True
    """False reads the questions only, as build_study writes them; there are then no answers."""
    sets: Annotated[Mapping[Text, Questions], Field(min_length=1), AfterValidator(_disjoint)] = {
        "set 1": (10000, 10039),
        "set 2": (20010, 20089),
    }
    """Questions asked, by the name of their set: [first, last], or a list of three or more questions and ranges, such
    as [3, 7, [10, 19]]; two single questions are [[3, 3], [7, 7]]."""
    reference: Questions = (10000, 10999)
    """Questions whose mean -ln g(y) is the generator's loss; named like those of a set."""
    leave_out_questions: tuple[int, ...] = ()
    """Numbers of questions that are not read, such as one whose file is damaged. Answers to them are left out, and
    counted."""

    @model_validator(mode="after")
    def _left_out_are_there(self) -> Self:
        named = {item for questions in (*self.sets.values(), self.reference) for item in _numbers(questions)}
        odd = sorted(set(self.leave_out_questions) - named)
        if odd:
            raise InputError(f"question {odd[0]} is in no set and not in the reference", field="leave_out_questions")
        empty = next((name for name, questions in self.questions_by_set.items() if not questions), None)
        if empty is not None or not self.reference_questions:
            raise InputError(f"leaves no question of {empty or 'the reference'}", field="leave_out_questions")
        return self

    @property
    def questions_by_set(self) -> dict[str, list[int]]:
        """Questions of each set that are read."""
        return {name: self._read(questions) for name, questions in self.sets.items()}

    @property
    def reference_questions(self) -> list[int]:
        """Questions of the reference that are read."""
        return self._read(self.reference)

    @property
    def questions(self) -> list[int]:
        """Questions that are read."""
        return sorted({*self.reference_questions, *(item for part in self.questions_by_set.values() for item in part)})

    def _read(self, questions: Any) -> list[int]:
        return [item for item in _numbers(questions) if item not in self.leave_out_questions]
