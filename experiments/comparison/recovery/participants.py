"""Fresh answers of simulated participants whose belief is a language model."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import numpy as np
import xarray as xr

from experiments.comparison.recovery.settings import (
    Population,
    RecoverySettings,
    decisive_settings,
    language_models,
)
from experiments.harness.figures import player_label
from inference.comparison.participant_recovery import participant_rows, simulate_answers
from inference.posterior.replicates import Row, Task
from models.comparison.participant_data import participant_data

__all__ = ["participants"]


def participants(study: xr.Dataset, settings: RecoverySettings) -> Population:
    """Simulated participants on the questions that the study's participants answered."""
    grid, people = settings.rounding.scheme, settings.participants
    data = participant_data(study, grid)
    tasks: tuple[Task, ...] = tuple(
        {"population": "participants", "player": player, "k0": float(k0), "seed": seed}
        for seed in range(settings.n_studies)
        for player in language_models(study, settings.players)
        for k0 in settings.k0
    )
    return Population(
        tasks=tasks,
        work=partial(_work, study=study, settings=settings),
        settings={
            **decisive_settings(study, settings),
            "grid": asdict(grid),
            "participants": asdict(settings.participants),
            "priors": asdict(settings.participant_priors),
        },
        about=(
            f"Every fresh study has {data.participant.size} simulated participants who answer the "
            f"{data.row_pair.size} questions on {data.item.size} items that the participants of {study.attrs['name']} "
            "answered. Their shared belief is a language model, whose true gap to the generator on those items is "
            f"known; ln slopes have sd {people.slope_log_sd:g} around ln k0, biases sd "
            f"{people.bias_sd_nats:g} nats, noise a median of {people.noise_median_nats:g} nats, and "
            f"{people.lapse_mean:.0%} of the answers are lapses; answers are rounded to the grid {grid.name!r}. "
            "`outcomes` is the participant model with its scale from which tokens were true, `assumed` the same "
            "with k0 known. Equation 5 and the jackknife come with the normal interval of the paper's standard error "
            "over items, source (i)."
        ),
        each=f"{data.participant.size} simulated participants each",
        label=lambda row: f"{player_label(row.player)}, k0 = {row.k0:g}",
    )


def _work(task: Task, *, study: xr.Dataset, settings: RecoverySettings) -> Sequence[Row]:
    """One set of simulated answers."""
    seed, k0 = int(task["seed"]), float(task["k0"])
    which = zlib.crc32(f"{task['player']}/{k0:g}".encode())
    # the same people and the same noise whatever the belief and the scale
    answers = simulate_answers(
        study,
        str(task["player"]),
        k0=k0,
        population=settings.participants,
        grid=settings.rounding.scheme,
        rng=np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(seed, 2))),
    )
    return participant_rows(
        answers,
        k0=k0,
        interval=settings.interval,
        sampler=settings.sampler.arguments,
        thresholds=settings.gate,
        longer=settings.longer,
        priors=settings.participant_priors,
        rng=np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(seed, 3, which))),
    )
