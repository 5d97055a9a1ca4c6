"""Settings of the planner of studies, and the designs that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import Field, field_validator, model_validator

from shannon_game.estimators.comparison import rounding_scheme
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.experiments.studies.comparison.designed import Crowd
from shannon_game.inference.settings import Count, Counts, Names, Positive, Probability, Settings, UserPath

Game = Literal["comparison", "bridge", "bets", "mixed", "cloze", "accuracy", "ranks"]
GAMES: tuple[str, ...] = get_args(Game)
"""Games that are planned, in the order of the table."""

ADAPTIVE = "bridge_adaptive"
"""What the table calls the bridge with questions that are chosen, and that stop at the width."""

ZeroOrMore = Annotated[float, Field(ge=0)]


class AssumedPeople(Settings):
    """What people may be like: every simulated world draws its own."""

    n_beliefs: Count = 6
    """Worlds that are drawn; replicates take turns with them."""
    exponent: Positive = 0.9
    """Belief is proportional to the generator's to this power (median): below 1 people are less sure."""
    exponent_log_sd: ZeroOrMore = 0.2
    """Standard deviation of its logarithm over worlds."""
    noise_nats: ZeroOrMore = 1.5
    """How far the belief's log-probability of a token is from the generator's (standard deviation, Laplace)."""
    unigram_share: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Share of the belief that knows how frequent tokens are and nothing of the context."""
    slope_log_sd: ZeroOrMore = 0.5
    """Uncertainty of k0, the typical slope of reports: sd over worlds of ln k0 around ln people.slope_median."""
    people: Crowd = Crowd()
    """How participants of one world differ, private_sd_nats and bots among it."""
    sharpness: Positive = 1.4
    """Stakes of bets are beliefs to this power (median)."""
    sharpness_log_sd: ZeroOrMore = 0.3
    """Standard deviation of its logarithm over participants."""
    guess_exponent: Positive = 3.0
    """A guess is drawn from the belief to this power: 3 is near the most probable token."""
    guess_log_sd: ZeroOrMore = 0.3
    """Standard deviation of its logarithm over participants."""


class Costs(Settings):
    """People's time by question, and what an hour costs."""

    comparison_seconds: Positive = 15.0
    """The game's 120 rounds took about 30 minutes."""
    answer_seconds: Positive = 10.0
    """A free answer, and a cloze answer: read a context and write a word."""
    bet_seconds: Positive = 40.0
    """Name five words and stake chips on them."""
    guess_seconds: Positive = 8.0
    """One guess at the next token."""
    further_guess_seconds: Positive = 4.0
    """Every further guess at the same token."""
    session_minutes: Positive = 30.0
    """Time of one person; a design has as many people as its questions fill sessions."""
    least_people: Annotated[int, Field(ge=2)] = 12
    """However short the study: an interval for people needs some."""
    pay_per_hour: ZeroOrMore = 30.0
    """What the game paid, dollars."""


class DesignSettings(Seeded):
    games: Names = GAMES
    """Games that are planned."""
    width_nats: Positive = 0.5
    """Wanted width of the 90% interval of people's loss gap, and of Shannon's upper bound."""
    width_share: Positive = 0.1
    """Wanted width of that of a TVD, and of an accuracy."""
    budget_minutes: Positive | None = 3000.0
    """People's time that there is."""
    budget_money: Positive | None = None
    """Dollars that there are; a design has to keep both budgets."""
    loss_of: Literal["contexts", "asked"] = "contexts"
    """What the interval of a gap is for: all contexts of which the items are a sample, or the items asked."""
    interval: Probability = 0.9
    """Stated coverage."""
    assurance: Probability = 0.9
    """Share of the simulated studies in which the wanted width has to be kept."""
    questions: Literal["fixed", "adaptive"] = "fixed"
    """Whether the bridge is also planned with adaptive questions; then loss_of has to be asked."""
    contexts: Counts = (60, 120, 240, 480)
    """Items of a study."""
    draws: Counts = (8,)
    """Draws of the generator an item."""
    answers: Counts = (4, 8)
    """Free answers per item (bridge)."""
    comparisons: Counts = (8, 14)
    """Comparisons an item (comparison, bridge)."""
    bets: Counts = (1, 3)
    """Bets per item."""
    cloze_answers: Counts = (10, 20, 40)
    """Cloze answers per item, and as many samples of the model."""
    guesses: Counts = (1, 3)
    """Guesses an item, each by another person (accuracy, ranks)."""
    scales: Names = ("slider",)
    """Scales on which people report."""
    quick: bool = False
    """A first answer in a minute: each design on its fewest contexts alone, the interval on more of them narrower by
    the root of their number; at most 60 contexts of the study, two beliefs, and nothing simulated many times."""
    n_screen: Count = 16
    """Simulated studies of every design."""
    n_replicates: Count = 200
    """Simulated studies of the designs that may be recommended."""
    against: str | None = None
    """Model whose loss people's is compared with; by default the study's best that is not the generator."""
    assumed: AssumedPeople = AssumedPeople()
    """What people may be like."""
    costs: Costs = Costs()
    """People's time, and pay."""
    pilot: UserPath | None = None
    """A pilot's posterior (posterior_human.nc of human_loss), which says k0, spreads, noise and lapses."""

    @field_validator("games")
    @classmethod
    def _games_exist(cls, games: tuple[str, ...]) -> tuple[str, ...]:
        for game in games:
            if game not in GAMES:
                raise unknown_choice("game", game, GAMES)
        return tuple(game for game in GAMES if game in games)

    @model_validator(mode="after")
    def _adaptive_is_for_items(self) -> DesignSettings:
        if self.questions == "adaptive" and self.loss_of != "asked":
            raise InputError(
                "is 'adaptive', which narrows the interval for the items asked: loss_of should be 'asked'",
                field="questions",
            )
        return self

    @field_validator("scales")
    @classmethod
    def _scales_exist(cls, scales: tuple[str, ...]) -> tuple[str, ...]:
        for scale in scales:
            _ = rounding_scheme(scale)
        return scales


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
    # nobody compares tokens at a place where they answered freely
    a_context = max(point.n_answers + point.n_comparisons, point.n_bets, point.n_guesses)
    return max(int(np.ceil(minutes / costs.session_minutes)), a_context, costs.least_people)


def wanted_width(game: str, settings: DesignSettings) -> float:
    """Wanted width of a game's interval, in its own unit."""
    return settings.width_share if game in SHARE_GAMES else settings.width_nats
