"""Guess until right (Shannon 1951): the player guesses the next word until it is right.

Wrong guesses stay on the page. The number of the guess that was right is the rank that the player gives to the word;
after as many wrong guesses as the settings allow the word is shown, and its rank is higher than their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shannon_game.experiments.collect.games.cloze import same_word, typed_word
from shannon_game.experiments.collect.games.protocol import (
    CHECK,
    ONE_ROW,
    Content,
    FormError,
    QuestionRow,
    Reading,
    Steps,
)
from shannon_game.experiments.collect.games.texts import WordGame

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.collect.settings import CollectSettings


class GuessUntilRight(WordGame):
    """Guess the next word until it is right."""

    name = "guess_until_right"
    columns = ("guess", "guess_number", "right")
    kind = "guess"

    def rows(self, _content: Content, _layout: Content, value: Content, steps: Steps, /) -> list[dict[str, Any]]:
        """Make a row of every guess; who gives up leaves no last one."""
        guesses = [*(step["word"] for step in steps), value["word"]][: value.get("n_guesses", 1)]
        rows = [{"guess": guess, "guess_number": at + 1, "right": False} for at, guess in enumerate(guesses)]
        rows[-1]["right"] = bool(value.get("found", False))
        return [*(row | ONE_ROW for row in rows[:-1]), rows[-1]]

    def questions(self, study: xr.Dataset, settings: CollectSettings, /) -> list[QuestionRow]:
        """Say in each question how many guesses there are."""
        rows = super().questions(study, settings)
        return [replace(row, content={**row.content, "most_guesses": settings.most_guesses}) for row in rows]

    def practised(self, content: Content, _other: str, settings: CollectSettings, /) -> Content:
        """Say how many guesses there are."""
        return {**content, "most_guesses": settings.most_guesses}

    def view(self, content: Content, _layout: Content, steps: Steps, /) -> dict[str, Any]:
        """The context, the guesses so far, and how many are left."""
        guesses = [step["word"] for step in steps]
        return {
            "context": content["context"],
            "check": content.get(CHECK),
            "guesses": guesses,
            "n_left": content["most_guesses"] - len(guesses),
        }

    def read(self, content: Content, _layout: Content, steps: Steps, form: Mapping[str, str], /) -> Reading:
        """Read ``word``, one guess; the last one is right, the last that is left, or a give-up."""
        if form.get("give_up") and steps and CHECK not in content:
            return Reading({"word": "", "n_guesses": len(steps), "found": False}, correct=False)
        word = typed_word(form.get("word", ""))
        if CHECK in content:
            return Reading({"word": word}, correct=same_word(word, content[CHECK]))
        if any(same_word(word, step["word"]) for step in steps):
            raise FormError("error.guessed_before")
        found, n_guesses = same_word(word, content["target"]), len(steps) + 1
        if not found and n_guesses < content["most_guesses"]:
            return Reading({"word": word}, final=False)
        return Reading({"word": word, "n_guesses": n_guesses, "found": found}, correct=found)

    def feedback(self, content: Content, _layout: Content, steps: Steps, value: Content, /) -> dict[str, Any]:
        """The word of the text, all guesses, and the number of the right one."""
        guesses = [*(step["word"] for step in steps), value["word"]][: value["n_guesses"]]
        return {
            "target": content["target"],
            "guesses": guesses,
            "n_guesses": value["n_guesses"],
            "found": value["found"],
        }
