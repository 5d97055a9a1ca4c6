"""Fresh studies of language models without noise, on items that nobody was asked."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtri

from estimators.comparison import rounding_scheme
from estimators.errors import InputError
from experiments.comparison.estimates import rounding_label
from experiments.comparison.recovery.settings import (
    Population,
    RecoverySettings,
    decisive_settings,
    language_models,
)
from experiments.harness.figures import player_label
from inference.comparison.recovery import fresh_items, fresh_study, player_rows
from inference.posterior.replicates import Row, Task

__all__ = ["players"]

_ASKED = {
    "draws": "n candidates of each item are asked about, as they were drawn",
    "distinct": "n distinct tokens of each item other than the target are asked about, or as many as were drawn",
}


def players(study: xr.Dataset, settings: RecoverySettings) -> Population:
    """Language models without noise, asked about items that nobody was asked."""
    free = len(fresh_items(study))
    source = f"study {study.attrs['name']!r}"
    if settings.n_items > free:
        raise InputError(
            f"is {settings.n_items}, but only {free} items have no response; a fresh study is made of those",
            source=source,
            field="experiment.n_items",
        )
    if max(settings.n) > study.sizes["candidate"]:
        raise InputError(
            f"is {max(settings.n)}, but an item has {study.sizes['candidate']} candidates", source=source, field="n"
        )
    schemes = tuple(dict.fromkeys(["none", settings.rounding.scheme.name]))
    chosen = language_models(study, settings.players)
    generator = study.attrs["generator"]
    # all cells of one study after the other, so that a run that stops early has something of every cell
    tasks: tuple[Task, ...] = tuple(
        {"population": "players", "player": player, "rounding": rounding, "n": n, "seed": seed}
        for seed in range(settings.n_studies)
        for player in chosen
        for rounding in schemes
        for n in settings.n
        if not (player == generator and rounding == "none")  # its answers give the gap without error
    )
    if not tasks:
        raise InputError(
            f"leaves only the generator {generator!r} without rounding, whose gap every estimator finds exactly",
            field="players",
        )
    return Population(
        tasks=tasks,
        work=partial(_work, study=study, settings=settings),
        settings={
            **decisive_settings(study, settings),
            "n_items": settings.n_items,
            "ask": settings.ask,
            "rounding": asdict(settings.rounding.scheme),
            "priors": asdict(settings.priors),
        },
        about=(
            f"Every fresh study has {settings.n_items} of the {free} items of {study.attrs['name']} that nobody "
            f"was asked, drawn without replacement; {_ASKED[settings.ask]}. Players are language "
            "models without noise, whose true gap to the generator on those very items is known; the same studies "
            "serve every player. "
            + (
                f"{player_label(generator)} drew the candidates: unrounded it has a gap of 0 that every estimator "
                "finds, so that this cell is left out. "
                if generator in chosen
                else ""
            )
            + (
                "Equation 5 and the jackknife come without an interval for this purpose: theirs is the normal one, "
                f"estimate \N{PLUS-MINUS SIGN} {ndtri((1 + settings.interval) / 2):.3f} standard errors over items, "
                "source (i) of the paper. "
                if settings.ask == "draws"
                else "Equation 5 and the jackknife need draws, and are left out. "
            )
            + "The belief model's interval is its posterior's, with equal tails."
        ),
        each=f"{settings.n_items} items each" + (", distinct tokens asked" if settings.ask == "distinct" else ""),
        label=_label,
    )


def _label(row: Any) -> str:
    return f"{player_label(row.player)}, {rounding_label(row.rounding)}, n = {row.n}"


def _work(task: Task, *, study: xr.Dataset, settings: RecoverySettings) -> Sequence[Row]:
    """One fresh study of one player."""
    seed, scheme = int(task["seed"]), settings.rounding.scheme
    which = zlib.crc32("/".join(str(task[name]) for name in ("player", "rounding", "n")).encode())
    return player_rows(
        fresh_study(
            study,
            n_items=settings.n_items,
            n=int(task["n"]),
            ask=settings.ask,
            rng=np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(seed, 0))),
        ),
        str(task["player"]),
        scheme if task["rounding"] == scheme.name else rounding_scheme(str(task["rounding"])),
        interval=settings.interval,
        sampler=settings.sampler.arguments,
        thresholds=settings.gate,
        longer=settings.longer,
        priors=settings.priors,
        rng=np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(seed, 1, which))),
        classical=settings.ask == "draws",
    )
