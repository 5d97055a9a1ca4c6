"""Designs: sizes of a study in one game, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from shannon_game.experiments.planning.settings import ADAPTIVE, Costs, DesignSettings

SHARE_GAMES = ("cloze", "accuracy")
"""Games whose number is a share, not nats."""

_ON_A_SCALE = ("comparison", "bridge", "mixed")


@dataclass(frozen=True)
class DesignPoint:
    """Sizes of a study, the numbers per context; a size that the game does not have is 0, a scale ''."""

    game: str
    n_contexts: int
    scale: str = ""
    n_draws: int = 0
    n_answers: int = 0
    n_comparisons: int = 0
    n_bets: int = 0
    n_guesses: int = 0


def _grid(**sizes: Sequence[int]) -> list[dict[str, int]]:
    return [dict(zip(sizes, values, strict=True)) for values in product(*sizes.values())]


def design_points(settings: DesignSettings) -> list[DesignPoint]:
    """All designs that are simulated, game by game."""
    found: list[DesignPoint] = []
    most = {"n_draws": settings.draws[-1], "n_answers": settings.answers[-1], "n_comparisons": settings.comparisons[-1]}
    sizes = {
        "comparison": _grid(n_draws=settings.draws, n_comparisons=settings.comparisons),
        "bridge": _grid(n_draws=settings.draws, n_answers=settings.answers, n_comparisons=settings.comparisons),
        "mixed": [{**most, "n_bets": settings.bets[0]}],
        "bets": _grid(n_bets=settings.bets),
        "cloze": [{"n_draws": n, "n_answers": n} for n in settings.cloze_answers],
        "accuracy": _grid(n_guesses=settings.guesses),
        "ranks": _grid(n_guesses=settings.guesses),
    }
    for game in settings.games:
        scales = settings.scales if game in _ON_A_SCALE else ("",)
        found += [
            DesignPoint(game, n, scale, **own) for n in settings.contexts for scale in scales for own in sizes[game]
        ]
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
