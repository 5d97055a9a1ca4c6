"""How far models' next words are from people's in meaning: the energy distance of word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze import StudyWords, WordCounts, energy_distance, random_split_halves
from shannon_game.estimators.cloze.study import context_labels
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.cloze.settings import ORACLE, cluster_se, groups_of, shared_contexts
from shannon_game.experiments.harness.settings import rng_for

_LITTLE = 0.9


def meaning_columns(
    study: xr.Dataset, words: StudyWords, path: Path, seed: int
) -> tuple[dict[str, dict[str, Any]], dict[str, pd.Series[float]], list[str]]:
    """Columns of the table by player, distances by player and context, and warnings.

    The energy distance has no bias by samples, and is 0 on average for two halves of the people.
    """
    vectors = read_vectors(path, [str(word) for word in words.strings])
    answers = words.answers()
    halves = random_split_halves(answers, n_splits=1, rng=rng_for(seed, "oracles"))
    two = [_part(answers, half[0]) for half in (halves.first, halves.second)]
    sides = {ORACLE: (two[0], two[1], np.arange(answers.n_contexts))}
    for name, model in words.models.items():
        have = shared_contexts(words, name, n_samples=2)
        sides[name] = (answers.take(model.item[have]), model.counts.take(have), model.item[have])
    columns, items, warnings = {}, {}, []
    for name, (people, player, at) in sides.items():
        found = energy_distance(people, player, vectors)
        known = np.isfinite(found.distance)
        if not known.any():
            raise InputError(f"has no vectors for the words of {name} and people", field=Set("experiment.vectors"))
        columns[name] = {
            "energy_distance": float(found.distance[known].mean()),
            "energy_se": cluster_se(found.distance[known], groups_of(study, at[known])),
            "across": float(found.across[known].mean()),
            "known_people": found.known_first,
            "known_player": found.known_second,
        }
        items[name] = pd.Series(found.distance[known], context_labels(study)[at[known]])
        least = min(found.known_first, found.known_second)
        if least < _LITTLE:
            warnings.append(f"{name}: only {least:.0%} of some answers have a vector; the others are left out")
    return columns, items, warnings


def _part(answers: WordCounts, count: NDArray[np.int64]) -> WordCounts:
    keep = count > 0
    return WordCounts(answers.context[keep], answers.word[keep], count[keep], answers.n_contexts)


def read_vectors(path: Path | str, words: list[str]) -> FloatArray:
    """Vectors of some words from a text file; NaN where the file has none."""
    wanted = {word: at for at, word in enumerate(words)}
    found: dict[int, FloatArray] = {}
    size = 0
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, start=1):
                word, *values = line.rstrip().split(" ")
                if number == 1 and len(values) == 1:
                    continue
                size = size or len(values)
                if len(values) != size:
                    raise InputError(f"line {number} has {len(values)} numbers, the first has {size}", source=str(path))
                if word in wanted and wanted[word] not in found:
                    found[wanted[word]] = np.array(values, dtype=float)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot be read as word vectors: {error}", source=str(path), field="vectors") from error
    table = np.full((len(words), max(size, 1)), np.nan)
    for at, vector in found.items():
        table[at] = vector
    return table
