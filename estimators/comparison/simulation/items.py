"""Items of a simulated comparison study: texts, tokens that were drawn, and what every player gives to them.

They are most of a simulation's work, and the same whoever is asked about them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.simulation.language import (
    context_texts,
    divergence,
    draw_tokens,
    looked_up,
    simulate_language,
)
from estimators.comparison.simulation.settings import SimulationSettings, random_stream

__all__ = ["ITEM_SETTINGS", "SimulatedItems", "simulate_items"]

Floats = NDArray[np.float64]

_NOT_OF_ITEMS = ("n_items", "n_participants", "rounding", "store_reference", "participants")
ITEM_SETTINGS = tuple(each.name for each in fields(SimulationSettings) if each.name not in _NOT_OF_ITEMS)
"""The fields of :class:`~estimators.comparison.simulation.settings.SimulationSettings` that decide the items."""


@dataclass(frozen=True)
class SimulatedItems:
    """What is drawn before anybody is asked."""

    context: NDArray[np.str_]
    target_token: NDArray[np.str_]
    candidate_token: NDArray[np.str_]
    target_logprob: Mapping[str, Floats]
    candidate_logprob: Mapping[str, Floats]
    kl_nats: Mapping[str, Floats]
    same: NDArray[np.bool_]
    reference_logprob: NDArray[np.float32] | None = None
    vocabulary: NDArray[np.str_] | None = None


def simulate_items(settings: SimulationSettings) -> SimulatedItems:
    """Draw targets and candidates from a simulated language and look up what every player gives to them."""
    language = simulate_language(settings)
    seed = settings.seed
    generator = language.player_logprob[settings.generator]
    target = draw_tokens(language.true_logprob, 1, random_stream(seed, "target"))
    candidate = draw_tokens(generator, settings.n_candidates, random_stream(seed, "candidate"))
    found = {player: looked_up(logprob, target, candidate) for player, logprob in language.player_logprob.items()}
    return SimulatedItems(
        context=context_texts(language, settings.n_reference_items, random_stream(seed, "context")),
        target_token=language.vocabulary[target[:, 0]],
        candidate_token=language.vocabulary[candidate],
        target_logprob={player: pair[0] for player, pair in found.items()},
        candidate_logprob={player: pair[1] for player, pair in found.items()},
        kl_nats={player: divergence(logprob, generator) for player, logprob in language.player_logprob.items()},
        same=candidate == target,
        reference_logprob=np.minimum(generator, 0) if settings.store_reference else None,
        vocabulary=language.vocabulary if settings.store_reference else None,
    )
