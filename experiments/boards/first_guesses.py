"""First guesses: how often models' most probable token is the token of the text, where people guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.guesses.study import guess_contexts
from shannon_game.estimators.layout import response_positions
from shannon_game.experiments.boards.abilities import (
    MAJORITIES,
    Asked,
    Measured,
    UnitScores,
    of_each,
    seen_in_part,
    with_people_drawn,
)
from shannon_game.experiments.guesses.accuracy.majority import majority_of_guesses
from shannon_game.experiments.harness.text_models import AnyModel
from shannon_game.inference.lm.engine import Rows, open_engine


def first_guesses(study: xr.Dataset, models: Mapping[str, AnyModel], asked: Asked) -> Measured:
    """Score models' guesses at positions of texts, beside people's and beside the most frequent token."""
    if "target_token" not in study:
        raise InputError("holds no tokens of the texts", source=f"study {study.attrs.get('name')!r}")
    guessed = np.unique(response_positions(study))
    items = guessed[asked.chosen(len(guessed), "guesses")]
    document = study["item_document"].to_numpy().astype(str)
    targets = study["target_token"].to_numpy().astype(str)
    # neighbours of one text share its pass
    items = items[np.lexsort((study["item_position"].to_numpy()[items], document[items]))]
    values: dict[str, FloatArray] = {}
    for name in asked.stored([str(each) for each in study["model"].to_numpy()] if "model_hit" in study else []):
        values[name] = study["model_hit"].sel(model=name).to_numpy()[items][None]

    def guessed_by(name: str, chosen: AnyModel) -> Rows:
        contexts = guess_contexts(study)
        pairs = [(contexts[item], str(targets[item])) for item in items]
        return open_engine(name, chosen).guess_tokens(asked.work, pairs)

    answers, left_out = of_each(models, guessed_by)
    values |= {name: its["hit"].astype(float)[None] for name, its in answers.items()}
    cut = {name: int(its["is_cut"].sum()) for name, its in answers.items()}
    notes = [seen_in_part(name, n) for name, n in cut.items() if n]
    here = np.isin(response_positions(study), items)
    for name in asked.stored([f"majority_{n}" for n in MAJORITIES[1:]]):
        try:
            found = majority_of_guesses(study, here, [int(name.removeprefix("majority_"))], seed=asked.settings.seed)
        except InputError:
            continue  # too few people guessed at one place
        if found is not None:
            share = dict(zip(found.context.tolist(), found.by_context[0], strict=True))
            values[name] = np.array([[share.get(item, np.nan) for item in items.tolist()]])
    place = {item: at for at, item in enumerate(items.tolist())}
    asked_at = response_positions(study)
    answered = np.flatnonzero(np.isin(asked_at, items))
    unit = np.array([place[item] for item in asked_at[answered].tolist()])
    correct, person = (study[name].to_numpy()[answered] for name in ("correct", "participant"))
    scores = UnitScores(
        "accuracy",
        values,
        unit=items.astype(str),
        group=document[items],
        floor=_most_frequent(document, targets, items)[None],
        ceiling=with_people_drawn(correct.astype(float), unit, person.astype(str), asked),
    )
    return Measured((scores,), left_out, tuple(notes))


def _most_frequent(document: NDArray[np.str_], targets: NDArray[np.str_], items: NDArray[np.intp]) -> FloatArray:
    """Hits of the token that is most frequent in the other documents."""
    every = Counter(targets.tolist())
    best = {}
    for name in np.unique(document[items]):
        others = every - Counter(targets[document == name].tolist())
        best[name] = max(others or every, key=lambda token: (others or every)[token])
    return np.array([float(targets[item] == best[document[item]]) for item in items])
