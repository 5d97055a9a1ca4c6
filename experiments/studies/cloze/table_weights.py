"""What the rows of a cloze table weigh: counts, shares, or one answer each; of people and of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.errors import InputError
from experiments.studies.parsing import Note, shown
from experiments.studies.plain_table import Table
from experiments.studies.scales import ENOUGH

__all__ = ["SUM_SLACK", "RowWeights", "draws_of_shares", "row_weights"]

SUM_SLACK = 0.02
"""A sum of shares printed with two digits each is off by more than this only where answers are left out."""


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights of the rows of a table.

    Parameters
    ----------
    weight : ndarray of float, shape (row,)
        NaN where a row has none.
    is_share : ndarray of bool, shape (row,)
        Whether it is a share and not a count.
    """

    weight: NDArray[np.float64]
    is_share: NDArray[np.bool_]


def row_weights(table: Table, columns: Mapping[str, str], *, percent: bool) -> RowWeights:
    """Read counts and shares.

    Models' rows may have probabilities where people's have counts, or are one answer each.

    Examples
    --------
    >>> import pandas as pd
    >>> from experiments.studies.plain_table import table_of
    >>> rows = pd.DataFrame({"by": ["", "", "gpt2"], "p": [None, None, 0.25]})
    >>> row_weights(table_of(rows, "rows", of="answer"), {"model": "by", "proportion": "p"}, percent=False)
    RowWeights(weight=array([1.  , 1.  , 0.25]), is_share=array([False, False,  True]))
    """
    nothing = np.full(len(table.cells), np.nan)
    count = table.whole(columns["count"], empty=True) if "count" in columns else nothing
    if "proportion" not in columns:
        weight = count if "count" in columns else np.ones_like(nothing)
        return RowWeights(weight, np.zeros(weight.shape, dtype=bool))
    share = _shares(table, columns["proportion"], percent=percent)
    if percent and "model" in columns:
        _refuse_fractions_of_models(table, columns, share)
    of_people = np.ones(share.shape, dtype=bool)
    if "model" in columns:
        of_people = table.ids(columns["model"], empty=True) == ""
    _refuse_both(table, columns, ~np.isnan(count) & ~np.isnan(share), "has a count and a proportion; leave one empty")
    if "count" in columns:
        wrong = of_people & ~np.isnan(share)
        _refuse_both(table, columns, wrong, "has a proportion, but people have counts in this table")
    elif not of_people.all() and np.isnan(share[of_people]).all():
        count = np.where(of_people, 1.0, count)
    is_share = np.isnan(count) & ~np.isnan(share)
    return RowWeights(np.where(is_share, share, count), is_share)


def _shares(table: Table, column: str, *, percent: bool) -> NDArray[np.float64]:
    share = table.shares(column, percent=percent, empty=True)
    bad = ~((share >= 0) & (share <= 1) | np.isnan(share))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        hint = "; study.percent=true reads percentages" if 1 < share[row] <= 100 else ""
        text = shown(table.texts(column)[row])
        problem = f"{table.where(row)}: is {text}, should be a share between 0 and 1{hint}"
        raise table.error(problem, column)
    return share


def _refuse_fractions_of_models(table: Table, columns: Mapping[str, str], share: NDArray[np.float64]) -> None:
    """Refuse a model none of whose percentages is above 1, as probabilities beside people's percentages are."""
    models = table.texts(columns["model"]).astype(str)
    for model in np.unique(models[models != ""]):
        own = share[(models == model) & ~np.isnan(share)]
        if own.size >= ENOUGH and 0 < own.max() <= 1 / 100:
            problem = f"is at most {100 * own.max():g} for model {shown(str(model))}; write all on one scale: "
            raise table.error(problem + "study.percent=true reads percentages", columns["proportion"])


def _refuse_both(table: Table, columns: Mapping[str, str], bad: NDArray[np.bool_], problem: str) -> None:
    if bad.any():
        row, number = int(np.flatnonzero(bad)[0]), int(bad.sum())
        place = f"{table.where(row)}: {problem} ({number} such rows)"
        raise InputError(place, source=table.source, field=columns["proportion"])


def draws_of_shares(
    entry: NDArray[np.intp], count: NDArray[np.int64], logprob: NDArray[np.float64], *, names: Sequence[str], draws: int
) -> tuple[NDArray[np.int64], Note]:
    """Let draws stand for the probabilities of models' words: estimators of distributions take counts."""
    scored, n_entries = ~np.isnan(logprob), len(names)
    share = np.exp(np.where(scored, logprob, -np.inf))
    total = np.bincount(entry, weights=share, minlength=n_entries)
    asked = np.bincount(entry[scored], minlength=n_entries) > 0
    for bad, problem in (
        (asked & (np.bincount(entry, weights=~scored, minlength=n_entries) > 0), "has counts and probabilities"),
        (total > 1 + SUM_SLACK, "has probabilities that sum to more than 1"),
        (asked & (total <= 0), "has probabilities that are all 0"),
    ):
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            raise InputError(f"{names[first]} {problem} (sum {total[first]:.4g}, {int(bad.sum())} such contexts)")
    drawn = np.rint(share / np.where(total > 0, total, 1)[entry] * draws).astype(np.int64)
    least, most = total[asked].min(), total[asked].max()
    text = f"contexts in which a model's probabilities stand for {draws:,} draws; they sum to {least:.3g} to {most:.3g}"
    text += ", and what is missing is spread over the words that are there" if least < 1 - SUM_SLACK else ""
    note = Note(text, int(asked.sum()), "warning" if least < 1 - SUM_SLACK else "info")
    return np.where(scored, drawn, count), note
