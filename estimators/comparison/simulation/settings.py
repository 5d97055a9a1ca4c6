"""Settings of a simulated comparison study: the language, the players, the participants."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.checks import check_numbers, check_switches, named
from shannon_game.estimators.comparison.rounding import SCHEMES, RoundingScheme, rounding_scheme
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import HUMAN

LANGUAGE_MODELS = ("lm-weak", "lm-medium", "lm-strong")
"""The simulated language models, from the highest loss to the lowest."""

DEFAULT_EXCESS_NATS: Mapping[str, float] = {"lm-weak": 2.14, "lm-medium": 0.72, "lm-strong": 0.45, HUMAN: 1.53}
"""Excess losses that, on the default entropy of 2.47 nats, give the losses of the 14M model (4.61), GPT-2 small (3.19)
and GPT-2 medium (2.92) on the real questions, and 4.0 nats for the humans."""

_PLAYERS = (*LANGUAGE_MODELS, HUMAN)

# One independent stream per purpose, so that a change of one setting leaves everything drawn for another as it was.
_STREAMS = ("vocabulary", "context", "signal", "shared", "target", "candidate", "participant", "shown", *_PLAYERS)

# ... and those of a designed study, at the end: a stream is known by its position, one of which is free.
_DESIGN_STREAMS = ("bot", "private", "answer", "free", "order", "who", "report")


@dataclass(frozen=True)
class ParticipantPopulation:
    """How participants differ from each other and from an ideal reporter.

    Each participant has a bias ~ Normal(`bias_mean_nats`, `bias_sd_nats`), a slope with ln slope ~
    Normal(ln `slope_median`, `slope_log_sd`), a noise sd with ln sd ~ Normal(ln `noise_median_nats`,
    `noise_log_sd`), and a lapse rate ~ Beta(m n, (1 - m) n), m = `lapse_mean`, n = `lapse_concentration`.

    Parameters
    ----------
    bias_mean_nats, bias_sd_nats : float
        Bias towards the target, added to the log-odds before the slope.
    slope_median, slope_log_sd : float
        Slope on the log-odds; 1 is calibrated, less than 1 is under-confident.
    noise_median_nats, noise_log_sd : float
        Standard deviation of the noise on the reported log-odds.
    lapse_mean, lapse_concentration : float
        Probability of an answer that has nothing to do with the belief; the concentration is like a number of answers.
    bias, slope, noise, lapses : bool
        Switches: off means bias 0, slope 1, noise 0, lapse rate 0.
    """

    bias_mean_nats: float = 0.0
    bias_sd_nats: float = 0.5
    slope_median: float = 1.0
    slope_log_sd: float = 0.5
    noise_median_nats: float = 0.9
    noise_log_sd: float = 0.3
    lapse_mean: float = 0.05
    lapse_concentration: float = 40.0
    bias: bool = True
    slope: bool = True
    noise: bool = True
    lapses: bool = True

    def __post_init__(self) -> None:
        source = "participant population"
        check_numbers(named(self, "bias_mean_nats"), source)
        spreads = named(self, "bias_sd_nats", "slope_log_sd", "noise_median_nats", "noise_log_sd")
        check_numbers(spreads, source, at_least=0)
        check_numbers(named(self, "slope_median", "lapse_concentration"), source, above=0)
        check_numbers(named(self, "lapse_mean"), source, at_least=0, at_most=1)
        check_switches(named(self, "bias", "slope", "noise", "lapses"), source)


@dataclass(frozen=True)
class SimulationSettings:
    """Everything that a simulated study depends on.

    Parameters
    ----------
    n_items, n_reference_items : int
        Items that are asked, the first ones of all; the reference loss L_G is a mean over all.
    n_candidates : int
        Candidates drawn from the generator per item, repeats kept. A participant sees the same position along them on
        every item, and different participants different ones until all are used.
    generator : str
        The language model that draws the candidates, one of :data:`LANGUAGE_MODELS`.
    entropy_nats : float
        Mean over items of the entropy of the true distribution: the loss that nobody can beat.
    excess_nats : mapping of str to float
        Mean over items of KL(T || player) for each language model and ``human``; :data:`DEFAULT_EXCESS_NATS` for
        others.
    store_reference : bool
        Also store the generator's whole distribution (n_reference_items x vocab_size float32).
    """

    n_items: int = 120
    n_reference_items: int = 1000
    n_participants: int = 29
    n_candidates: int = 400
    vocab_size: int = 5000
    seed: int = 0
    generator: str = "lm-medium"
    rounding: str = "interface"
    entropy_nats: float = 2.47
    excess_nats: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_EXCESS_NATS))
    store_reference: bool = False
    participants: ParticipantPopulation = field(default_factory=ParticipantPopulation)

    def __post_init__(self) -> None:
        source = "simulation"
        sizes = named(self, "n_items", "n_reference_items", "n_participants", "n_candidates")
        check_numbers(sizes, source, whole=True, at_least=1)
        check_numbers(named(self, "vocab_size"), source, whole=True, at_least=10)
        check_numbers(named(self, "seed"), source, whole=True, at_least=0)
        if self.n_items > self.n_reference_items:
            problem = f"is {self.n_items}, should be at most n_reference_items ({self.n_reference_items})"
            raise InputError(problem, source=source, field="n_items")
        if self.generator not in LANGUAGE_MODELS:
            raise unknown_choice("generator", self.generator, LANGUAGE_MODELS, source=source)
        if self.rounding not in SCHEMES:
            raise unknown_choice("rounding", self.rounding, SCHEMES, source=source)
        check_numbers(named(self, "entropy_nats"), source, above=0)
        check_switches(named(self, "store_reference"), source)
        if not isinstance(self.participants, ParticipantPopulation):
            raise InputError(f"is {self.participants!r}, should be a ParticipantPopulation", field="participants")
        if not isinstance(self.excess_nats, Mapping):
            raise InputError(f"is {self.excess_nats!r}, should give each player's loss", field="excess_nats")
        for player, excess in self.excess_nats.items():
            if player not in _PLAYERS:
                raise unknown_choice("player in excess_nats", player, _PLAYERS, source=source)
            check_numbers({f"excess_nats.{player}": excess}, source, at_least=0)
        complete = {player: float(self.excess_nats.get(player, DEFAULT_EXCESS_NATS[player])) for player in _PLAYERS}
        object.__setattr__(self, "excess_nats", complete)

    def to_json(self) -> str:
        """Write the settings as one JSON object, the participants' as an object in it."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return json.dumps(values | {"participants": asdict(self.participants), "excess_nats": dict(self.excess_nats)})


def random_stream(seed: int, purpose: str, *index: int) -> np.random.Generator:
    """Random numbers of one purpose; `index` tells apart what comes repeatedly."""
    return np.random.default_rng(
        np.random.SeedSequence(seed, spawn_key=((*_STREAMS, *_DESIGN_STREAMS).index(purpose), *index))
    )


def sigmoid(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability of log-odds, without overflow at either end."""
    smaller = np.exp(-np.abs(log_odds))
    return np.where(log_odds >= 0, 1.0, smaller) / (1.0 + smaller)


@dataclass(frozen=True)
class QuestionDesign:
    """What people are asked about each item, and how they may answer.

    Parameters
    ----------
    n_draws : int
        Independent draws of the generator per item, repeats kept.
    n_answers, n_batches : int
        Free answers per item, each by another participant, and the batches, of nearly equal size, in which they come.
    n_comparisons : int
        Comparisons per item.
    n_comparisons_each : int
        Comparisons of an item in a row that are one participant's, of another token each. With 2, how far people's
        beliefs differ can be told from noise (:func:`private_belief`).
    scale : RoundingScheme or str
        Values that can be reported.
    """

    n_draws: int = 6
    n_answers: int = 8
    n_batches: int = 1
    n_comparisons: int = 12
    n_comparisons_each: int = 1
    scale: RoundingScheme | str = "slider"
    n_participants: int = 29

    def __post_init__(self) -> None:
        source = "question design"
        sizes = named(self, "n_draws", "n_batches", "n_comparisons", "n_comparisons_each", "n_participants")
        check_numbers(sizes, source, whole=True, at_least=1)
        check_numbers(named(self, "n_answers"), source, whole=True, at_least=0)
        if self.n_comparisons % self.n_comparisons_each:
            problem = f"is {self.n_comparisons_each}, should divide n_comparisons ({self.n_comparisons})"
            raise InputError(problem, source=source, field="n_comparisons_each")
        for name, n_people in (("n_answers", self.n_answers), ("n_comparisons", self.n_comparing)):
            if n_people > self.n_participants:
                needs = f"which needs {n_people} participants an item; n_participants is {self.n_participants}"
                raise InputError(f"is {getattr(self, name)}, {needs}", source=source, field=name)
        if self.n_batches > max(self.n_answers, 1):
            problem = f"is {self.n_batches}, should be at most n_answers ({self.n_answers})"
            raise InputError(problem, source=source, field="n_batches")
        _ = rounding_scheme(self.scale)

    @property
    def n_comparing(self) -> int:
        """Participants who compare tokens of one item."""
        return self.n_comparisons // self.n_comparisons_each

    def to_json(self) -> str:
        """Write the design as one JSON object; a scheme of one's own as an object in it."""
        scale = self.scale if isinstance(self.scale, str) else asdict(self.scale)
        return json.dumps({**{name: getattr(self, name) for name in self.__dataclass_fields__}, "scale": scale})
