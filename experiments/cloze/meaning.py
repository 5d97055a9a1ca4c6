"""``+exp=meaning``: how far models' next words are from people's in meaning, by a file of word vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shannon_game.estimators.cloze import (
    WordCounts,
    energy_distance,
    random_split_halves,
    relative_frequencies,
    total_variation,
)
from shannon_game.estimators.cloze.study import context_labels
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.figures import colours, label
from shannon_game.experiments.cloze.settings import (
    ORACLE,
    ClozeSettings,
    chosen_models,
    cluster_se,
    groups_of,
    shared_contexts,
    words_of,
)
from shannon_game.experiments.harness.figures import Series
from shannon_game.experiments.harness.plots import forest_figure
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for, rows_of
from shannon_game.experiments.harness.tables import table_variables
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import UserPath

Floats = NDArray[np.float64]


_LITTLE = 0.9


class MeaningSettings(ClozeSettings, Seeded):
    """Settings of :func:`meaning`."""

    vectors: UserPath | None = None
    """Text file of word vectors: a word and its numbers a line, separated by spaces (word2vec, GloVe, fastText)."""


@experiment(MeaningSettings)
def meaning(study: xr.Dataset, settings: MeaningSettings) -> ExperimentResult:
    """Compare models' next words with people's by the energy distance of their vectors.

    Parameters
    ----------
    study : xarray.Dataset
        A cloze study with counts and models.
    settings : MeaningSettings, optional
        Or its fields by name; ``vectors`` is needed.

    Returns
    -------
    ExperimentResult
        A row a player: ``energy_distance`` has no bias by samples, and is 0 on average for two halves of the people
        (``half_of_people``); ``across`` is the mean distance of a word of people and one of the player, ``known_*`` the
        share of the answers that have a vector. ``items.csv`` has the distances of every context.

    Raises
    ------
    InputError
        If there is no file of vectors, or it cannot be read.
    """
    if settings.vectors is None:
        raise InputError(
            "is needed: a text file with a word and its numbers a line, such as GloVe's", field="experiment.vectors"
        )
    words = words_of(settings, study, chosen_models(settings, study))
    vectors = read_vectors(settings.vectors, [str(word) for word in words.strings])
    answers = words.answers()
    rows, items = [], []
    halves = random_split_halves(answers, n_splits=1, rng=rng_for(settings.seed, "oracles"))
    two = [_part(answers, half[0]) for half in (halves.first, halves.second)]
    sides = {ORACLE: (two[0], two[1], np.arange(answers.n_contexts))}
    for name, model in words.models.items():
        have = shared_contexts(words, name, n_samples=2)
        sides[name] = (answers.take(model.item[have]), model.counts.take(have), model.item[have])
    for name, (people, player, at) in sides.items():
        found = energy_distance(people, player, vectors)
        known = np.isfinite(found.distance)
        if not known.any():
            raise InputError(f"has no vectors for the words of {name} and people", field="experiment.vectors")
        tvd = total_variation(relative_frequencies(people), relative_frequencies(player))
        text = groups_of(study, at[known])
        rows.append(
            {
                "player": name,
                "n_contexts": int(known.sum()),
                "energy_distance": float(found.distance[known].mean()),
                "energy_se": cluster_se(found.distance[known], text),
                "across": float(found.across[known].mean()),
                "tvd": float(tvd[known].mean()),
                "known_people": found.known_first,
                "known_player": found.known_second,
            }
        )
        own = {"item": context_labels(study)[at[known]], "energy_distance": found.distance[known], "tvd": tvd[known]}
        items.append(pd.DataFrame({"player": name, **own}))
    table, contexts = pd.DataFrame(rows), pd.concat(items, ignore_index=True)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset(table_variables(table, "row") | table_variables(contexts.add_prefix("context_"), "context")),
        figures={"meaning": meaning_figure(table, str(study.attrs.get("name", "")))},
        text=_summary(table),
        warnings=(*answer_warnings(words), *_warnings(table)),
        tables={"items": contexts},
    )


def _part(answers: WordCounts, count: NDArray[np.int64]) -> WordCounts:
    """Some of the answers of every row."""
    keep = count > 0
    return WordCounts(answers.context[keep], answers.word[keep], count[keep], answers.n_contexts)


def read_vectors(path: Path | str, words: list[str]) -> Floats:
    """Vectors of some words from a text file; NaN where the file has none."""
    wanted = {word: at for at, word in enumerate(words)}
    found: dict[int, Floats] = {}
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


def _warnings(table: pd.DataFrame) -> tuple[str, ...]:
    least = float(table[["known_people", "known_player"]].min().min())
    return () if least >= _LITTLE else (f"only {least:.0%} of some answers have a vector; the others are left out",)


def _summary(table: pd.DataFrame) -> str:
    lines = [
        f"- **{label(row.player)}**: energy distance {row.energy_distance:.3f} (se {row.energy_se:.3f}); "
        f"TVD {row.tvd:.3f}; {counted(row.n_contexts, 'context')}"
        for row in rows_of(table)
    ]
    return (
        "\n".join(lines) + "\n\nA player's words are compared with people's by the vectors' directions: 0 is one "
        "distribution, without bias by samples; standard errors are over texts. Vectors of another source can give "
        "another order of players."
    )


def meaning_figure(table: pd.DataFrame, study_name: str = "") -> Figure:
    """Energy distance of every player to people."""
    reach = 2 * table["energy_se"]
    rows = table.assign(
        label=table["player"].map(label),
        colour=table["player"].map(colours(table["player"].tolist())),
        lower=table["energy_distance"] - reach,
        upper=table["energy_distance"] + reach,
    )
    xlabel = "energy distance of word vectors to people's, 2 standard errors"
    series = [Series("energy_distance", "lower", "upper")]
    return forest_figure(rows, series, xlabel, "How far are words in meaning?", study_name)
