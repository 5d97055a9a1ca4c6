"""Arrays by the names of the format become a cloze study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import xarray as xr
from numpy.typing import NDArray
from pydantic import AfterValidator

from shannon_game.estimators.cloze.words import WORD_RULES
from shannon_game.estimators.errors import unknown_choice

_DIMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("item", "item_id", "text_id", "word_num", "context", "target_word"), ("item",)),
    **dict.fromkeys(("response_item", "response_word", "response_count", "response_proportion"), ("response",)),
    **dict.fromkeys(("participant", "participant_group"), ("response",)),
    "word_text": ("word",),
    **dict.fromkeys(("entry_item", "entry_model"), ("entry",)),
    **dict.fromkeys(("sample_entry", "sample_word", "sample_source", "sample_count", "sample_logprob"), ("sample",)),
    **dict.fromkeys(("result_item", "result_list", "result_value"), ("result",)),
    **{name: (name,) for name in ("model", "source", "result_name")},
}
_NATS = {"units": "nats"}


def _known_rules(name: str) -> str:
    if name not in WORD_RULES:
        raise unknown_choice("word rules", name, WORD_RULES)
    return name


WordRulesName = Annotated[str, AfterValidator(_known_rules)]
"""Named word rules (:data:`shannon_game.estimators.cloze.words.WORD_RULES`)."""


def cloze_dataset(arrays: Mapping[str, NDArray[Any]], attrs: Mapping[str, Any]) -> xr.Dataset:
    """Put arrays by the names of the format together to a cloze study, not validated yet."""
    coordinates = ("item", "model", "source", "result_name")
    data = {
        name: (_DIMS[name], values, _NATS if name == "sample_logprob" else {})
        for name, values in arrays.items()
        if name not in coordinates
    }
    return xr.Dataset(data, coords={name: arrays[name] for name in coordinates if name in arrays}, attrs=dict(attrs))
