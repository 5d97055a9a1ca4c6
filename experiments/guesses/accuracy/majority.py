"""How often the most frequent guess of n people is right, beside language models at the same places."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import xarray as xr

from shannon_game.estimators.arrays import BoolArray
from shannon_game.estimators.documents import MajorityAccuracy, majority_accuracy
from shannon_game.estimators.layout import response_positions
from shannon_game.experiments.documents.majority import TEXT, MajorityRow, majority_rows
from shannon_game.experiments.guesses.accuracy.players import chosen_models
from shannon_game.experiments.guesses.accuracy.settings import AccuracySettings

SIZES = (1, 3, 5, 10, 20, 50, 100)
"""People of an ensemble; two are right as often as one."""


def majority_of_guesses(
    study: xr.Dataset, responses: BoolArray, sizes: Sequence[int] | None, *, interval: float = 0.9, seed: int = 0
) -> MajorityAccuracy | None:
    """Accuracy of ensembles and of everybody, contexts being positions of items; None where too few people overlap."""
    if "guess" not in study:
        return None
    columns = {name: study[name].to_numpy() for name in ("participant", "guess", "correct")}
    table = pd.DataFrame(columns).assign(item=response_positions(study))[responses]
    # of a person who came to a place twice the first guess counts
    table = table.drop_duplicates(["item", "participant"])
    if sizes is None:
        several = table["item"].value_counts()
        most = several[several > 1].median() if (several > 1).sum() > 1 else 0
        sizes = [size for size in SIZES if size <= most]
        if len(sizes) < 2:
            return None
    group = study["item_document"].to_numpy().astype(str)[table["item"]]
    return majority_accuracy(
        table["guess"].astype(str).str.strip().str.casefold().to_numpy(),
        table["item"].to_numpy(),
        sizes=[*sorted(sizes), 0],
        right=table["correct"].to_numpy(),
        group=group,
        participant=table["participant"].astype(str).to_numpy(),
        probability=interval,
        seed=seed,
    )


def majority_table(study: xr.Dataset, settings: AccuracySettings, responses: BoolArray) -> pd.DataFrame:
    """Rows of ensembles and of models that played there; none where too few people overlap."""
    sizes, interval = settings.ensemble, settings.interval
    found = majority_of_guesses(study, responses, sizes, interval=interval, seed=settings.seed)
    if found is None:
        return MajorityRow.table([])
    models = {}
    if "model_hit" in study:
        played = [name for name in chosen_models(settings.players, study) if name in study["model"]]
        models = {name: study["model_hit"].sel(model=name).to_numpy()[found.context] for name in played}
    group = study["item_document"].to_numpy().astype(str)[found.context]
    return MajorityRow.table(majority_rows(TEXT, found, models, group, settings.interval))
