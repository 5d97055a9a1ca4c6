"""What only the code of "Predict the Next Word" does: its words, its halves of people, its random numbers, its rows."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.cloze import (
    WORD_RULES,
    SplitHalves,
    WordCounts,
    WordRules,
    entropy_nats,
    relative_frequencies,
    study_words,
    tvd_between_split_halves,
    tvd_to_split_halves,
)
from shannon_game.estimators.cloze.study_words import StudyWords
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.papers.provo.stored import without_word
from shannon_game.models.cloze.ard_columns import ArdColumns, columns_of, context_lengths

PUBLISHED = WordRules(
    "published", (), (), False, "keep", "space", "lower", "keep", "keep", "keep", "keep", "keep", "keep"
)
"""What the analysis code does to people's answers and to the words of the GPT-2 files: lower case, nothing else."""

PUBLISHED_RAW = WordRules(
    "published_raw", (), (), False, "keep", "delete", "lower", "first", "keep", "all", "drop", "keep", "drop"
)
"""What its preprocessing made of generated strings (BLOOM, ChatGPT)."""


def legacy_split_halves(
    counts: WordCounts,
    seeds: list[int],
    *,
    size: int | Literal["half"] = 20,
    in_place: bool = False,
    remove_odd: bool = True,
) -> SplitHalves:
    """Split as the code of "Predict the Next Word" does.

    It calls ``random.seed(seed)`` anew for every context; of an odd number of answers it removes one in place, then
    samples `size` for the first half ("oracle 1"), and the rest is the second ("oracle 2"). Contexts with as many
    answers get the same positions of their lists, which are sorted by frequency: the splits of one seed are alike, and
    means over contexts vary far more between seeds than those of independent splits do.
    """
    answers = np.repeat(np.arange(len(counts.count)), counts.count)
    totals = counts.totals
    starts = np.cumsum(totals) - totals
    n_rows = len(counts.count)
    shape = (len(seeds), n_rows)
    first, second = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    seen = np.full(shape, np.iinfo(np.int64).max)
    for total in np.unique(totals):
        even = int(total) - (int(total) % 2 if remove_odd else 0)
        n_first = even // 2 if size == "half" else int(size)
        if n_first > even or total == 0:
            raise InputError(f"a context has {total} answers, too few for a half of {n_first}", field="size")
        members = np.flatnonzero(totals == total)
        lists = answers[starts[members][:, None] + np.arange(total)]
        for split, seed in enumerate(seeds):
            before = seeds[0] if in_place and split else None
            kept, sampled = _positions(int(total), seed, n_first, before, remove_odd)
            of_first = lists[:, kept][:, sampled]
            np.add.at(first[split], of_first.ravel(), 1)
            rest = np.delete(lists[:, kept], sampled, axis=1)
            np.add.at(second[split], rest.ravel(), 1)
            np.minimum.at(seen[split], of_first.ravel(), np.tile(np.arange(n_first), len(members)))
    return SplitHalves(counts, first, second, seen)


def legacy_bootstrap_halves(counts: WordCounts, seeds: tuple[int, int] = (0, 1)) -> SplitHalves:
    """Draw two halves with replacement, each half as large as the answers, as appendix A's code does."""
    answers = np.repeat(np.arange(len(counts.count)), counts.count)
    totals = counts.totals
    starts = np.cumsum(totals) - totals
    parts = np.zeros((2, 1, len(counts.count)), dtype=np.int64)
    for total in np.unique(totals):
        members = np.flatnonzero(totals == total)
        for side, seed in enumerate(seeds):
            draw = random.Random(seed)
            chosen = np.array(draw.choices(range(int(total)), weights=[1] * int(total), k=int(total) // 2))
            rows = answers[starts[members][:, None] + chosen]
            np.add.at(parts[side, 0], rows.ravel(), 1)
    return SplitHalves(counts, parts[0], parts[1])


def appendix_halves(counts: WordCounts, *, with_replacement: bool) -> SplitHalves:
    """Split as appendix A does: two halves, or two draws with replacement."""
    if with_replacement:
        return legacy_bootstrap_halves(counts)
    return legacy_split_halves(counts, [0], size="half", remove_odd=False)


def words_as_written(study: xr.Dataset) -> StudyWords:
    """People's words of a study with no rule applied."""
    none = WORD_RULES["none"]
    return study_words(study, human=none, model=none, corpus=none, models=[])


@functools.lru_cache(maxsize=4096)
def _positions(
    total: int, seed: int, size: int, removed_before: int | None, remove_odd: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions left after the removal, by an earlier seed where one is given, and the first half among them."""
    draw = random.Random(seed)
    kept = list(range(total))
    if total % 2 and remove_odd:
        remover = draw if removed_before is None else random.Random(removed_before)
        del kept[remover.sample(range(total), 1)[0]]
    # an empty list would become floats
    return np.array(kept, dtype=np.intp), np.array(draw.sample(range(len(kept)), size), dtype=np.intp)


def improved_legacy(model: ArrayLike, oracle: ArrayLike, share: float, *, skip_draws: int = 0) -> NDArray[np.float64]:
    """Replace a random share of a model's TVDs by those between oracles, with the random numbers of the paper's code.

    It calls ``numpy.random.seed(int(10 * share))`` and keeps the model's value where a uniform number exceeds the
    share; the biased estimator takes the first set of uniform numbers and the unbiased the second (``skip_draws=1``).
    """
    model, oracle = np.asarray(model, dtype=float), np.asarray(oracle, dtype=float)
    # the legacy generator is what the published numbers came from
    draw = np.random.RandomState(int(share * 10))
    for _ in range(skip_draws):
        draw.random_sample(len(model))
    return np.where(draw.random_sample(len(model)) > share, model, oracle)


def legacy_columns(study: xr.Dataset, model: str, predictors: Sequence[str], *, seed: int = 0) -> ArdColumns:
    """Rows as appendix B of "Predict the Next Word" makes them.

    One row for each entry of the model's file, repeats included. People's answers are halved once with the same seed
    for every context, blank answers taken as a word; oracle 1 stands in the target and in ``oracle_tvd``. Human entropy
    is of all answers but the blank ones, that of the model of its samples without the failed ones.
    """
    human = PUBLISHED
    said = replace(PUBLISHED, failed="drop")
    words = study_words(study, human=human, model=said, corpus=WORD_RULES["none"], models=[model], per="entry")
    found = words.models[model]
    given, q = words.answers().take(found.item), relative_frequencies(found.counts)
    # a person's blank answer is NaN there, which is no model's empty word
    blank = len(words.strings)
    people = WordCounts(
        given.context, np.where(given.word == words.blank, blank, given.word), given.count, given.n_contexts
    )
    oracles = legacy_split_halves(people, [seed], size="half")
    made = {
        "human_entropy": entropy_nats(relative_frequencies(without_word(people, blank))),
        "model_entropy": entropy_nats(q),
        "oracle_tvd": tvd_between_split_halves(oracles)[0],
        "context_length": context_lengths(study)[found.item],
    }
    return columns_of(
        study, tvd_to_split_halves(q, oracles)[0], made, predictors, found.item, [model] * len(found.item)
    )
