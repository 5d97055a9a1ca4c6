"""From a cloze study to counts of comparable words: people's, models' and the corpus's, in one coding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.cloze.distributions import (
    Distributions,
    WordCounts,
    count_words,
    distributions_from_proportions,
    relative_frequencies,
)
from shannon_game.estimators.cloze.study import CLOZE, SAMPLES, entry_positions, model_names
from shannon_game.estimators.cloze.words import NormalisedWords, WordRules, normalise_words
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.layout import item_positions


@dataclass(frozen=True, eq=False, repr=False)
class ModelWords(Result):
    """What one model said.

    Parameters
    ----------
    counts : WordCounts
        Its contexts are the rows of `item`.
    item : ndarray of int, shape (context,)
        Position along the study's ``item`` of each context. Sorted and without repeats where samples are pooled;
        one row per entry in the order of the file where they are not.
    missing : mapping of str to int
        Samples left out, by reason ("blank", "failed", "junk", "no answer").
    n_samples : int
        Samples before that.
    """

    counts: WordCounts
    item: NDArray[np.intp]
    missing: Mapping[str, int]
    n_samples: int


@dataclass(frozen=True, eq=False, repr=False)
class StudyWords(Result):
    """Words of a study in one coding: a code is a position in `strings`.

    Parameters
    ----------
    strings : ndarray of str objects, shape (code,)
        Normalised words.
    human_distributions : Distributions
        Over the items. Of proportions where the study has no counts.
    human : WordCounts, optional
        Answers; None where the study has proportions only.
    human_missing : mapping of str to float
        Answers left out, by reason (a sum of proportions where there are no counts).
    target : ndarray of int, shape (item,)
        Code of the corpus word; -1 where there is none.
    blank : int
        Code of the empty word where the rules keep it and there is one, else -1.
    n_human : float
        Answers, those left out too (a sum of proportions where there are no counts).
    human_cut : mapping of str to tuple of str and float
        Answer of several words -> its first word, which stands for it, and how often it was given; the most frequent
        first. Models' samples are cut, too, as they go on after the word.
    """

    strings: NDArray[np.object_]
    human_distributions: Distributions
    human: WordCounts | None
    human_missing: Mapping[str, float]
    target: NDArray[np.int64]
    blank: int
    models: Mapping[str, ModelWords]
    n_human: float
    human_cut: Mapping[str, tuple[str, float]]

    def answers(self) -> WordCounts:
        """People's counts; for what needs the number of answers."""
        if self.human is None:
            problem = "has proportions and no counts, which this needs; give the loader n_answers=N answers per context"
            raise InputError(problem, source="study")
        return self.human


def study_words(
    study: Dataset,
    *,
    human: WordRules,
    model: WordRules | Mapping[str, WordRules],
    corpus: WordRules,
    models: Sequence[str] | None = None,
    per: Literal["item", "entry"] = "item",
) -> StudyWords:
    """Normalise and count the words of a cloze study.

    Parameters
    ----------
    human, model, corpus : WordRules
        For people's answers, models' samples (or a mapping by model) and the word of the text.
    models : sequence of str, optional
        All of the study by default.
    per : {"item", "entry"}, optional
        Pool a model's samples over its entries for an item, or keep every entry, as the paper's code does.

    Examples
    --------
    >>> words = cloze.study_words(cloze.examples.cloze_study(), human="clean", model="clean", corpus="clean")
    >>> words.human.totals[:3]
    array([20, 20, 20])
    >>> list(words.models)
    ['mixture', 'factors']
    """
    if per not in ("item", "entry"):
        raise unknown_choice("per", per, ("item", "entry"))
    study = CLOZE.read(study)
    names = model_names(study) if models is None else list(models)
    coding = _Coding(study["word_text"].values)
    n_items = study.sizes["item"]
    used, row, done = coding.normalised(study["response_word"].values, human)
    answer, human_reason = coding.of(done)[row], done.reason[row]
    item = item_positions(study, "response_item")
    counts: WordCounts | None = None
    if "response_count" in study:
        weight = study["response_count"].values
        counts = count_words(item, answer, weight, n_contexts=n_items)
        everyone = relative_frequencies(counts)
    else:
        weight = study["response_proportion"].values
        everyone = distributions_from_proportions(item, answer, weight, n_contexts=n_items)
    missing = {name: float(weight[human_reason == name].sum()) for name in sorted(set(human_reason.tolist()) - {""})}
    given = np.bincount(row, weights=weight, minlength=len(used))
    cut = sorted(np.flatnonzero(done.cut & (given > 0)).tolist(), key=lambda at: -given[at])
    human_cut = {str(study["word_text"].values[used[at]]): (str(done.words[at]), float(given[at])) for at in cut}
    target = coding.targets(study["target_word"].values, corpus)
    found = {
        name: _model_words(study, name, coding, model[name] if isinstance(model, Mapping) else model, per)
        for name in names
    }
    return StudyWords(
        coding.strings(), everyone, counts, missing, target, coding.blank(), found, float(weight.sum()), human_cut
    )


class _Coding:
    """Codes of normalised words, given in the order in which they are first met."""

    def __init__(self, texts: NDArray[np.object_]) -> None:
        self._texts = texts
        self._codes: dict[str, int] = {}

    def blank(self) -> int:
        return self._codes.get("", -1)

    def normalised(
        self, positions: NDArray[np.int64], rules: WordRules
    ) -> tuple[NDArray[np.int64], NDArray[np.intp], NormalisedWords]:
        """Distinct positions along ``word``, which of them each one is, and the words that stand there."""
        used, row = np.unique(positions, return_inverse=True)
        return used, row, normalise_words(self._texts[used], rules)

    def targets(self, texts: NDArray[np.object_], rules: WordRules) -> NDArray[np.int64]:
        """Codes of the corpus's words; rules that keep blank answers make no word of a target that is not there."""
        there = texts != ""
        codes = np.full(len(texts), -1, dtype=np.int64)
        codes[there] = self.of(normalise_words(texts[there], rules))
        return codes

    def of(self, done: NormalisedWords) -> NDArray[np.int64]:
        """Codes of words; -1: missing."""
        return done.codes(self._codes, grow=True)

    def strings(self) -> NDArray[np.object_]:
        strings = np.empty(len(self._codes), dtype=object)
        strings[:] = list(self._codes)
        return strings


def _model_words(
    study: Dataset, name: str, coding: _Coding, rules: WordRules, per: Literal["item", "entry"]
) -> ModelWords:
    entries = entry_positions(study, name)
    source = study["source"].values.tolist().index(SAMPLES)
    place = np.full(study.sizes["entry"], -1, dtype=np.int64)
    item = item_positions(study, "entry_item")[entries]
    if per == "item":
        item, context_of_entry = np.unique(item, return_inverse=True)
        place[entries] = context_of_entry
    else:
        place[entries] = np.arange(len(entries))
    context = place[study["sample_entry"].values]
    rows = (context >= 0) & (study["sample_source"].values == source)
    _, row, done = coding.normalised(study["sample_word"].values[rows], rules)
    words, reason = coding.of(done)[row], done.reason[row]
    drawn = study["sample_count"].values[rows]
    counts = count_words(context[rows], words, drawn, n_contexts=len(item))
    missing = {kind: int(drawn[reason == kind].sum()) for kind in sorted(set(reason.tolist()) - {""})}
    return ModelWords(counts, item, missing, int(drawn.sum()))
