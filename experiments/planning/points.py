"""Designs: sizes of a study in one game, and what they cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shannon_game.experiments.planning.settings import ADAPTIVE, Costs, DesignSettings

__all__ = ["SHARE_GAMES", "DesignPoint", "design_points", "n_people", "people_minutes", "wanted_width"]

SHARE_GAMES = ("cloze", "accuracy")
"""Games whose number is a share, not nats."""


@dataclass(frozen=True)
class DesignPoint:
    """Sizes of a study; a size that the game does not have is 0.

    Parameters
    ----------
    game : str
        One of :data:`~shannon_game.experiments.planning.settings.GAMES`.
    n_contexts : int
    scale : str
        On which people report, "" where they do not.
    n_draws, n_answers, n_comparisons, n_bets, n_guesses : int
        An item; cloze answers are answers.
    """

    game: str
    n_contexts: int
    scale: str = ""
    n_draws: int = 0
    n_answers: int = 0
    n_comparisons: int = 0
    n_bets: int = 0
    n_guesses: int = 0

    def row(self) -> dict[str, Any]:
        """Columns of the table."""
        return asdict(self)


def design_points(settings: DesignSettings) -> list[DesignPoint]:
    """All designs that are simulated, game by game."""
    found: list[DesignPoint] = []
    most = {"n_draws": settings.draws[-1], "n_answers": settings.answers[-1], "n_comparisons": settings.comparisons[-1]}
    for game in settings.games:
        for n in settings.contexts:
            for scale in settings.scales:
                if game == "comparison":
                    found += [
                        DesignPoint(game, n, scale, n_draws=d, n_comparisons=c)
                        for d in settings.draws
                        for c in settings.comparisons
                    ]
                elif game == "bridge":
                    found += [
                        DesignPoint(game, n, scale, n_draws=d, n_answers=a, n_comparisons=c)
                        for d in settings.draws
                        for a in settings.answers
                        for c in settings.comparisons
                    ]
                elif game == "mixed":
                    found += [DesignPoint(game, n, scale, **most, n_bets=b) for b in settings.bets[:1]]
            if game == "bets":
                found += [DesignPoint(game, n, n_bets=b) for b in settings.bets]
            elif game == "cloze":
                found += [DesignPoint(game, n, n_draws=a, n_answers=a) for a in settings.cloze_answers]
            elif game in ("accuracy", "ranks"):
                found += [DesignPoint(game, n, n_guesses=m) for m in settings.guesses]
    if settings.questions == "adaptive":
        found += [DesignPoint(ADAPTIVE, n, scale, **most) for n in settings.contexts for scale in settings.scales]
    return list(dict.fromkeys(found))


def people_minutes(point: DesignPoint, costs: Costs, guesses_a_token: float) -> float:
    """Time of all participants together, minutes.

    A mixed study asks half of its contexts in each game; of an adaptive one this is what its sizes would take at most.
    """
    guess = costs.guess_seconds
    if point.game == "ranks":
        guess += costs.further_guess_seconds * (guesses_a_token - 1)
    compare = point.n_answers * costs.answer_seconds + point.n_comparisons * costs.comparison_seconds
    bet, share = point.n_bets * costs.bet_seconds, 0.5 if point.game == "mixed" else 1.0
    return point.n_contexts * share * (compare + bet + point.n_guesses * guess) / 60


def n_people(point: DesignPoint, minutes: float, costs: Costs) -> int:
    """As many people as the questions fill sessions, at least those that one item's questions need, and the least."""
    a_context = max(point.n_answers, point.n_comparisons, point.n_bets, point.n_guesses)
    return max(int(np.ceil(minutes / costs.session_minutes)), a_context, costs.least_people)


def wanted_width(game: str, settings: DesignSettings) -> float:
    """Wanted width of a game's interval, in its own unit."""
    return settings.width_share if game in SHARE_GAMES else settings.width_nats
