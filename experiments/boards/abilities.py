"""What an ability is: one function from a study and players to scores per unit, beside their floor and ceiling."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.settings import ComparableSettings
from shannon_game.experiments.harness.language_models import open_work
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.experiments.harness.text_models import AnyModel, EndpointModels, EndpointSettings
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.store import NoAnswerError
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.settings import Count, Names, Probability

_T = TypeVar("_T")


@dataclass(frozen=True)
class Definition:
    """What a score is; its version changes with what it means, so that cards of older versions still count or not."""

    meaning: str
    unit: str = "1"
    lower_is_better: bool = False
    headline: bool = False
    version: int = 1


DEFINITIONS: Mapping[tuple[str, str], Definition] = {
    ("next_words", "tvd"): Definition(
        "total variation distance to half of the people, of as many words", lower_is_better=True, headline=True
    ),
    ("next_words", "jensen_shannon"): Definition(
        "Jensen-Shannon divergence from half of the people, of as many words", "nats", lower_is_better=True
    ),
    ("next_words", "cross_entropy"): Definition(
        "surprisal of the answers of half of the people; the ceiling is the other half, smoothed by the floor",
        "nats per answer",
        lower_is_better=True,
    ),
    ("next_words", "modal_word"): Definition("contexts whose modal word is that of half of the people", version=2),
    ("next_words", "exact_tvd"): Definition(
        "total variation distance of exact probabilities to all answers: no floor, no ceiling", lower_is_better=True
    ),
    ("odds", "points"): Definition(
        "points per answer that the game gives for the odds of the pairs that people were shown",
        "points",
        headline=True,
    ),
    ("odds", "loss"): Definition(
        "loss per token from these odds (equation 5), too low where pairs per question are few",
        "nats",
        lower_is_better=True,
    ),
    ("odds", "true_loss"): Definition("surprisal of the token of the text", "nats", lower_is_better=True),
    ("odds", "overconfidence"): Definition(
        "probability of the favoured token minus how often it is right, weighted as the game pays; zero is calibrated"
    ),
    ("first_guesses", "accuracy"): Definition("guesses that are the token of the text", headline=True),
    ("reading_times", "gain"): Definition(
        "held-out log-likelihood of reading times gained by surprisal over length and frequency",
        "nats per word",
        headline=True,
    ),
}
"""Ability and score -> what it is."""

MAJORITIES = (1, 5, 20)
"""Numbers of people whose most frequent word is a player, where more people answered."""


class BesidePeopleSettings(Seeded, EndpointModels, ComparableSettings):
    players: Names | None = None
    """Models whose words or log-probabilities a study holds, to score as well; null takes all, [] none."""
    n_items: Count | None = None
    """Most contexts or questions of a data set, at random; null takes all."""
    n_splits: Count = 20
    """Random splits of people's answers into halves; resamples of the participants of a game."""
    n_replicates: Count = 500
    """Bootstrap samples of an interval, which cards keep for paired differences."""
    interval: Probability = 0.9
    """Probability of the intervals."""
    max_forms: Count = 6
    """Most strings that count as one of people's words, each looked up."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What a run asks: its settings and the store of what models said."""

    settings: BesidePeopleSettings
    work: Work

    @classmethod
    def by(cls, settings: BesidePeopleSettings) -> Asked:
        """Open the store of some settings."""
        return cls(settings, open_work(EndpointSettings(store=settings.store, api_store=settings.api_store)))

    def chosen(self, n: int, what: str) -> NDArray[np.intp]:
        """Positions of at most ``n_items`` of `n` units, at random, in order."""
        most = self.settings.n_items
        if most is None or most >= n:
            return np.arange(n)
        # fewer are some of more: what was asked of them is in the store
        return np.sort(rng_for(self.settings.seed, what).permutation(n)[:most])

    def stored(self, names: list[str]) -> list[str]:
        """Players of a study that the settings want; a name that runs is the model that runs."""
        wanted = names if self.settings.players is None else self.settings.players
        return [name for name in names if name in wanted and name not in self.settings.models]


@dataclass(frozen=True, eq=False)
class UnitScores:
    """One score of several players on units such as contexts, each array (draw, unit) or (unit,)."""

    score: str
    of_player: Mapping[str, FloatArray]
    """By player; NaN where it was not asked."""
    unit: NDArray[Any]
    """Names."""
    group: NDArray[Any]
    """Text or document of each."""
    floor: FloatArray | None = None
    """Of what knows nothing; None: the score has no floor and no ceiling."""
    ceiling: FloatArray | None = None
    """Of people."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What an ability found: scores, and why a player has none."""

    scores: tuple[UnitScores, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


Ability = Callable[[xr.Dataset, Mapping[str, AnyModel], Asked], Measured]
"""A study, the models that run, and what the run asks -> scores of those and of the study's own players."""


def of_each(models: Mapping[str, AnyModel], ask: Callable[[str, AnyModel], _T]) -> tuple[dict[str, _T], dict[str, str]]:
    """Ask every model, and give what they answered and why others cannot."""
    found, left_out = dict[str, _T](), dict[str, str]()
    for name, chosen in models.items():
        try:
            found[name] = ask(name, chosen)
        except NoAnswerError:
            raise
        except InputError as error:
            # addresses are no part of a card
            own = InputError(error.problem, field=error.field) if isinstance(chosen, ApiSettings) else error
            left_out[name] = str(own)
    return found, left_out


def with_people_drawn(
    values: FloatArray,
    unit: NDArray[np.intp],
    person: NDArray[Any],
    asked: Asked,
    finish: Callable[[FloatArray], FloatArray] = lambda mean: mean,
) -> FloatArray:
    """Means of units, (draw, unit), with participants drawn with replacement, from one value an answer.

    A unit that nobody drawn has answered keeps its mean; draws are moved so that their mean is that of all answers.
    """
    code = np.unique(person, return_inverse=True)[1]
    n = int(code.max()) + 1
    rng = rng_for(asked.settings.seed, "participants")
    whole = finish(np.bincount(unit, weights=values) / np.bincount(unit))
    draws = np.tile(whole, (asked.settings.n_splits, 1))
    for at, drawn in enumerate(rng.multinomial(n, np.full(n, 1 / n), size=len(draws))[:, code]):
        total, mass = np.bincount(unit, weights=drawn), np.bincount(unit, weights=drawn * values)
        draws[at] = np.where(total > 0, finish(np.where(total > 0, mass, 1) / np.maximum(total, 1)), whole)
    return np.asarray(draws - draws.mean(axis=0) + whole)


def seen_in_part(model: str, n: int) -> str:
    """Note on contexts of which a model sees the end alone."""
    return f"{model} saw the end of {n:,} contexts that are longer than it takes"


def digest(*parts: object) -> str:
    """Short digest of what scores are of: those of equal digests can be paired."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:16]
