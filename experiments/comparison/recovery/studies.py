"""Fresh studies whose truth is known, and what every estimator makes of one of them."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from shannon_game.estimators.comparison import HUMAN, validate_comparison_study
from shannon_game.estimators.comparison.gap import estimate_gap
from shannon_game.estimators.comparison.rounding import RoundingScheme, rounding_scheme
from shannon_game.estimators.comparison.simulation.participants import draw_participants, reports_of
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation
from shannon_game.estimators.comparison.study import same_token
from shannon_game.estimators.comparison.terms import log_terms, response_pairs
from shannon_game.estimators.layout import response_positions
from shannon_game.inference.comparison.anchors import Anchor
from shannon_game.inference.comparison.participant_fit import fit_participants
from shannon_game.inference.posterior.replicates import Row, Task
from shannon_game.models.comparison.participant_data import ParticipantData, participant_data

if TYPE_CHECKING:
    from shannon_game.experiments.comparison.recovery.experiment import RecoverySettings

CLASSICAL = ("importance", "jackknife")


def fresh_items(study: xr.Dataset) -> NDArray[np.intp]:
    """Positions of the items that nobody was asked, and that pass the study's item filter."""
    free = study["selected"].values.copy()
    free[response_positions(study)] = False
    return np.flatnonzero(free)


def fresh_study(study: xr.Dataset, *, n_items: int, n: int, rng: np.random.Generator) -> xr.Dataset:
    """Ask about `n` candidates of each of `n_items` items that nobody was asked; all reports are .5.

    With the same `rng` a smaller `n` asks about the first of the same candidates. The other items stay.
    """
    chosen = np.sort(rng.choice(fresh_items(study), n_items, replace=False))
    columns = np.argsort(rng.random((n_items, study.sizes["candidate"])), axis=1)[:, :n]
    position, column = np.repeat(chosen, n), columns.ravel()
    sets = np.isin(np.arange(study.sizes["item"]), chosen)
    return validate_comparison_study(
        study.drop_dims(["response", "answer", "participant_truth"], errors="ignore").assign(
            item_set=("item", np.where(sets, "fresh", "").astype(object)),
            participant=("response", np.array([f"draw {j}" for j in range(n)] * n_items, dtype=object)),
            response_item=("response", study["item"].values[position]),
            response_candidate=("response", column),
            report=("response", np.full(column.size, 0.5)),
            automatic=("response", same_token(study)[position, column]),
        )
    )


def answered_by_people(
    study: xr.Dataset,
    player: str,
    *,
    k0: float,
    population: ParticipantPopulation,
    grid: RoundingScheme,
    rng: np.random.Generator,
) -> xr.Dataset:
    """Let simulated people who believe what a language model believes answer the comparisons of a study.

    Slopes have exactly the geometric mean `k0` and biases the mean 0, so that the truth does not depend on who was
    drawn. Free answers are left out: a language model is known on the study's own tokens alone.
    """
    study = study.drop_dims(["answer", "participant_truth"], errors="ignore")
    position, column = response_positions(study), study["response_candidate"].values
    asked = ~(same_token(study)[position, column] | study["automatic"].values)
    position, column = position[asked], column[asked]
    candidate = study["candidate_logprob"].sel(model=player).values
    reference = study["target_logprob"].sel(model=player).values[position]
    if "response_reference" in study:
        against = study["response_reference"].values[asked]
        reference = np.where(against < 0, reference, candidate[position, against])
    names, person = np.unique(study["participant"].values[asked].astype(str), return_inverse=True)
    people = draw_participants(population, names.size, int(rng.integers(2**31)))
    slope = k0 * people.slope / np.exp(np.log(people.slope).mean())
    people = replace(people, slope=slope, bias=people.bias - people.bias.mean())
    report = study["report"].values.astype(float)
    report[asked] = reports_of(people, person, reference - candidate[position, column], grid, rng)
    return study.assign(report=("response", report))


def rows_of_models(task: Task, *, study: xr.Dataset, settings: RecoverySettings) -> list[Row]:
    """Estimate the gap of a language model that answers a fresh study without noise."""
    player, seed = str(task["player"]), int(task["study"])
    own = settings.rounding.scheme
    scheme = own if task["rounding"] == own.name else rounding_scheme(str(task["rounding"]))
    fresh = fresh_study(study, n_items=settings.n_items, n=int(task["n"]), rng=_rng(settings, seed, 0))
    data = participant_data(fresh, player=player, rounding=None if task["rounding"] == "none" else scheme)
    truth = _true_gap(fresh, player, data)
    start = time.process_time()
    fit = fit_participants(data, anchor=Anchor("assumed"), **_fit_arguments(settings, task))
    seconds = time.process_time() - start
    ends, passed = np.quantile(fit.gap_nats, settings.ends), fit.convergence.passed
    own_row = _row("assumed", ends, truth, seconds, converged=passed)
    return [*_classical_rows(fresh, player, scheme, truth, settings), own_row]


def rows_of_participants(task: Task, *, study: xr.Dataset, settings: RecoverySettings) -> list[Row]:
    """Estimate the gap of simulated people who believe what a language model believes, on the study's questions."""
    k0 = float(task["k0"])
    # the same people and the same noise whatever the belief and the scale
    player = str(task["player"])
    answered = answered_by_people(
        study,
        player,
        k0=k0,
        population=settings.participants,
        grid=settings.rounding.scheme,
        rng=_rng(settings, int(task["study"]), 1),
    )
    data = participant_data(answered, settings.rounding.scheme)
    truth = _true_gap(answered, player, data)
    start = time.process_time()
    fit = fit_participants(data, anchor=Anchor("outcomes"), **_fit_arguments(settings, task))
    seconds, passed = time.process_time() - start, fit.convergence.passed
    own, known = np.quantile(fit.gap_nats, settings.ends), np.quantile(fit.gap_at(k0), settings.ends)
    ratio = float(np.median(fit.k0)) / k0
    return [
        *_classical_rows(answered, HUMAN, rounding_scheme("none"), truth, settings),
        _row("outcomes", own, truth, seconds, converged=passed, k0_ratio=ratio),
        _row("assumed", known, truth, seconds, converged=passed),
    ]


def _true_gap(study: xr.Dataset, player: str, data: ParticipantData) -> float:
    loss = -study["target_logprob"].isel(item=data.position)
    return float((loss.sel(model=player) - loss.sel(model=data.generator)).mean())


def _classical_rows(
    study: xr.Dataset, player: str, scheme: RoundingScheme, truth: float, settings: RecoverySettings
) -> Iterator[Row]:
    pairs = response_pairs(study)
    terms = log_terms(pairs, player, scheme)
    for name in CLASSICAL:
        start = time.process_time()
        gap = estimate_gap(terms, pairs.item, estimator=name)
        ends = gap.gap_nats + ndtri(settings.ends) * gap.se_items_nats
        yield _row(name, ends, truth, time.process_time() - start)


def _row(estimator: str, ends: ArrayLike, truth: float, seconds: float, **more: Any) -> Row:
    lower, median, upper = np.asarray(ends, dtype=float).tolist()
    return {
        "estimator": estimator,
        "truth_nats": truth,
        "gap_median_nats": median,
        "gap_lower_nats": lower,
        "gap_upper_nats": upper,
        "covers": lower <= truth <= upper,
        "k0_ratio": float("nan"),
        "converged": None,
        "seconds": round(seconds, 3),
        **more,
    }


def _fit_arguments(settings: RecoverySettings, task: Task) -> dict[str, Any]:
    which = zlib.crc32("/".join(str(value) for value in task.values()).encode())
    seed = int(_rng(settings, int(task["study"]), 2, which).integers(2**31))
    return {"priors": settings.priors, "seed": seed, **settings.sampler.arguments}


def _rng(settings: RecoverySettings, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=key))
