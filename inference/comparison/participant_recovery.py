"""Simulated participants who believe what a language model believes, and answer a study's own questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from estimators.comparison import response_positions, same_token
from estimators.comparison.rounding import RoundingScheme
from estimators.comparison.simulation.participants import Participants, draw_participants, reports_of
from estimators.comparison.simulation.settings import ParticipantPopulation
from estimators.errors import InputError, unknown_choice
from inference.posterior.arviz_adapter import group
from models.comparison.participant_data import ParticipantData, participant_data

if TYPE_CHECKING:
    import xarray as xr

    from inference.comparison.participant_fit import ParticipantFit

__all__ = ["SimulatedAnswers", "answers_of", "fitted_people", "simulate_answers"]


@dataclass(frozen=True, eq=False)
class SimulatedAnswers:
    """Answers of simulated participants whose shared belief is a language model of the study.

    Attributes
    ----------
    study : xarray.Dataset
        The study with these answers in place of the real ones, and without free answers.
    data : ParticipantData
    truth_nats : float
        Loss gap of the belief to the generator, mean over the items of `data`.
    """

    study: xr.Dataset
    data: ParticipantData
    truth_nats: float


def simulate_answers(
    study: xr.Dataset,
    player: str,
    *,
    k0: float,
    population: ParticipantPopulation,
    grid: RoundingScheme,
    rng: np.random.Generator,
) -> SimulatedAnswers:
    """Let as many simulated participants answer the very questions that the study's participants answered.

    Everybody's belief is that of the language model; slopes have exactly the geometric mean `k0` and biases the mean
    zero, so that what the truth is does not depend on who was drawn.

    Parameters
    ----------
    study : xarray.Dataset
        A comparison study.
    player : str
        A language model of the study.
    k0 : float
    population : ParticipantPopulation
        Its ``slope_median`` is not used.
    grid : RoundingScheme
        What the answers are rounded to.
    rng : numpy.random.Generator

    Returns
    -------
    SimulatedAnswers

    Raises
    ------
    InputError
        For an unknown player, or a `k0` that is not positive.

    Examples
    --------
    >>> import inference
    >>> import numpy as np
    >>> from estimators.comparison import ParticipantPopulation, rounding_scheme
    >>> from estimators.comparison.examples import comparison_study
    >>> answers = inference.simulate_answers(
    ...     comparison_study(),
    ...     "lm-weak",
    ...     k0=0.8,
    ...     population=ParticipantPopulation(),
    ...     grid=rounding_scheme("interface"),
    ...     rng=np.random.default_rng(0),
    ... )
    >>> answers.data.row_box.size
    19
    """
    if not (np.isfinite(k0) and k0 > 0):
        raise InputError(f"is {k0}, should be a positive number", field="k0")

    def draw(n: int) -> Participants:
        people = draw_participants(population, n, int(rng.integers(2**31)))
        slope = k0 * people.slope / np.exp(np.log(people.slope).mean())
        return replace(people, slope=slope, bias=people.bias - people.bias.mean())

    return answers_of(study, player, draw, grid=grid, rng=rng)


def answers_of(
    study: xr.Dataset,
    player: str,
    people: Callable[[int], Participants],
    *,
    grid: RoundingScheme,
    rng: np.random.Generator,
) -> SimulatedAnswers:
    """Let given people who believe what a language model believes answer the questions of a study."""
    known = study["model"].values.tolist()
    if player not in known:
        raise unknown_choice("player", player, known, source=f"study {study.attrs.get('name')!r}")
    study = study.drop_dims(["answer", "participant_truth"], errors="ignore")
    position, column = response_positions(study), study["response_candidate"].values
    asked = ~(same_token(study)[position, column] | study["automatic"].values)
    position, column = position[asked], column[asked]
    target = study["target_logprob"].sel(model=player).values
    candidate = study["candidate_logprob"].sel(model=player).values
    reference = target[position]
    if "response_reference" in study:
        against = study["response_reference"].values[asked]
        reference = np.where(against < 0, reference, candidate[position, against])
    names, person = np.unique(study["participant"].values[asked].astype(str), return_inverse=True)
    report = study["report"].values.astype(float)
    report[asked] = reports_of(people(names.size), person, reference - candidate[position, column], grid, rng)
    simulated = study.assign(report=("response", report))
    data = participant_data(simulated, grid)
    gap = study["target_logprob"].sel(model=study.attrs["generator"]).values - target
    return SimulatedAnswers(simulated, data, float(gap[data.position].mean()))


def fitted_people(fit: ParticipantFit, draw: int) -> Participants:
    """How the participants report in one draw of the posterior, at the scale that the anchor gives."""
    posterior = group(fit.idata, "posterior")
    chain, at = divmod(draw, posterior.sizes["draw"])
    slope, bias, noise, lapse = (
        np.broadcast_to(posterior[name][{"chain": chain, "draw": at}].values, fit.data.participant.shape)
        for name in ("slope", "bias", "noise", "lapse")
    )
    # a belief that is c times as strong needs slopes c times as flat
    c = fit.temperature[draw]
    return Participants(bias=c * bias, slope=slope / c, noise_sd=noise, lapse_rate=lapse)
