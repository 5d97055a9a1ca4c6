"""Next words: how far models' words are from people's, beside one half of the people and words without a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators import cloze
from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze.distributions import Ints, sums_by_context
from shannon_game.estimators.cloze.study import model_names
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.boards.abilities import MAJORITIES, Asked, Measured, UnitScores, of_each
from shannon_game.experiments.cloze.live_words import lost_spellings, spellings, usable_contexts
from shannon_game.experiments.cloze.settings import groups_of
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.harness.text_models import AnyModel
from shannon_game.inference.lm.engine import EngineBase, open_engine

DISTANCES = ("tvd", "jensen_shannon")


@dataclass(frozen=True, eq=False)
class People:
    """People's answers at the contexts asked, split into halves, and words that know no context."""

    words: cloze.StudyWords
    rules: cloze.WordRules
    item: NDArray[np.intp]
    text: list[str]
    group: NDArray[np.str_]
    halves: cloze.SplitHalves
    unigram: FloatArray
    """Share, (row,), of people's words among the answers to other texts."""
    unigram_mode: Ints
    """Row of the most frequent of those, (context,); -1 where nobody gave it."""

    @property
    def counts(self) -> cloze.WordCounts:
        """Answers at the contexts asked."""
        return self.halves.counts

    def row_of(self, word: Ints) -> Ints:
        """Row of one word per context; -1 where nobody gave it."""
        counts = self.counts
        found = np.full_like(word, -1)
        at = np.flatnonzero(counts.word == word[counts.context])
        found[counts.context[at]] = at
        return found


@dataclass(frozen=True, eq=False)
class Predicted:
    """Exact probabilities of people's words, (row,), and the row of the modal word of each context."""

    q: FloatArray
    mode: Ints


def next_words(study: xr.Dataset, models: Mapping[str, AnyModel], asked: Asked) -> Measured:
    """Score models' words, exact or stored samples, beside people's."""
    people = people_of(study, asked)
    notes: list[str] = []

    def scored(name: str, chosen: AnyModel) -> dict[str, FloatArray]:
        found, doubts = _predicted(study, people, open_engine(name, chosen), asked)
        notes.extend(doubts)
        return exact_scores(people, found, rng_for(asked.settings.seed, "words drawn"))

    values, left_out = of_each(models, scored)
    for name, its in values.items():
        if not np.isfinite(its["cross_entropy"]).all():
            n = int((~np.isfinite(its.pop("cross_entropy")).all(axis=0)).sum())
            left_out[name] = f"cross-entropy: infinite at {n} contexts, where an answer cannot be written"
    for name in people.words.models:
        try:
            values[name] = sampled_scores(people, name, rng_for(asked.settings.seed, "words drawn"))
        except InputError as error:
            left_out[name] = str(error)
        else:
            left_out[name] = "cross_entropy, exact_tvd: samples have no probabilities"
    half = people.halves.second.sum(axis=1).mean() / len(people.item)
    for name in asked.stored([f"majority_{n}" for n in MAJORITIES if n < half]):
        rng = rng_for(asked.settings.seed, name)
        values[name] = {"modal_word": majority_scores(people.halves, int(name.removeprefix("majority_")), rng)}
    return Measured(_scores(people, values), left_out, tuple(notes))


def people_of(study: xr.Dataset, asked: Asked) -> People:
    """Read people's answers, and choose the contexts."""
    settings = asked.settings
    rules = settings.words.of(study)
    stored = asked.stored(model_names(study))
    words = cloze.study_words(study, human=rules, model=rules, corpus=rules, models=stored)
    answers = words.answers()
    usable = usable_contexts(study, words)
    usable = usable[answers.totals[usable] > 1]
    if not len(usable):
        raise InputError("has no context with a text and two answers", source=f"study {study.attrs.get('name')!r}")
    item = usable[asked.chosen(len(usable), "contexts")]
    rng = rng_for(settings.seed, "halves of the people")
    halves = cloze.random_split_halves(answers.take(item), n_splits=settings.n_splits, rng=rng)
    every = groups_of(study, usable).astype(str)
    # of one text alone: each context by itself
    of = dict(zip(usable.tolist(), every if len(set(every)) > 1 else usable.astype(str), strict=True))
    group = np.array([of[each] for each in item.tolist()])
    unigram, mode = _unigram(answers.take(usable), np.array(list(of.values())), halves.counts, group)
    text = [str(each).rstrip() for each in study["context"].to_numpy()[item]]
    found = People(words, rules, item, text, group, halves, unigram, mode)
    return People(**{**vars(found), "unigram_mode": found.row_of(mode)})


def _unigram(
    answers: cloze.WordCounts, group_of_answer: NDArray[np.str_], rows: cloze.WordCounts, group: NDArray[np.str_]
) -> tuple[FloatArray, Ints]:
    """Share of words among people's answers to other texts, one added to each, and the most frequent one."""
    names, code = np.unique(group_of_answer, return_inverse=True)
    width = int(answers.word.max()) + 1
    total = np.bincount(answers.word, weights=answers.count, minlength=width)
    n_words, unigram, mode = int((total > 0).sum()), np.empty(len(rows.word)), np.empty(len(group), dtype=np.int64)
    for name in np.unique(group):
        own = code[answers.context] == np.searchsorted(names, name)
        others = total - np.bincount(answers.word[own], weights=answers.count[own], minlength=width)
        its = group == name
        at = its[rows.context]
        unigram[at] = (others[rows.word[at]] + 1) / (others.sum() + n_words)
        mode[its] = int(np.argmax(others))
    return unigram, mode


def exact_scores(people: People, found: Predicted, rng: np.random.Generator) -> dict[str, FloatArray]:
    """All scores of exact probabilities, (split, context)."""
    halves = people.halves
    scores = cloze.distance_scores(halves, cloze.drawn_words(halves, found.q, rng=rng))
    scores["cross_entropy"] = cloze.cross_entropy_scores(halves, found.q)
    scores["modal_word"] = cloze.modal_scores(halves, found.mode)
    return scores | {"exact_tvd": cloze.tvd_exact(cloze.relative_frequencies(halves.counts), found.q)[None]}


def sampled_scores(people: People, name: str, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Scores of stored samples, where a context has as many as half of the people; NaN elsewhere."""
    model = people.words.models[name]
    place = np.full(int(max(people.item.max(), model.item.max(initial=0))) + 1, -1)
    place[model.item] = np.arange(len(model.item))
    at = place[people.item]
    have = np.flatnonzero((at >= 0) & (model.counts.totals[at] >= people.counts.totals // 2))
    if len(have) < 2:
        raise InputError(f"has {len(have)} of the contexts with as many words as half of the people")
    halves, counts = _at(people.halves, have), model.counts.take(at[have])
    drawn = cloze.subsampled_words(halves, counts, rng=rng)
    some = cloze.distance_scores(halves, drawn)
    # the mode of all samples, a word that nobody gave as well
    mode = np.full(len(people.item), -1, dtype=np.int64)
    mode[have] = cloze.top_words(counts).word
    some["modal_word"] = cloze.modal_scores(people.halves, people.row_of(mode))[:, have]
    found = {score: np.full((len(halves.first), len(people.item)), np.nan) for score in some}
    for score, values in some.items():
        found[score][:, have] = values
    return found


def majority_scores(halves: cloze.SplitHalves, n: int, rng: np.random.Generator) -> FloatArray:
    """Score the modal word of n people of the other half, (split, context); NaN where it has fewer."""
    context, drawn = halves.counts.context, np.zeros_like(halves.second)
    for split, count in enumerate(halves.second):
        answers = np.repeat(np.arange(len(count)), count)
        order = np.lexsort((rng.random(len(answers)), context[answers]))
        own = context[answers[order]]
        taken = answers[order][np.arange(len(own)) - np.searchsorted(own, own) < n]
        drawn[split] = np.bincount(taken, minlength=len(count))
    size = sums_by_context(context, halves.second, halves.counts.n_contexts)
    return np.where(size >= n, cloze.modal_scores(halves, drawn), np.nan)


def _at(halves: cloze.SplitHalves, contexts: NDArray[np.intp]) -> cloze.SplitHalves:
    """Halves at some contexts, in increasing order."""
    rows = np.isin(halves.counts.context, contexts)
    return cloze.SplitHalves(halves.counts.take(contexts), halves.first[:, rows], halves.second[:, rows])


def _scores(people: People, values: Mapping[str, Mapping[str, FloatArray]]) -> tuple[UnitScores, ...]:
    halves, rng = people.halves, np.random.default_rng(len(people.item))
    floor = cloze.distance_scores(halves, cloze.drawn_words(halves, people.unigram, rng=rng))
    ceiling = cloze.distance_scores(halves, halves.second)
    floor["cross_entropy"] = cloze.cross_entropy_scores(halves, people.unigram)
    smoothed = cloze.smoothed_half(halves, people.unigram)
    ceiling["cross_entropy"] = cloze.cross_entropy_scores(halves, smoothed)
    floor["modal_word"] = cloze.modal_scores(halves, people.unigram_mode)
    ceiling["modal_word"] = cloze.modal_scores(halves, halves.second)
    # splits are noise of ours: what is held against people is the mean over them
    floor, ceiling = ({name: part.mean(axis=0) for name, part in its.items()} for its in (floor, ceiling))
    unit = np.array(people.text)
    return tuple(
        UnitScores(
            score,
            {name: its[score].mean(axis=0) for name, its in values.items() if score in its},
            unit=unit,
            group=people.group,
            floor=floor.get(score),
            ceiling=ceiling.get(score),
        )
        for score in (*DISTANCES, "cross_entropy", "modal_word", "exact_tvd")
    )


def _predicted(study: xr.Dataset, people: People, engine: EngineBase, asked: Asked) -> tuple[Predicted, list[str]]:
    rows = people.counts
    forms = spellings(study, people.words, people.item, people.rules, most=asked.settings.max_forms)
    can, lost = engine.writable(forms)
    said = list(zip(rows.context.tolist(), [can[str(people.words.strings[code])] for code in rows.word], strict=True))
    q, _ = engine.word_probabilities(asked.work, people.text, said)
    best = engine.best_words(asked.work, people.text)
    doubts = lost_spellings(engine.name, lost, engine.word_note)
    return Predicted(q, _modal_rows(people, q, people.row_of(_codes(people, best)))), doubts


def _codes(people: People, words: Sequence[str | None]) -> Ints:
    """Codes of strings as people's words; -1 for one that nobody gave, or none."""
    known = {str(word): code for code, word in enumerate(people.words.strings)}
    normal = cloze.normalise_words([word or "" for word in words], people.rules).words.tolist()
    pairs = zip(words, normal, strict=True)
    # a blank answer, where it counts as a word, is not what a model gave that began none
    return np.array([known.get(str(its), -1) if word else -1 for word, its in pairs], dtype=np.int64)


def _modal_rows(people: People, q: FloatArray, greedy: Ints) -> Ints:
    """Row of each context's modal word, -1: none of people's.

    It is the most probable of people's words where no other can be more probable, or where greedy decoding gave one of
    them. Where decoding begins no word, as with a mark or an end, another word may be more probable: that is a miss.
    """
    rows = people.counts
    mode = np.full(rows.n_contexts, -1, dtype=np.int64)
    order = np.lexsort((q, rows.context))
    # the last of each context is its largest
    mode[rows.context[order]] = order
    rest = 1 - sums_by_context(rows.context, q, rows.n_contexts)
    return np.where((q[mode] >= rest) | (greedy >= 0), mode, -1)
