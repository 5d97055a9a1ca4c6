"""The embedded simulated study."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study
from shannon_game.estimators.documents.tokens import is_word_token
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note, response_positions
from shannon_game.experiments.harness.result import loader
from shannon_game.inference.settings import Settings, settings_of, to_dataclass

_SOURCE = "study simulated"


class _Items(Settings):
    items: Literal["all", "word_tokens"] = "all"
    """Items that are asked: all, or those whose target is a space and letters only."""


Population = settings_of(ParticipantPopulation, "Population", base=Settings)
"""How participants differ; the fields of ``ParticipantPopulation``."""

SimulatedSettings = settings_of(SimulationSettings, "SimulatedSettings", base=_Items, participants=Population)
"""The fields of :class:`~shannon_game.estimators.comparison.simulation.settings.SimulationSettings`, and ``items``."""


@loader(SimulatedSettings)
def simulated(settings: Any) -> xr.Dataset:
    """Simulate a comparison study whose truth is known.

    See :func:`~shannon_game.estimators.comparison.simulation.study.simulate_comparison_study`. With
    ``items=word_tokens`` only the items whose target is a word token are selected, and answers to the others are
    dropped; the reference loss stays the one of all items.

    Examples
    --------
    >>> from shannon_game import simulated
    >>> simulated(n_items=5, n_reference_items=10, vocab_size=100, n_candidates=4).sizes["item"]
    10
    """
    population = to_dataclass(ParticipantPopulation, settings.participants)
    wanted = to_dataclass(SimulationSettings, settings.model_copy(update={"participants": population}))
    study = simulate_comparison_study(wanted)
    return _word_tokens_only(study) if settings.items == "word_tokens" else study


def _word_tokens_only(study: xr.Dataset) -> xr.Dataset:
    targets = study["target_token"].values
    selected = np.asarray([is_word_token(str(token)) for token in targets])
    asked = study["item_set"].values != ""
    if not (selected & asked).any():
        raise InputError(
            f"word_tokens leaves none of the {int(asked.sum())} asked items; ask more items or use all",
            source=_SOURCE,
            field="items",
        )
    kept = selected[response_positions(study)]
    filtered = study.assign(selected=("item", selected)).isel(response=np.flatnonzero(kept))
    add_note(
        filtered, "asked items left out because their target is not a word token", count=int((asked & ~selected).sum())
    )
    add_note(filtered, "responses left out with them", count=int((~kept).sum()))
    return validate_comparison_study(filtered)
