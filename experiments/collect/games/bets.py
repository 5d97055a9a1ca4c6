"""The betting game (Cover and King 1978): the player spreads 100 chips over up to five words and anything else.

The points grow with the logarithm of the share that lay on the word that came, so that the best bet is what one
believes. What lies on anything else counts as if it were spread evenly over :data:`N_WORDS` words; analyses spread it
by other back-offs too (:func:`shannon_game.estimators.bets.bet_losses`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from shannon_game.experiments.collect.games.cloze import same_word, typed_word
from shannon_game.experiments.collect.games.protocol import CHECK, ONE_ROW, Content, FormError, Reading, Steps
from shannon_game.experiments.collect.games.texts import WordGame

CHIPS = 100
"""Of every question."""
N_BETS = 5
"""Words that can be named."""
N_WORDS = 50_000
"""Words over which the points spread what lies on anything else."""

# a bet of nothing would cost all points for ever
_LEAST_CHIPS = 0.5


class Bets(WordGame):
    """Spread chips over the words that might come next."""

    name = "bets"
    columns = ("word", "chips", "other_chips", "right")
    field = "word1"
    kind = "bet"
    earns = "points"

    def rows(self, _content: Content, _layout: Content, value: Content, _steps: Steps, /) -> list[dict[str, Any]]:
        """Make a row of every word that was bet on."""
        rows: list[dict[str, Any]] = [
            {**bet, "other_chips": value["other_chips"], "right": at == value.get("hit")}
            for at, bet in enumerate(value["bets"] or [{"word": None, "chips": None}])
        ]
        return [rows[0], *(row | ONE_ROW for row in rows[1:])]

    def given(self, value: Content, /) -> str:
        """All bets."""
        return str(value["bets"])

    def view(self, content: Content, _layout: Content, _steps: Steps, /) -> dict[str, Any]:
        """The context, the chips and the number of words."""
        return {"context": content["context"], "check": content.get(CHECK), "n_bets": N_BETS, "chips": CHIPS}

    def read(self, content: Content, _layout: Content, _steps: Steps, form: Mapping[str, str], /) -> Reading:
        """Read ``word1`` to ``word5`` with ``chips1`` to ``chips5``, and ``chips_other``."""
        bets: list[dict[str, Any]] = []
        for number in range(1, N_BETS + 1):
            word, chips = form.get(f"word{number}", ""), _chips(form.get(f"chips{number}", ""))
            if not word.strip():
                if chips:
                    raise FormError("error.chips_without_word", number=number)
                continue
            word = typed_word(word)
            if not chips:
                raise FormError("error.word_without_chips", word=word.strip())
            if any(same_word(word, bet["word"]) for bet in bets):
                raise FormError("error.bet_twice", word=word.strip())
            bets.append({"word": word, "chips": chips})
        other = _chips(form.get("chips_other", ""))
        total = other + sum(bet["chips"] for bet in bets)
        if total < CHIPS:
            raise FormError("error.chips_left", total=total, left=CHIPS - total, all=CHIPS)
        if total > CHIPS:
            raise FormError("error.chips_over", total=total, over=total - CHIPS, all=CHIPS)
        if CHECK in content:
            passed = any(same_word(bet["word"], content[CHECK]) for bet in bets)
            return Reading({"bets": bets, "other_chips": other}, correct=passed)
        hit = next((at for at, bet in enumerate(bets) if same_word(bet["word"], content["target"])), None)
        points = bet_points(other if hit is None else bets[hit]["chips"], named=hit is not None)
        return Reading({"bets": bets, "other_chips": other, "hit": hit}, correct=hit is not None, score=points)

    def feedback(self, content: Content, _layout: Content, _steps: Steps, value: Content, /) -> dict[str, Any]:
        """The word of the text, the bets, the chips that lay on it and the points."""
        hit = value["hit"]
        chips = value["other_chips"] if hit is None else value["bets"][hit]["chips"]
        return {
            "target": content["target"],
            "bets": value["bets"],
            "other_chips": value["other_chips"],
            "hit": hit,
            "chips": chips,
            "n_words": N_WORDS,
            "score": bet_points(chips, named=hit is not None),
        }


def bet_points(chips: int, *, named: bool) -> float:
    r"""Points for the chips that lay on what came: :math:`100 (1 + \ln p / \ln V)`.

    :math:`p` is the share of a word that was named, or that on anything else over the :math:`V` words of
    :data:`N_WORDS`. No chips count as half a chip. All chips on the word are 100 points, all on anything else 0.
    """
    share = max(chips, _LEAST_CHIPS) / CHIPS
    return 100 * ((1 if named else 0) + math.log(share) / math.log(N_WORDS))


def _chips(text: str) -> int:
    """Read a number of chips; an empty field has none."""
    given = text.strip()
    if not given:
        return 0
    if not (given.isascii() and given.isdecimal() and len(given) <= 4):
        raise FormError("error.no_chips", all=CHIPS)
    return int(given)
