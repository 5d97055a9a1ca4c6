"""What the populations of the recovery experiment share: their description, and settings read from the config."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xarray as xr
from omegaconf import DictConfig, OmegaConf

from estimators.comparison import HUMAN
from estimators.errors import InputError
from experiments.harness.settings import chosen_players

if TYPE_CHECKING:
    from inference.posterior.replicates import Row, Task

__all__ = ["Population", "decisive_settings", "language_models", "sampler_settings", "study_of"]

# studies of this process by config, so that a worker loads the study once
_studies: dict[str, xr.Dataset] = {}


@dataclass(frozen=True)
class Population:
    """Who answers the fresh studies, and what is done with each of them.

    Attributes
    ----------
    tasks : tuple of mapping
        See :func:`inference.posterior.replicates.run_replicates`. Every task has its ``population`` and a ``seed`` that
        is unique within its cell; its other fields say which cell it is.
    work : callable
        Takes a task; gives a row an estimator, with the fields that
        :func:`inference.comparison.recovery.summarise_rows` needs.
    settings : mapping
        Everything that the rows depend on besides the task.
    about : str
        For the report: what is simulated, and what the intervals of the classical estimators are.
    each : str
        For the figure's title: what a study consists of.
    label : callable
        What a cell, a row of the table, is called in the figure.
    """

    tasks: tuple[Task, ...]
    work: Callable[[Task], Sequence[Row]]
    settings: Mapping[str, Any]
    about: str
    each: str
    label: Callable[[Any], str]

    @property
    def cell(self) -> tuple[str, ...]:
        """Fields of a task that say which cell it is, in order."""
        return tuple(name for name in self.tasks[0] if name != "seed")


def language_models(cfg: DictConfig, study: xr.Dataset) -> list[str]:
    """Language models that ``players`` names, by default all; the participants have no known truth."""
    chosen = chosen_players(cfg, study)
    if cfg.players is None:
        return [player for player in chosen if player != HUMAN]
    if HUMAN in chosen:
        raise InputError(
            f"names {HUMAN!r}, whose truth nobody knows; the population is language models", field="players"
        )
    return chosen


def sampler_settings(cfg: DictConfig) -> dict[str, Any]:
    """Arguments of :func:`inference.posterior.sampling.sample` from ``sampler``."""
    sampler = {str(name): value for name, value in cfg.sampler.items()}
    return {"sampler": sampler.pop("name"), **sampler}


def decisive_settings(cfg: DictConfig, study: xr.Dataset) -> dict[str, Any]:
    """What the rows of every population depend on: data, seed, interval, sampler."""
    return {
        "study": study.attrs.get("data_sha256") or OmegaConf.to_container(cfg.study, resolve=True),
        "seed": int(cfg.seed),
        "interval": float(cfg.experiment.interval),
        # cores change no number
        "sampler": {name: value for name, value in sampler_settings(cfg).items() if name != "cores"},
    }


def study_of(config: str, study: xr.Dataset | None = None) -> xr.Dataset:
    """Study of a config (as JSON), loaded once in a process; `study` spares the first loading."""
    from experiments.studies import load_study  # noqa: PLC0415

    if study is not None:
        _studies[config] = study
    if config not in _studies:
        _studies[config] = load_study(OmegaConf.create(json.loads(config)))
    return _studies[config]
