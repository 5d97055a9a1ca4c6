"""Which games there are."""

from __future__ import annotations

from collections.abc import Mapping

from shannon_game.estimators.errors import unknown_choice
from shannon_game.experiments.collect.games import bets, cloze, comparison, guess_until_right, top1
from shannon_game.experiments.collect.games.protocol import Game

GAMES: Mapping[str, Game] = {
    "comparison": comparison,
    "top1": top1,
    "cloze": cloze,
    "guess_until_right": guess_until_right,
    "bets": bets,
}
"""Name -> module."""


def game_named(name: str) -> Game:
    """Return a game by its name."""
    if name not in GAMES:
        raise unknown_choice("game", name, GAMES)
    return GAMES[name]
