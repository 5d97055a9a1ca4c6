"""Simulated participants: what they report, and how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.comparison.rounding import RoundingScheme, round_reports
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, random_stream, sigmoid
from shannon_game.estimators.errors import InputError

LAPSE_REPORTS = (0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
"""The eleven boxes of the game: what a participant who clicks anywhere reports."""


@dataclass(frozen=True)
class Participants:
    """Parameters of simulated participants; every array has shape (participant,)."""

    bias: FloatArray
    slope: FloatArray
    noise_sd: FloatArray
    lapse_rate: FloatArray


def simulate_reports(
    log_odds: ArrayLike,
    *,
    rng: np.random.Generator,
    bias: ArrayLike = 0.0,
    slope: ArrayLike = 1.0,
    noise_sd: ArrayLike = 0.0,
    lapse_rate: ArrayLike = 0.0,
    automatic: ArrayLike = False,
    rounding: RoundingScheme | str = "interface",
    clicks: Sequence[float] = LAPSE_REPORTS,
    undecided_share: float = 0.5,
) -> FloatArray:
    """Report the probability of the target, as a participant with a given belief would.

    The latent report is sigmoid(slope * (log_odds + bias) + noise), noise ~ Normal(0, noise_sd). A lapse replaces it,
    half of the time by .5 and half of the time by one of `clicks`. It is then rounded; an automatic answer is exactly
    .5.
    """
    belief = np.asarray(log_odds, dtype=float)
    shape = belief.shape
    shift, gain, spread, rate = (
        _broadcast(name, value, shape)
        for name, value in (("bias", bias), ("slope", slope), ("noise_sd", noise_sd), ("lapse_rate", lapse_rate))
    )
    for name, values, good, right in (
        ("log_odds", belief, np.isfinite(belief), "finite"),
        ("bias", shift, np.isfinite(shift), "finite"),
        ("slope", gain, (gain > 0) & np.isfinite(gain), "positive and finite"),
        ("noise_sd", spread, (spread >= 0) & np.isfinite(spread), "at least 0 and finite"),
        ("lapse_rate", rate, (rate >= 0) & (rate <= 1), "from 0 to 1"),
    ):
        if not good.all():
            raise InputError(f"is {values[~good].flat[0]}, should be {right}", source="reports", field=name)

    noise = rng.standard_normal(shape)
    lapsed = rng.random(shape) < rate
    undecided = rng.random(shape) < undecided_share
    clicked = np.asarray(clicks)[rng.integers(0, len(clicks), shape)]

    report = sigmoid(gain * (belief + shift) + spread * noise)
    report = np.where(lapsed, np.where(undecided, 0.5, clicked), report)
    report = round_reports(report, rounding)
    report = np.clip(report, np.finfo(float).tiny, np.nextafter(1, 0))
    return np.where(np.broadcast_to(np.asarray(automatic, dtype=bool), shape), 0.5, report)


def reports_of(
    people: Participants, who: NDArray[np.integer], log_odds: ArrayLike, scale: RoundingScheme, rng: np.random.Generator
) -> FloatArray:
    """Report the probability of the target, each by a participant with the participant's own parameters."""
    return simulate_reports(
        log_odds,
        rng=rng,
        bias=people.bias[who],
        slope=people.slope[who],
        noise_sd=people.noise_sd[who],
        lapse_rate=people.lapse_rate[who],
        rounding=scale,
        clicks=scale.values or LAPSE_REPORTS,
        undecided_share=0.5 if not scale.values or 0.5 in scale.values else 0.0,
    )


def draw_participants(population: ParticipantPopulation, n_participants: int, seed: int) -> Participants:
    """Draw participants; the first ones are the same however many are drawn."""
    mean, concentration = population.lapse_mean, population.lapse_concentration
    normal = np.empty((n_participants, 3))
    lapse = np.full(n_participants, mean, dtype=float)
    for person in range(n_participants):
        rng = random_stream(seed, "participant", person, 0)
        normal[person] = rng.standard_normal(3)
        if 0 < mean < 1:  # a Beta distribution does not exist at the ends, where everybody has the mean itself
            lapse[person] = rng.beta(mean * concentration, (1 - mean) * concentration)
    bias = population.bias_mean_nats + population.bias_sd_nats * normal[:, 0]
    slope = population.slope_median * np.exp(population.slope_log_sd * normal[:, 1])
    noise = population.noise_median_nats * np.exp(population.noise_log_sd * normal[:, 2])
    return Participants(
        bias=bias if population.bias else np.zeros(n_participants),
        slope=slope if population.slope else np.ones(n_participants),
        noise_sd=noise if population.noise else np.zeros(n_participants),
        lapse_rate=lapse if population.lapses else np.zeros(n_participants),
    )


def _broadcast(name: str, value: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    array = np.asarray(value, dtype=float)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        problem = f"has shape {array.shape}, which does not fit log_odds of shape {shape}"
        raise InputError(problem, source="reports", field=name) from None
