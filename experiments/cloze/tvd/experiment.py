"""``+exp=tvd``: how far models' next words are from people's, beside what people's own samples differ (table 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.cloze import StudyWords, cloze_items, cloze_participants
from shannon_game.estimators.errors import InputError, require_packages
from shannon_game.estimators.layout import item_labels
from shannon_game.estimators.messages import Set, word
from shannon_game.experiments.cloze.figures import label
from shannon_game.experiments.cloze.settings import ORACLE, OracleSettings, chosen_models, groups_of, words_of
from shannon_game.experiments.cloze.tvd.contexts import contexts_shown
from shannon_game.experiments.cloze.tvd.figures import (
    FULL_BIN,
    differences_figure,
    full_panels,
    reliability_figure,
    tvd_figure,
)
from shannon_game.experiments.cloze.tvd.majority import majorities
from shannon_game.experiments.cloze.tvd.meaning import meaning_columns
from shannon_game.experiments.cloze.tvd.results import GOLD, PlayerTvd, TvdRow, model_tvd, oracle_tvd
from shannon_game.experiments.cloze.tvd.sample_size import sizes_compared
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.harness.bayes import several_fits
from shannon_game.experiments.harness.questions import normal_interval
from shannon_game.experiments.harness.registry import EXTRAS
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for, rows_of
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.progress import counted

if TYPE_CHECKING:
    from shannon_game.experiments.cloze.tvd.posterior import BayesianTvd


@experiment(TvdSettings, row=TvdRow)
def tvd(study: xr.Dataset, settings: TvdSettings) -> ExperimentResult:
    """Estimate how far every model's next words are from people's, beside how far people are from each other.

    One row per player: half of the people (``half_of_people``) first, then every model. Its ``tables`` have one row a
    context (:func:`shannon_game.estimators.cloze.cloze_items`) and, where the study names them, one row a
    participant (:func:`shannon_game.estimators.cloze.cloze_participants`). With ``models`` a row per live model, by
    its exact probabilities; with ``n`` a row per model and number of its samples; with ``ensemble`` a row per number of
    people who guess together; with ``item`` a row per word of these contexts.

    Examples
    --------
    >>> from shannon_game import cloze_simulated, tvd
    >>> study = cloze_simulated(n_items=8, vocab_size=40)
    >>> tvd(study).table[["player", "tvd", "tvd_baseline"]].round(2)
               player   tvd  tvd_baseline
    0  half_of_people  0.36          0.36
    1         mixture  0.41          0.26
    2         factors  0.44          0.28
    >>> tvd(study, players="mixture", n=[5, 20]).table[["n_samples", "tvd", "tvd_all"]].round(2)
       n_samples   tvd  tvd_all
    0          5  0.61     0.43
    1         20  0.48     0.43
    """
    given = [name for name in ("models", "n", "ensemble", "item") if getattr(settings, name)]
    if len(given) > 1:
        raise InputError(f"are {' and '.join(given)}; tvd takes one of them at a time", field="settings")
    if settings.models:
        require_packages(EXTRAS["lm"], "lm", source="tvd of live models")
        from shannon_game.experiments.cloze.tvd.exact import exact_tvd  # noqa: PLC0415 - the extra lm

        return exact_tvd(study, settings)
    if settings.item is not None:
        words = words_of(settings, study, chosen_models(settings, study, needed=False))
        shown = contexts_shown(study, words, settings.item, settings.n_words)
        return replace(shown, warnings=answer_warnings(words))
    if settings.ensemble is not None:
        doubts = answer_warnings(words_of(settings, study, []))
        return replace(majorities(study, settings, settings.ensemble), warnings=doubts)
    if settings.n is not None:
        doubts = answer_warnings(words_of(settings, study, []))
        return replace(sizes_compared(study, settings, settings.n), warnings=doubts)
    return _of_players(study, settings)


def _of_players(study: xr.Dataset, settings: TvdSettings) -> ExperimentResult:
    words = words_of(settings, study, chosen_models(settings, study, needed=False))
    players, doubts = players_tvd(study, words, settings, settings.distance)
    bayes = _bayes(study, settings, players)
    every = chosen_models(settings, study, needed=False, scored=True)
    scored = [name for name in every if name not in words.models]
    tables = _tables(study, words, settings, players, scored)
    more: dict[str, dict[str, Any]] = bayes.columns if bayes else {}
    if settings.vectors is not None:
        by_meaning, distances, little = meaning_columns(study, words, settings.vectors, settings.seed)
        more = {one.player: {**by_meaning.get(one.player, {}), **more.get(one.player, {})} for one in players}
        doubts = (*doubts, *little)
        for name, values in distances.items():
            tables["items"][f"energy_distance_{name}"] = tables["items"]["item"].map(values)
    table = TvdRow.table(replace(player.row, **more.get(player.player, {})) for player in players)
    dataset = tvd_dataset(study, players, settings.n_bins)
    figures = {
        "tvd": tvd_figure(dataset, str(study.attrs["name"])),
        "differences": differences_figure(dataset),
        "calibration": reliability_figure(dataset, study.attrs["name"]) if full_panels(dataset) else None,
    }
    named = ", ".join(f"`surprisal_nats_{name}`" for name in scored)
    alone = [f"`items.csv` has {named}: of log-probabilities, without samples to compare."] if scored else []
    return ExperimentResult(
        table=table,
        dataset=dataset,
        tables=tables,
        figures={name: figure for name, figure in figures.items() if figure is not None},
        text="\n\n".join([_summary(table), *alone, *left_out(study, players, dataset)]),
        warnings=(*answer_warnings(words), *doubts, *(bayes.warnings if bayes else ())),
        gate_failed=bayes is not None and bayes.gate_failed,
        posteriors=bayes.posteriors if bayes else {},
    )


def left_out(study: xr.Dataset, players: list[PlayerTvd], dataset: xr.Dataset) -> list[str]:
    """Say what these data do not allow, one sentence each."""
    people, models = players[0], players[1:]
    n_there, missing = len(people.items), study.sizes["item"] - len(people.items)
    fewer = {player.player: n_there - len(player.items) for player in models}
    said = {
        "The study has no model's words: people are compared with people only.": not models,
        f"Left out everywhere: {counted(missing, 'context')} with fewer than two answers that are words.": missing > 0,
        **{
            f"{label(name)} has no words for {counted(n, 'context')}, left out for it.": n > 0
            for name, n in fewer.items()
        },
        "All contexts are of one text: `se_tvd` takes them for independent.": len(set(groups_of(study, people.items)))
        == 1,
        "No context has a word of the text: nothing is said about it (`ece_corpus_*`).": not (
            study["target_word"] != ""
        ).any(),
        f"No calibration figure: no bin of confidence holds {FULL_BIN} contexts.": not full_panels(dataset),
    }
    return [text for text, holds in said.items() if holds]


def players_tvd(
    study: xr.Dataset, words: StudyWords, settings: OracleSettings, distances: Sequence[str] = ()
) -> tuple[list[PlayerTvd], tuple[str, ...]]:
    """Distances of half of the people and of every model to people, and why a model that has too few is left out."""
    usable = int((words.answers().totals > 1).sum())
    if usable < 2:
        problem = f"has {usable} contexts with two answers or more once blank answers and junk are out"
        source = f"cloze study {study.attrs.get('name')!r}"
        raise InputError(f"{problem}; distances between people need at least 2", source=source)
    sizes: dict[str, Any] = {"n_splits": settings.n_splits, "n_bins": settings.n_bins, "distances": distances}
    found = [oracle_tvd(study, words, rng=rng_for(settings.seed, "oracles"), **sizes)]
    refused = []
    for name in words.models:
        try:
            found.append(model_tvd(study, words, name, rng=rng_for(settings.seed, f"oracles {name}"), **sizes))
        except InputError as problem:
            refused.append(f"{problem}; left out")
    return found, tuple(refused)


def _tables(
    study: xr.Dataset, words: StudyWords, settings: OracleSettings, players: list[PlayerTvd], scored: list[str]
) -> dict[str, pd.DataFrame]:
    rules = settings.words.of(study)
    models = {player.player: player for player in players if player.player != ORACLE}
    if scored:
        words = words_of(settings, study, [*models, *scored])
    items = cloze_items(study, rules=rules, models=[*models, *scored], distances=False, words=words)
    for name, player in models.items():
        for column in ("tvd", "tvd_corrected"):
            items.loc[player.items, f"{column}_{name}"] = player.by_item[column]
    people = {"participants": cloze_participants(study, rules=rules)} if "participant" in study else {}
    return {"items": items, **people}


def _bayes(study: xr.Dataset, settings: TvdSettings, players: list[PlayerTvd]) -> BayesianTvd | None:
    if settings.bayes.n_contexts is None:
        return None
    require_packages(EXTRAS["bayes"], "bayes", source=f"{Set('experiment.bayes.n_contexts')} ({word(None)} for none)")
    # an optional extra that only this part needs
    from shannon_game.experiments.cloze.tvd.posterior import bayesian_tvd  # noqa: PLC0415

    with several_fits(len(players), settings.sampler):
        return bayesian_tvd(study, settings, players, settings.bayes.n_contexts)


def tvd_dataset(study: xr.Dataset, players: list[PlayerTvd], n_bins: int) -> xr.Dataset:
    """Distances by player and context, and the bins of the calibration curves."""
    coords = {"player": [player.player for player in players], "gold": list(GOLD), "item": item_labels(study)}
    found = xr.Dataset(coords=coords | {"text_id": ("item", study["text_id"].to_numpy().astype(str))})
    for name in players[0].by_item:
        values = np.full((len(players), study.sizes["item"]), np.nan)
        for row, player in zip(values, players, strict=True):
            row[player.items] = player.by_item[name]
        units = "nats" if name in ("entropy", "divergence") else "1"
        found[name] = ("player", "item"), values, {"units": units}
    shape = (len(players), len(GOLD), n_bins)
    for name, bins in (
        ("confidence", np.full(shape, np.nan)),
        ("accuracy", np.full(shape, np.nan)),
        ("count", np.zeros(shape, dtype=np.int64)),
    ):
        for (at, player), (column, gold) in product(enumerate(players), enumerate(GOLD)):
            if gold in player.calibration:
                bins[at, column] = getattr(player.calibration[gold], name)
        found["n_in_bin" if name == "count" else name] = ("player", "gold", "bin"), bins
    return found.assign(word_num=("item", study["word_num"].to_numpy()))


def _summary(table: pd.DataFrame) -> str:
    human = table[table["player"] == ORACLE].iloc[0]
    lines = [
        f"- **The TVD of {label(row.player)} to people is {row.tvd:.3f}** (90% interval "
        f"{normal_interval(row.tvd, row.se_tvd, 3)} over texts, {counted(row.n_contexts, 'context')}). Samples of "
        "these sizes from one distribution would have "
        f"{row.tvd_baseline:.3f}. To half of the people it is {row.tvd_to_oracle:.3f}, where the other half is at "
        f"{row.tvd_between_oracles:.3f}."
        for row in rows_of(table[table["player"] != ORACLE])
    ]
    floor = (
        f"**Two halves of the people have a TVD of {human['tvd']:.4f}** (about {human['n_answers']:.0f} answers each, "
        f"sd {human['sd_between_oracles']:.4f} over splits): no model with as few samples can be expected to be "
        "nearer. `tvd_corrected` takes the same-size baseline out: zero for one distribution, one for disjoint "
        "samples, too low in between."
    )
    return "\n\n".join(text for text in ("\n".join(lines), floor) if text)
