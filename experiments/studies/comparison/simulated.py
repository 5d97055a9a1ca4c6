"""The embedded simulated study: settings from the configuration, and the item filter that all studies share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from estimators.comparison import is_word_token, response_positions, validate_comparison_study
from estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from estimators.comparison.simulation.study import simulate_comparison_study
from estimators.errors import InputError, unknown_choice
from estimators.notes import add_note

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["load"]

_SOURCE = "study simulated"
_ITEM_FILTERS = ("all", "word_tokens")
_SETTINGS = tuple(entry.name for entry in fields(SimulationSettings))
_POPULATION = tuple(entry.name for entry in fields(ParticipantPopulation))
_KEYS = ("name", "items", *_SETTINGS)


def load(config: Mapping[str, Any]) -> xr.Dataset:
    """Simulate the study that a configuration describes.

    Parameters
    ----------
    config : mapping
        Keys of :class:`~estimators.comparison.simulation.study.SimulationSettings` (``participants`` is a mapping with
        keys of
        :class:`~estimators.comparison.simulation.study.ParticipantPopulation`), ``items`` ("all" or "word_tokens"), and
        ``name``, which is ignored. Keys left out have their defaults.

    Returns
    -------
    xarray.Dataset
        See :func:`~estimators.comparison.simulation.study.simulate_comparison_study`. With ``items=word_tokens`` only
        the items whose target is a word token are selected, and answers to the others are dropped; the reference loss
        stays the one of all items.

    Raises
    ------
    InputError
        If a key is unknown, a value is wrong, or no asked item is left by the filter.
    """
    _check_keys("key", config, _KEYS)
    items = config.get("items", "all")
    if items not in _ITEM_FILTERS:
        raise unknown_choice("items", items, _ITEM_FILTERS, source=_SOURCE)
    values = {str(key): config[key] for key in config if key in _SETTINGS}
    if "participants" in values:
        population = _mapping("participants", values["participants"])
        _check_keys("participants key", population, _POPULATION)
        values["participants"] = ParticipantPopulation(**population)
    if "excess_nats" in values:
        values["excess_nats"] = _mapping("excess_nats", values["excess_nats"])
    study = simulate_comparison_study(SimulationSettings(**values))
    return _word_tokens_only(study) if items == "word_tokens" else study


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


def _check_keys(what: str, given: Mapping[str, Any], valid: tuple[str, ...]) -> None:
    for key in given:
        if key not in valid:
            raise unknown_choice(what, key, valid, source=_SOURCE)


def _mapping(field: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"is {value!r}, should be a mapping", source=_SOURCE, field=field)
    return dict(value)
