"""Reading times: what models' surprisal adds to predictions of how long people read words, beside other readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.documents import ReadingGain
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards.abilities import Asked, Measured, UnitScores, of_each
from shannon_game.experiments.cloze.reading_gain import reading_gain
from shannon_game.experiments.documents.surprisal import surprisal
from shannon_game.experiments.harness.text_models import AnyModel

_LEAST = 0.5
"""Words that a model needs a surprisal of, as a share of those that the best has."""


def reading_times(study: xr.Dataset, models: Mapping[str, AnyModel], asked: Asked) -> Measured:
    """Score models' surprisal on all words of the texts; where readers are told apart, beside half of them."""
    if not models:
        raise InputError("needs a model that runs, and none is named", source=f"study {study.attrs.get('name')!r}")
    settings = asked.settings
    how: dict[str, Any] = {"store": settings.store, "api_store": settings.api_store, "seed": settings.seed}
    sums, notes = list[str](), list[str]()

    def words_of(name: str, chosen: AnyModel) -> pd.DataFrame:
        found = surprisal(study, models={name: chosen}, **how)
        notes.extend(found.warnings)
        words = found.tables["words"]
        known = words[["surprisal_nats", "sum_bits"]].notna().sum()
        if known["surprisal_nats"] >= _LEAST * known["sum_bits"]:
            return words
        sums.append(name)
        return words.assign(surprisal_nats=words["sum_bits"] * np.log(2))

    frames, left_out = of_each(models, words_of)
    left_out |= dict.fromkeys(sums, "ends of words, whose probabilities it does not give: surprisal is of its tokens")
    known = {name: int(words["surprisal_nats"].notna().sum()) for name, words in frames.items()}
    for name, n in known.items():
        # all models have the same words: one that knows few would take them from the others
        if n < _LEAST * max(known.values()) or n == 0:
            left_out[name] = f"has a surprisal of {n:,} of {len(frames.pop(name)):,} words"
    if not frames:
        raise InputError("; ".join(f"{name}: {why}" for name, why in left_out.items()))
    gains = cast(
        "dict[str, ReadingGain]", reading_gain(study, frames, seed=settings.seed, probability=settings.interval)
    )
    one = next(iter(gains.values()))
    # texts count by their words
    weight = one.words_by_text / one.words_by_text.mean()
    has_ceiling = bool(np.isfinite(one.ceilings_by_text).all())
    notes += [] if has_ceiling else ["times are means over readers, so that nobody is a ceiling"]
    if "reading_unigram_nats" not in study:
        notes.append("frequency is counted in its own texts, under which surprisal gains up to three times as much")
    scores = UnitScores(
        "gain",
        {name: (its.gains_by_text * weight)[None] for name, its in gains.items()},
        unit=one.texts.astype(str),
        group=one.texts.astype(str),
        floor=np.zeros((1, one.texts.size)) if has_ceiling else None,
        ceiling=(one.ceilings_by_text * weight)[None] if has_ceiling else None,
    )
    return Measured((scores,), left_out, tuple(notes))
