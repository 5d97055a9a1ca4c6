"""``+exp=recovery experiment.population=participants``: simulated participants whose belief is a language model."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from omegaconf import DictConfig, ListConfig, OmegaConf

from estimators.comparison import ParticipantPopulation, RoundingScheme
from estimators.errors import InputError, unknown_choice
from experiments.comparison.recovery.settings import (
    Population,
    decisive_settings,
    language_models,
    sampler_settings,
    study_of,
)
from experiments.harness.figures import player_label
from experiments.harness.settings import chosen_rounding, numbers_of, tail_probability, whole_numbers

if TYPE_CHECKING:
    from inference.posterior.replicates import Row, Task

__all__ = ["participants"]


def participants(cfg: DictConfig, study: xr.Dataset) -> Population:
    """Simulated participants on the questions that the study's participants answered."""
    from inference.posterior.convergence import GateThresholds  # noqa: PLC0415 - seconds of imports
    from models.comparison.participant_data import participant_data  # noqa: PLC0415
    from models.comparison.participants import ParticipantPriors  # noqa: PLC0415

    tail_probability(cfg)
    n_studies = whole_numbers(cfg, "n_studies")
    if len(n_studies) > 1:
        raise InputError(f"is {n_studies}, should be one whole number", field="experiment.n_studies")
    scales = _scales(cfg)
    population = _population(cfg)
    priors = numbers_of(cfg, "priors", ParticipantPriors)
    thresholds = numbers_of(cfg, "gate", GateThresholds)
    grid = chosen_rounding(cfg)
    data = participant_data(study, grid)
    tasks: tuple[Task, ...] = tuple(
        {"population": "participants", "player": player, "k0": k0, "seed": seed}
        for seed in range(n_studies[0])
        for player in language_models(cfg, study)
        for k0 in scales
    )
    config = json.dumps(OmegaConf.to_container(cfg, resolve=True), sort_keys=True)
    study_of(config, study)
    return Population(
        tasks=tasks,
        work=partial(_work, config=config, grid=grid),
        settings={
            **decisive_settings(cfg, study),
            "grid": asdict(grid),
            "participants": asdict(population),
            "priors": asdict(priors),
            "gate": asdict(thresholds),
        },
        about=(
            f"Every fresh study has {data.participant.size} simulated participants who answer the "
            f"{data.row_pair.size} questions on {data.item.size} items that the participants of {study.attrs['name']} "
            "answered. Their shared belief is a language model, whose true gap to the generator on those items is "
            f"known; ln slopes have sd {population.slope_log_sd:g} around ln k0, biases sd "
            f"{population.bias_sd_nats:g} nats, noise a median of {population.noise_median_nats:g} nats, and "
            f"{population.lapse_mean:.0%} of the answers are lapses; answers are rounded to the grid {grid.name!r}. "
            "`outcomes` is the participant model with its scale from which tokens were true, `assumed` the same "
            "with k0 known. Equation 5 and the jackknife come with the normal interval of the paper's standard error "
            "over items, source (i)."
        ),
        each=f"{data.participant.size} simulated participants each",
        label=lambda row: f"{player_label(row.player)}, k0 = {row.k0:g}",
    )


def _work(task: Task, *, config: str, grid: RoundingScheme) -> Sequence[Row]:
    """One set of simulated answers."""
    from inference.comparison.participant_recovery import participant_rows, simulate_answers  # noqa: PLC0415
    from inference.posterior.convergence import GateThresholds  # noqa: PLC0415
    from models.comparison.participants import ParticipantPriors  # noqa: PLC0415

    cfg = OmegaConf.create(json.loads(config))
    seed, k0 = int(task["seed"]), float(task["k0"])
    which = zlib.crc32(f"{task['player']}/{k0:g}".encode())
    # the same people and the same noise whatever the belief and the scale
    answers = simulate_answers(
        study_of(config),
        str(task["player"]),
        k0=k0,
        population=_population(cfg),
        grid=grid,
        rng=np.random.default_rng(np.random.SeedSequence(int(cfg.seed), spawn_key=(seed, 2))),
    )
    return participant_rows(
        answers,
        k0=k0,
        interval=float(cfg.experiment.interval),
        sampler=sampler_settings(cfg),
        thresholds=GateThresholds(**cfg.experiment.gate),
        priors=ParticipantPriors(**cfg.experiment.priors),
        rng=np.random.default_rng(np.random.SeedSequence(int(cfg.seed), spawn_key=(seed, 3, which))),
    )


def _population(cfg: DictConfig) -> ParticipantPopulation:
    given: Mapping[str, Any] = cfg.experiment.participants
    valid = tuple(vars(ParticipantPopulation()))
    for name in given:
        if name not in valid:
            raise unknown_choice("experiment.participants setting", name, valid)
    return ParticipantPopulation(**given)


def _scales(cfg: DictConfig) -> list[float]:
    value = cfg.experiment.k0
    scales = list(value) if isinstance(value, ListConfig) else [value]
    for k0 in scales:
        if not isinstance(k0, int | float) or isinstance(k0, bool) or not k0 > 0:
            raise InputError(f"is {value}, should be positive numbers", field="experiment.k0")
    if not scales or len(set(scales)) < len(scales):
        raise InputError(f"is {value}; give each scale once", field="experiment.k0")
    return [float(k0) for k0 in scales]
