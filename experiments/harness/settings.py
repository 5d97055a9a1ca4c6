"""What every experiment reads from the config in the same way."""

from __future__ import annotations

import zlib
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from omegaconf import DictConfig, ListConfig

from estimators.comparison import (
    PerplexityEstimate,
    RoundingScheme,
    estimate_perplexity,
    player_names,
    rounding_scheme,
    subsample_responses,
)
from estimators.errors import InputError, unknown_choice

_Numbers = TypeVar("_Numbers")

__all__ = [
    "TABLE_COLUMNS",
    "chosen_players",
    "chosen_rounding",
    "estimate",
    "numbers_of",
    "rng_for",
    "rows_of",
    "table_row",
    "tail_probability",
    "whole_numbers",
    "with_n_responses",
]

TABLE_COLUMNS = (
    "player",
    "rounding",
    "estimator",
    "generator",
    "n_items",
    "n_responses",
    "gap_nats",
    "se_items_nats",
    "se_samples_nats",
    "reference_loss_nats",
    "perplexity",
    "perplexity_lower",
    "perplexity_upper",
    "true_loss_nats",
    "true_perplexity",
    "true_gap_nats",
    "true_perplexity_asked",
    "error_nats",
    "pareto_k",
    "kl_nats",
    "n_required",
    "share_starved",
    "verdict",
)
"""Columns of every perplexity-like table, in this order; an experiment may append its own."""


def rng_for(cfg: DictConfig, purpose: str) -> np.random.Generator:
    """Build the generator for one purpose: its own stream of the run's seed, whatever else is drawn."""
    return np.random.default_rng(np.random.SeedSequence(int(cfg.seed), spawn_key=(zlib.crc32(purpose.encode()),)))


def chosen_players(cfg: DictConfig, study: xr.Dataset) -> list[str]:
    """Players to show: ``players=[...]``, by default all of the study.

    Raises
    ------
    InputError
        If a name is not in the study, is there twice, or the list is empty.
    """
    valid = player_names(study)
    if cfg.players is None:
        return valid
    wanted = [cfg.players] if isinstance(cfg.players, str) else [str(name) for name in cfg.players]
    for name in wanted:
        if name not in valid:
            raise unknown_choice("player", name, valid, source=f"players, study {study.attrs['name']!r}")
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError(f"is {wanted}; name each player once, or leave it null for all", field="players")
    return wanted


def chosen_rounding(cfg: DictConfig) -> RoundingScheme:
    """Rounding scheme of ``rounding=...``: a named one, or ``custom`` with its values in the config."""
    if cfg.rounding.name != "custom":
        return rounding_scheme(cfg.rounding.name)
    values = cfg.rounding["values"]
    if not isinstance(values, ListConfig) or not all(isinstance(value, int | float) for value in values):
        raise InputError(f"is {values!r}, should be a list of probabilities: [.05, .5, .95]", field="rounding.values")
    return RoundingScheme(
        "custom",
        tuple(float(value) for value in values),
        space=cfg.rounding.space,
        tie=cfg.rounding.tie,
    )


def tail_probability(cfg: DictConfig) -> float:
    """Probability below (and above) the central interval of ``experiment.interval``.

    Raises
    ------
    InputError
        If the interval's probability is not strictly between 0 and 1.
    """
    interval = cfg.experiment.interval
    if not (isinstance(interval, int | float) and 0 < interval < 1):
        raise InputError(f"is {interval!r}, should be a probability between 0 and 1", field="experiment.interval")
    return (1 - interval) / 2


def whole_numbers(cfg: DictConfig, key: str) -> list[int]:
    """One or several whole numbers of at least 1 from ``experiment.KEY``.

    Raises
    ------
    InputError
        If there is none, or one of them is something else.
    """
    value = cfg.experiment[key]
    numbers = list(value) if isinstance(value, ListConfig) else [value]
    if not numbers or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 1 for n in numbers):
        raise InputError(f"is {value}, should be whole numbers of at least 1", field=f"experiment.{key}")
    return numbers


def with_n_responses(cfg: DictConfig, study: xr.Dataset) -> xr.Dataset:
    """Return the study, with only ``n`` random responses an item where ``n`` is set."""
    return study if cfg.n is None else subsample_responses(study, int(cfg.n), rng_for(cfg, "responses"))


def estimate(cfg: DictConfig, study: xr.Dataset, player: str, scheme: RoundingScheme) -> PerplexityEstimate:
    """Perplexity of one player under one rounding, with the estimator and generator of the config."""
    return estimate_perplexity(
        study,
        player,
        rounding=scheme,
        estimator=cfg.estimator.name,
        generator=cfg.generator.name,
        control_only=cfg.generator.control_only,
        uncertainty=cfg.estimator.uncertainty,
        n_se=cfg.estimator.n_se,
        reference=cfg.estimator.reference,
    )


def table_row(result: PerplexityEstimate, generator: str) -> dict[str, Any]:
    """One row of a perplexity-like table (:data:`TABLE_COLUMNS`)."""
    gap, weights = result.gap, result.gap.diagnostics
    return {
        "player": result.player,
        "rounding": result.rounding,
        "estimator": gap.estimator,
        "generator": generator,
        "n_items": gap.n_items,
        "n_responses": gap.n_responses,
        "gap_nats": gap.gap_nats,
        "se_items_nats": gap.se_items_nats,
        "se_samples_nats": gap.se_samples_nats,
        "reference_loss_nats": result.reference_loss_nats,
        "perplexity": result.perplexity,
        "perplexity_lower": result.perplexity_lower,
        "perplexity_upper": result.perplexity_upper,
        "true_loss_nats": result.true_loss_nats,
        "true_perplexity": float(np.exp(result.true_loss_nats)),
        "true_gap_nats": result.true_gap_nats,
        "true_perplexity_asked": float(np.exp(result.reference_loss_nats + result.true_gap_nats)),
        "error_nats": gap.gap_nats - result.true_gap_nats,
        "pareto_k": weights.pareto_k,
        "kl_nats": weights.kl_nats,
        "n_required": weights.n_required,
        "share_starved": weights.share_starved,
        "verdict": weights.verdict,
    }


def numbers_of(cfg: DictConfig, key: str, kind: type[_Numbers]) -> _Numbers:
    """Read a dataclass of numbers from ``experiment.KEY``, which names only those to change.

    Raises
    ------
    InputError
        If a name is no field of it, or a value no number, or the dataclass refuses it.
    """
    valid = tuple(vars(kind()))
    for name, value in cfg.experiment[key].items():
        if name not in valid:
            raise unknown_choice(f"experiment.{key} setting", name, valid)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise InputError(f"is {value!r}, should be a number", field=f"experiment.{key}.{name}")
    return kind(**cfg.experiment[key])


def rows_of(table: pd.DataFrame) -> list[Any]:
    """Rows as named tuples, ``row.column`` of the type that the column holds (which no stub can know)."""
    return list(table.itertuples(index=False))
