"""How often the most frequent guess of n people is right, beside language models at the same places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.documents import MajorityAccuracy, majority_accuracy
from shannon_game.estimators.layout import response_positions
from shannon_game.experiments.guesses.accuracy.players import chosen_models
from shannon_game.experiments.guesses.accuracy.settings import AccuracySettings
from shannon_game.experiments.harness.majority import TEXT, MajorityRow, majority_rows

SIZES = (1, 3, 5, 10, 20, 50, 100)
"""People of an ensemble; two are right as often as one."""


def majority_of_guesses(
    study: xr.Dataset,
    responses: NDArray[np.bool_],
    sizes: Sequence[int] | None,
    *,
    interval: float = 0.9,
    seed: int = 0,
) -> MajorityAccuracy | None:
    """Accuracy of ensembles and of everybody, contexts being positions of items; None where too few people overlap.

    Sizes that are None are those that half of the contexts have, of contexts where several people guessed.
    """
    if "guess" not in study:
        return None
    table = pd.DataFrame({name: study[name].to_numpy() for name in ("participant", "guess", "correct")})
    # of a person who came to a place twice the first guess counts
    first = table.assign(item=response_positions(study))[responses].drop_duplicates(["item", "participant"])
    n_people = first["item"].map(first["item"].value_counts())
    if sizes is None:
        several = n_people[n_people > 1].groupby(first["item"]).first()
        sizes = [size for size in SIZES if len(several) > 1 and size <= several.median()]
        if len(sizes) < 2:
            return None
    document = study["item_document"].to_numpy().astype(str)
    return majority_accuracy(
        first["guess"].astype(str).str.strip().str.casefold().to_numpy(),
        first["item"].to_numpy(),
        sizes=[*sorted(sizes), 0],
        right=first["correct"].to_numpy(),
        group=document[first["item"].to_numpy()],
        participant=first["participant"].astype(str).to_numpy(),
        probability=interval,
        seed=seed,
    )


def majority_table(study: xr.Dataset, settings: AccuracySettings, responses: NDArray[np.bool_]) -> pd.DataFrame:
    """Rows of ensembles and of models that played there; none where too few people overlap."""
    found = majority_of_guesses(
        study, responses, settings.ensemble, interval=settings.interval, seed=settings.seed
    )  # fmt: skip
    if found is None:
        return MajorityRow.table([])
    models = {}
    if "model_hit" in study:
        played = [name for name in chosen_models(settings.players, study) if name in study["model"]]
        models = {name: study["model_hit"].sel(model=name).to_numpy()[found.context] for name in played}
    group = study["item_document"].to_numpy().astype(str)[found.context]
    return MajorityRow.table(majority_rows(TEXT, found, models, group, settings.interval))
