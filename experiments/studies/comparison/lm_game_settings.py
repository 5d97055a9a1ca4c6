"""Settings of the next-token game."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from estimators.errors import InputError
from experiments.studies.lm_game_archive import GameSettings, Span
from inference.settings import Names

__all__ = ["LmGameSettings"]


def _named_spans(value: Any) -> Any:
    if not isinstance(value, Mapping) or not value:
        given = list(value) if isinstance(value, tuple) else value
        raise InputError(f"is {given!r}, should map names to [first, last]")
    if "" in value:
        raise InputError("has an empty name")
    return {str(name): span for name, span in value.items()}


def _disjoint(sets: Mapping[str, Span]) -> Mapping[str, Span]:
    seen: dict[int, str] = {}
    for name, (first, last) in sets.items():
        for item in range(first, last + 1):
            if seen.setdefault(item, name) != name:
                raise InputError(f"question {item} is in both {seen[item]!r} and {name!r}; a question has one set")
    return sets


class LmGameSettings(GameSettings):
    """Settings of the next-token game."""

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
    off_grid: Literal["error", "keep"] = "error"
    """What to do with a report that is none of the game's 11 percentages; keep counts it."""
    answers: bool = True
    """False reads the questions only, as build_study writes them; there are then no answers."""
    sets: Annotated[Mapping[str, Span], BeforeValidator(_named_spans), AfterValidator(_disjoint)] = {
        "set 1": (10000, 10039),
        "set 2": (20010, 20089),
    }
    """Questions asked, as [first, last] of each set."""
    reference: Span = (10000, 10999)
    """First and last of the questions whose mean -ln g(y) is the generator's loss."""
    cache: bool = True
    """Keep the parsed files between runs; the filters above are applied afterwards."""

    @property
    def questions(self) -> list[int]:
        """Questions that are read."""
        spans = (*self.sets.values(), self.reference)
        return sorted({item for first, last in spans for item in range(first, last + 1)})
