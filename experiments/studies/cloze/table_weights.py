"""What the rows of a cloze table weigh: counts, shares, or one answer each; of people and of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.parsing import Note, shown
from shannon_game.experiments.studies.plain_table import Table
from shannon_game.experiments.studies.scales import ENOUGH

__all__ = ["SUM_SLACK", "RowWeights", "draws_of_shares", "row_weights"]

SUM_SLACK = 0.02
"""A sum of shares printed with two digits each is off by more than this only where answers are left out."""


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights of the rows of a table, NaN where a row has none, and whether each is a share and not a count."""

    weight: NDArray[np.float64]
    is_share: NDArray[np.bool_]


def row_weights(table: Table, *, percent: bool) -> RowWeights:
    """Read counts and shares; models' rows may have probabilities where people's have counts, or are one answer."""
    has_count = "count" in table.names
    if "proportion" not in table:
        weight = table["count"] if has_count else np.ones(len(table))
        return RowWeights(weight, np.zeros(weight.shape, dtype=bool))
    count = table["count"] if has_count else np.full(len(table), np.nan)
    share = table.shares("proportion", percent=percent, empty=True)
    beyond = (share < 0) | (share > 1)
    hint = "; study.percent=true reads percentages" if ((share > 1) & (share <= 100)).any() else ""
    table.wrong(beyond, "proportion", f"a share between 0 and 1{hint}")
    of_people = np.ones(share.shape, dtype=bool)
    if "model" in table:
        of_people = table["model"] == ""
        if percent:
            _refuse_fractions_of_models(table, share)
    given = ~np.isnan(share)
    _refuse_both(table, ~np.isnan(count) & given, "has a count and a proportion; leave one empty")
    if has_count:
        _refuse_both(table, of_people & given, "has a proportion, but people have counts in this table")
    elif not of_people.all() and not given[of_people].any():
        count = np.where(of_people, 1.0, count)
    is_share = np.isnan(count) & given
    return RowWeights(np.where(is_share, share, count), is_share)


def _refuse_fractions_of_models(table: Table, share: NDArray[np.float64]) -> None:
    """Refuse a model none of whose percentages is above 1, as probabilities beside people's percentages are."""
    models = table["model"].astype(str)
    for model in np.unique(models[models != ""]):
        own = share[(models == model) & ~np.isnan(share)]
        if own.size >= ENOUGH and 0 < own.max() <= 1 / 100:
            problem = f"is at most {100 * own.max():g} for model {shown(str(model))}; write all on one scale: "
            raise table.error(problem + "study.percent=true reads percentages", "proportion")


def _refuse_both(table: Table, bad: NDArray[np.bool_], problem: str) -> None:
    if bad.any():
        place = f"{table.where(int(np.argmax(bad)))}: {problem} ({int(bad.sum())} such rows)"
        raise table.error(place, "proportion")


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
