"""What the rows of a cloze table weigh: counts, shares, or one answer each; of people and of models."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.cells import ENOUGH
from shannon_game.experiments.studies.parsing import shown
from shannon_game.experiments.studies.plain_table import Table

SUM_SLACK = 0.02
"""A sum of shares printed with two digits each is off by more than this only where answers are left out."""


def row_weights(table: Table, *, percent: bool) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Weight of each row, NaN where it has none, and whether it is a share and not a count.

    Models' rows may have probabilities where people's have counts, or are one answer.
    """
    has_count = "count" in table.names
    if "proportion" not in table:
        weight = table["count"] if has_count else np.ones(len(table))
        return weight, np.zeros(weight.shape, dtype=bool)
    count = table["count"] if has_count else np.full(len(table), np.nan)
    share = table.shares("proportion", percent=percent, empty=True)
    beyond = (share < 0) | (share > 1)
    hint = f"; {Set('study.percent', True)} reads percentages" if ((share > 1) & (share <= 100)).any() else ""
    table.refuse(beyond, "proportion", f"should be a share between 0 and 1{hint}")
    of_people = np.ones(share.shape, dtype=bool)
    if "model" in table:
        of_people = table["model"] == ""
        if percent:
            _refuse_fractions_of_models(table, share)
    given = ~np.isnan(share)
    table.refuse(~np.isnan(count) & given, "proportion", "beside a count; leave one empty")
    if has_count:
        table.refuse(of_people & given, "proportion", "but people have counts in this table")
    elif not of_people.all() and not given[of_people].any():
        count = np.where(of_people, 1.0, count)
    is_share = np.isnan(count) & given
    return np.where(is_share, share, count), is_share


def _refuse_fractions_of_models(table: Table, share: NDArray[np.float64]) -> None:
    """Refuse a model none of whose percentages is above 1, as probabilities beside people's percentages are."""
    models = table["model"].astype(str)
    for model in np.unique(models[models != ""]):
        own = share[(models == model) & ~np.isnan(share)]
        if own.size >= ENOUGH and 0 < own.max() <= 1 / 100:
            problem = f"is at most {100 * own.max():g} for model {shown(str(model))}; write all on one scale: "
            raise table.error(problem + f"{Set('study.percent', True)} reads percentages", "proportion")
