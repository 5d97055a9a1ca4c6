"""How often the most frequent word of n people is right, beside models' most frequent words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators import cloze
from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.documents import majority_accuracy
from shannon_game.experiments.cloze.settings import chosen_models, groups_of, words_of
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.documents.majority import (
    PEOPLE,
    TEXT,
    MajorityRow,
    majority_figure,
    majority_rows,
    majority_text,
)
from shannon_game.experiments.harness.result import ExperimentResult


def majorities(study: xr.Dataset, settings: TvdSettings, sizes: Sequence[int]) -> ExperimentResult:
    """Accuracy by the number of people who predict the word of the text, and another person's answer."""
    words = words_of(settings, study, chosen_models(settings, study, needed=False))
    answers, rows = words.answers(), []
    word, place = (np.repeat(values, answers.count) for values in (answers.word, answers.context))
    known = words.target[place] >= 0
    for predicts, kept in ((TEXT, known), (PEOPLE, np.ones_like(known))):
        if not kept.any():
            continue
        right = word[kept] == words.target[place[kept]] if predicts == TEXT else None
        found = majority_accuracy(
            word[kept], place[kept], sizes=[*sorted(sizes), 0], right=right, group=groups_of(study, place[kept]),
            probability=settings.interval, seed=settings.seed,
        )  # fmt: skip
        models = {name: _of_model(words, name, right is None)[found.context] for name in words.models}
        rows += majority_rows(predicts, found, models, groups_of(study, found.context), settings.interval)
    table = MajorityRow.table(rows)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(MajorityRow.variables(table, "row")),
        figures={"majority": majority_figure(table, str(study.attrs["name"]), interval=settings.interval)},
        text=majority_text(table),
        row=MajorityRow,
    )


def _of_model(words: cloze.StudyWords, name: str, of_people: bool) -> FloatArray:
    """Accuracy of a model's most frequent words in every context of the study; NaN where it has none."""
    model, people = words.models[name], cloze.relative_frequencies(words.answers())
    counts = model.counts
    most = np.zeros(counts.n_contexts, dtype=np.int64)
    np.maximum.at(most, counts.context, counts.count)
    top: NDArray[np.intp] = np.flatnonzero(counts.count == most[counts.context])
    item, word = model.item[counts.context[top]], counts.word[top]
    right = (word == words.target[item]).astype(float)
    if of_people:
        rows = cloze.WordCounts(item, word, counts.count[top], len(words.target))
        right = cloze.distributions.probability_at(people, rows)
    n = np.bincount(item, minlength=len(words.target)).astype(float)
    total = np.bincount(item, weights=right, minlength=len(words.target))
    return np.asarray(np.divide(total, n, out=np.full(len(n), np.nan), where=n > 0))
