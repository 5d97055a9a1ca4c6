"""Reading times: what models' surprisal adds to predictions of how long people read words, beside other readers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards.abilities import AnyEngine, Asked, Measured, UnitScores
from shannon_game.experiments.cloze.reading_gain import reading_gain
from shannon_game.experiments.documents.surprisal import surprisal


def reading_times(study: xr.Dataset, models: Mapping[str, AnyEngine], asked: Asked) -> Measured:
    """Score models' surprisal on all words of the texts; where readers are told apart, beside half of them."""
    if not models:
        raise InputError("needs a model that runs, and none is named", source=f"study {study.attrs.get('name')!r}")
    settings = asked.settings
    words = surprisal(study, models=dict(models), store=settings.store, seed=settings.seed).tables["words"]
    frames = {str(name): rows for name, rows in words.groupby("model", sort=False)}
    found = reading_gain(study, frames, seed=settings.seed, probability=settings.interval)
    gains = found if isinstance(found, dict) else dict.fromkeys(frames, found)
    one = next(iter(gains.values()))
    # texts count by their words
    weight = one.words_by_text / one.words_by_text.mean()
    known = bool(np.isfinite(one.ceilings_by_text).all())
    notes = [] if known else ["times are means over readers, so that nobody is a ceiling"]
    if "reading_unigram_nats" not in study:
        notes.append("frequency is counted in its own texts, under which surprisal gains up to three times as much")
    scores = UnitScores(
        "gain",
        {name: (its.gains_by_text * weight)[None] for name, its in gains.items()},
        unit=one.texts.astype(str),
        group=one.texts.astype(str),
        floor=np.zeros((1, one.texts.size)) if known else None,
        ceiling=(one.ceilings_by_text * weight)[None] if known else None,
    )
    return Measured((scores,), {}, tuple(notes))
