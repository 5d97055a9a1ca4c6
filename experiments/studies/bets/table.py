"""Bets from one plain table: one row per word that somebody named, and what was staked on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import model_validator

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.bets import validate_bet_study
from shannon_game.estimators.bets.study import GENERATOR
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.result import loader, of_frames
from shannon_game.experiments.studies.cells import bare, check_scale, composed, same_words
from shannon_game.experiments.studies.parsing import Note, add_notes
from shannon_game.experiments.studies.plain_table import Columns, Groups, Table, table_of
from shannon_game.experiments.studies.table_file import OneTable
from shannon_game.inference.settings import Positive, Settings

# percent that were rounded to whole ones add up to 99 or 101
_SLACK = 0.015


class BetColumns(Columns):
    """Names of the table's columns."""

    participant: Annotated[str, "id"] = "participant"
    """Who bet."""
    item: Annotated[str, "id"] = "item"
    """The place of a text; any text names it."""
    target: Annotated[str, "text"] = "target"
    """The true next word, the same in every row of an item."""
    word: Annotated[str, "text_or_empty"] = "word"
    """The word named; empty, with an empty stake, in the one row of an answer that names none."""
    stake: Annotated[str, "amount_or_empty"] = "stake"
    """What lies on it: chips, percent or shares, see `total`."""
    other: Annotated[str | None, "amount"] = None
    """What lies on anything else, the same in every row of an answer; null: what the words leave of `total`."""
    context: Annotated[str | None, "text_or_empty"] = None
    """The text before the target."""


class BetModelColumns(Columns):
    """Columns of a language model that scored the words: natural logarithms; an empty cell was not asked."""

    target: Annotated[str, "logprob_or_empty"]
    """ln p(target | context), the same in every row of an item."""
    word: Annotated[str, "logprob_or_empty"]
    """ln p(word named | context)."""


class BetLayout(Settings):
    """What the table means."""

    columns: BetColumns = BetColumns()
    """Names of the table's columns."""
    total: Positive = 100.0
    """What the stakes of an answer add up to, that on anything else among them: 100 chips or percent; 1 for shares.
    Where it is 10 or more, shares are refused: a participant with three answers or more that stake at most 1 each and
    less on some word, or a quarter of such answers."""
    models: Mapping[str, BetModelColumns] = {}
    """Language models that scored the words: NAME: {target: COLUMN, word: COLUMN}."""
    generator: str | None = None
    """Which of the models is the generator; null where there is none, or a single model, which it then is."""
    match: Literal["exact", "folded"] = "exact"
    """When word and target are the same: exact, or folded (without outer spaces and letter case)."""
    extremes: Positive | None = None
    """What a stake of 0 stands for, in the stakes' own unit: smaller stakes are raised to it, the answer is made a sum
    of `total` again, and both are counted; null keeps zeros, which cost an infinite loss where they came."""
    missing: Literal["error", "drop"] = "error"
    """What to do with an answer that has an empty cell; drop leaves the whole answer out, counted."""

    @model_validator(mode="after")
    def _fits(self) -> BetLayout:
        if self.generator is not None and self.generator not in self.models:
            raise unknown_choice("generator", self.generator, self.models, source="settings")
        if self.extremes is not None and self.extremes >= self.total / 10:
            raise InputError(f"is {self.extremes:g}, should be below a tenth of {self.total:g}", field="extremes")
        return self


class BetTableSettings(BetLayout, OneTable):
    """Settings of bets in one table, with one row per word that was bet on."""


@loader(BetTableSettings)
def bet_table(settings: BetTableSettings) -> xr.Dataset:
    """Load a table of bets as a bet study.

    See :func:`bet_study`.
    """
    return _study_of(settings.read("bet", settings.columns.given.values()), settings, name=settings.path.stem)


@of_frames(BetLayout)
def bet_study(bets: pd.DataFrame, *, name: str = "bet study", **settings: Any) -> xr.Dataset:
    """Make a bet study of a DataFrame; the columns may have other names, see `columns`.

    Parameters
    ----------
    bets : pandas.DataFrame
        One row per word that was bet on: ``participant``, ``item``, ``target``, ``word`` and ``stake``. An answer is
        all rows of one participant and item.
    name : str, optional
        Of the study.

    Returns
    -------
    xarray.Dataset
        Passes :func:`shannon_game.estimators.bets.validate_bet_study`; ``table_row`` (bet) is the row's number, from 1.

    Examples
    --------
    >>> import pandas as pd
    >>> from shannon_game import bet_study
    >>> rows = [["ann", "q1", "cat", "cat", 50], ["ann", "q1", "cat", "dog", 20], ["bo", "q1", "cat", "cow", 60]]
    >>> bets = pd.DataFrame(rows, columns=["participant", "item", "target", "word", "stake"])
    >>> bet_study(bets)["other_stake"].values.tolist()
    [0.3, 0.4]
    """
    table = table_of(bets, "bets", of="bet", needed=BetColumns().given)
    return _study_of(table, BetLayout(**settings), name=name)


def _study_of(table: Table, settings: BetLayout, *, name: str) -> xr.Dataset:
    n_rows = len(table)
    table = table.named(settings.columns.given, BetColumns.types(), models=settings.models)
    blank = {name: table.blank(name) for name in settings.columns.given if name != "context"}
    # a row without word and stake says that its answer names no word
    silent = blank["word"] & blank["stake"]
    blank |= {name: blank[name] & ~silent for name in ("word", "stake")}
    table = table.without(blank, settings.missing, of="answer", by=("participant", "item"))
    answer = table.groups("participant", "item", what="answer")
    of_item = table.groups("item", what="item")
    other, stake = _shares(table, answer, settings)
    target = of_item.one("target")
    is_bet = np.flatnonzero(table["word"] != "")
    word, bets = table["word"][is_bet], table.take(is_bet)
    _refuse_doubled(bets, answer.of_row[is_bet], settings)
    hit = same_words(table, word, target[of_item.of_row[is_bet]], settings.match)
    variables: dict[str, Any] = {
        "item_id": ("item", table["item"][of_item.first]),
        "target": ("item", target),
        "participant": ("response", table["participant"][answer.first]),
        "response_item": ("response", of_item.of_row[answer.first].astype(np.int64)),
        "other_stake": ("response", other),
        "bet_response": ("bet", answer.of_row[is_bet].astype(np.int64)),
        "bet_word": ("bet", word),
        "bet_stake": ("bet", stake[is_bet]),
        "bet_hit": ("bet", hit),
        "table_row": ("bet", bets.cells.index.to_numpy() + 1),
    }
    if "context" in table:
        variables["context"] = ("item", of_item.one("context"))
    coords: dict[str, Any] = {"item": np.arange(len(of_item))}
    attrs = {"name": name, "data_sha256": table.sha256}
    if settings.models:
        names = list(settings.models)
        variables["target_logprob"] = (("model", "item"), np.stack([of_item.one(f"{each} target") for each in names]))
        variables["bet_logprob"] = (("model", "bet"), np.stack([bets[f"{each} word"] for each in names]))
        coords["model"] = np.array(names, dtype=object)
        generator = settings.generator or (names[0] if len(names) == 1 else None)
        attrs |= {} if generator is None else {GENERATOR: generator}
    study = xr.Dataset(variables, coords=coords, attrs=attrs)
    table.note("answers that name no word", len(answer) - np.unique(answer.of_row[is_bet]).size)
    add_notes(study, [Note("rows in the table", n_rows), *table.notes])
    return validate_bet_study(study)


def _refuse_doubled(bets: Table, answer: NDArray[np.intp], settings: BetLayout) -> None:
    """Refuse a word that an answer names twice: whose stake counts is nothing to guess."""
    word = bets["word"]
    named = pd.DataFrame({"answer": answer, "word": bare(word) if settings.match == "folded" else composed(word)})
    bets.refuse(named.duplicated().to_numpy(), "word", "which the same participant has named for this item before")


def _shares(table: Table, answer: Groups, settings: BetLayout) -> tuple[FloatArray, FloatArray]:
    total, stake = settings.total, np.nan_to_num(table["stake"])
    sums: FloatArray = np.bincount(answer.of_row, weights=stake).astype(np.float64)
    staked, cure = sums > 0, f"shares take {Set('study.total', 1)}; a table has one scale"
    positive = pd.Series(np.where(stake > 0, stake, np.inf))
    least: FloatArray = positive.groupby(answer.of_row).min().to_numpy().astype(np.float64)[staked]
    check_scale(table, "stake", sums[staked], answer.first[staked], top=total, cure=cure, least=least)
    other: FloatArray = answer.one("other") if "other" in table else np.maximum(total - sums, 0)
    off = np.abs(sums + other - total)
    bad = off > (_SLACK if "other" in table else 1e-9) * total
    if bad.any():
        at = int(np.argmax(bad))
        where = f"in the answer that begins in {table.where(answer.first[at])} ({int(bad.sum())} such)"
        right = f"should be {'' if 'other' in table else 'at most '}{total:g}; {Set('study.total', ...)} sets the total"
        raise table.error(f"adds up to {(sums + other)[at]:g} {where}, {right}", "stake")
    table.note(f"answers that did not add up to {total:g} exactly; made to", off > 1e-6 * total)
    if settings.extremes is not None:
        lowest, named = settings.extremes, table["word"] != ""
        low = int((stake[named] < lowest).sum() + (other < lowest).sum())
        stake, other = np.where(named, np.maximum(stake, lowest), stake), np.maximum(other, lowest)
        table.note(f"stakes raised to {lowest:g} (extremes)", low, "warning")
    sums = np.bincount(answer.of_row, weights=stake) + other
    return other / sums, stake / sums[answer.of_row]
