r"""Recovery of a known loss gap from simulated participants on a study's own design."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from estimators.comparison import HUMAN
from estimators.comparison.rounding import RoundingScheme, round_reports
from estimators.comparison.simulation.participants import Participants, draw_participants, simulate_reports
from estimators.comparison.simulation.settings import ParticipantPopulation
from estimators.errors import InputError, unknown_choice
from estimators.layout import item_labels
from inference.comparison.participant_fit import Anchor, ParticipantFit, compile_participants, fit_participants
from inference.comparison.recovery import classical_rows, posterior_row
from inference.posterior.arviz_adapter import group
from inference.posterior.convergence import GateThresholds
from inference.posterior.replicates import Row
from inference.posterior.sampling import CompiledModel
from models.comparison.participant_data import ParticipantData, participant_data, with_reports
from models.comparison.participants import ParticipantPriors

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["SimulatedAnswers", "answers_of", "fitted_people", "participant_rows", "simulate_answers"]

_REPORTING = ("slope", "bias", "noise", "lapse")

_KEPT = 800
"""Draws for which the gap is computed, which costs thousands of tokens a draw."""

_compiled: dict[tuple[object, ...], CompiledModel] = {}


@dataclass(frozen=True, eq=False)
class SimulatedAnswers:
    """Answers of simulated participants whose shared belief is a language model of the study.

    Attributes
    ----------
    study : xarray.Dataset
        The study with these answers in place of the real ones.
    data : ParticipantData
    truth_nats : float
        Loss gap of the belief to the generator, mean over the items asked.
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
        What the answers are rounded to, and the study's were.
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
    models = study["model"].values.tolist()
    if player not in models:
        raise unknown_choice("player", player, models, source=f"study {study.attrs.get('name')!r}")
    real = participant_data(study, grid)
    labels = item_labels(study)
    order = np.argsort(labels, kind="stable")
    position = order[np.searchsorted(labels, real.item, sorter=order)]
    who, generator = models.index(player), models.index(study.attrs["generator"])
    target = study["target_logprob"].values[:, position]
    candidate = study["candidate_logprob"].values[who, position[real.pair_item], real.pair_column]
    log_odds = target[who, real.pair_item] - candidate

    who_reports, person = people(real.participant.size), real.row_participant
    unrounded = simulate_reports(
        log_odds[real.row_pair],
        rng=rng,
        bias=who_reports.bias[person],
        slope=who_reports.slope[person],
        noise_sd=who_reports.noise_sd[person],
        lapse_rate=who_reports.lapse_rate[person],
        rounding="none",
    )
    report = round_reports(unrounded, grid)
    box = np.abs(report[:, None] - np.asarray(grid.values)).argmin(axis=1)
    everything = study["report"].values.astype(float).copy()
    everything[real.row_response] = report
    return SimulatedAnswers(
        study=study.assign(report=("response", everything)),
        data=with_reports(real, box),
        truth_nats=float((target[generator] - target[who]).mean()),
    )


def fitted_people(fit: ParticipantFit, draw: int) -> Participants:
    """How the participants report in one draw of the posterior, at the scale that the anchor gives."""
    posterior = group(fit.idata, "posterior")
    chain, at = divmod(draw, posterior.sizes["draw"])
    own = {name: posterior[name][{"chain": chain, "draw": at}].values for name in _REPORTING}
    # a belief that is c times as strong needs slopes c times as flat
    c = fit.temperature[draw]
    return Participants(bias=c * own["bias"], slope=own["slope"] / c, noise_sd=own["noise"], lapse_rate=own["lapse"])


def participant_rows(
    answers: SimulatedAnswers,
    *,
    k0: float,
    interval: float,
    sampler: Mapping[str, int | float | str | None],
    thresholds: GateThresholds,
    priors: ParticipantPriors,
    rng: np.random.Generator,
    longer: int = 1,
) -> list[Row]:
    """Estimate the loss gap of the shared belief in every way, beside the truth.

    The participant model gives its posterior median and equal-tailed interval with the scale from the outcomes, and
    with the scale known to be `k0` (the same posterior at another temperature). The classical estimators of
    :data:`~inference.comparison.recovery.CLASSICAL` give their value and a normal interval from the paper's standard
    error over items (source (i)). One compiled model serves all calls of a process on the same questions with the same
    priors.
    """
    truth = answers.truth_nats
    rows = classical_rows(answers.study, HUMAN, "none", truth=truth, interval=interval)
    for times in dict.fromkeys([1, longer]):
        settings: dict[str, Any] = {**sampler, "draws": times * int(sampler.get("draws") or 1000)}
        fit = fit_participants(
            answers.data,
            priors=priors,
            anchor=Anchor("outcomes"),
            compiled=_model(answers.data, priors),
            thresholds=thresholds,
            keep=_KEPT,
            seed=int(rng.integers(2**31)),
            progress=False,
            **settings,
        )
        if fit.convergence.passed:
            break
    for name, draws in (("outcomes", fit.gap_nats), ("assumed", fit.gap_at(k0))):
        found = posterior_row(name, draws, truth=truth, interval=interval, verdict=fit.convergence)
        rows.append(found | {"times_draws": times})
    return rows


def _model(data: ParticipantData, priors: ParticipantPriors) -> CompiledModel:
    # all that a compiled model has as constants
    arrays = (data.pair_item, data.pair_log_g, data.target_log_g, data.surprisal, data.row_pair, data.box_edges)
    names = (data.item, data.participant)
    key = (*(array.tobytes() for array in arrays), *(tuple(name.tolist()) for name in names), priors)
    if key not in _compiled:
        _compiled[key] = compile_participants(data, priors)
    return _compiled[key]
