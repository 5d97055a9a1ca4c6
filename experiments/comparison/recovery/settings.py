"""Settings of the recovery experiment, and what its populations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import xarray as xr
from pydantic import BeforeValidator, Field, model_validator

from estimators.comparison import ParticipantPopulation
from estimators.content import content_digest
from estimators.errors import InputError
from experiments.comparison.estimates import PlayerSettings, chosen_models
from experiments.harness.bayes import SamplerSettings
from experiments.harness.replication import ReplicationSettings
from inference.posterior.replicates import Row, Task
from inference.posterior.thresholds import GateThresholds
from inference.settings import Count, Counts, Positive, Probability, numbers_of
from models.comparison.belief import BeliefPriors
from models.comparison.participants import ParticipantPriors

__all__ = ["Population", "RecoverySettings", "decisive_settings", "language_models"]

_ONLY = {
    "players": ("n_items", "ask", "priors"),
    "participants": ("k0", "participants", "participant_priors"),
}
Scales = Annotated[
    tuple[Positive, ...],
    Field(min_length=1),
    BeforeValidator(lambda k0: (k0,) if isinstance(k0, int | float) else k0),
]


class RecoverySettings(PlayerSettings, ReplicationSettings):
    """Settings of :func:`~experiments.comparison.recovery.experiment.recovery`."""

    sampler: SamplerSettings = SamplerSettings(name="hmc", draws=4000, tune=400, chains=2, cores=1, target_accept=0.65)
    """What draws from the posteriors, one chain at a time."""
    longer: Count = 3
    """Times so many draws a posterior gets that misses the gate, anew and once; 1: none is drawn again."""
    population: Literal["players", "participants"] = "players"
    """Who answers the fresh studies. players: language models without noise, on items of the study that nobody was
    asked (belief model); participants: simulated people with a language model's belief, on the questions that the
    study's participants answered (participant model)."""
    n_studies: Count = 100
    """Fresh studies a cell. Of players, a cell is a player, a rounding (none and ``rounding``) and a number of
    candidates; of participants, a player and a k0."""
    n_items: Count = 120
    """Players only: items a study, drawn without replacement."""
    n: Counts = (10, 20)
    """Players only: candidates asked about an item."""
    ask: Literal["draws", "distinct"] = "draws"
    """Players only: what is asked about. draws: candidates as the generator drew them, which equation 5 needs;
    distinct: distinct tokens other than the target, from which the belief model learns more."""
    k0: Scales = (1.0, 0.3, 2.0)
    """Participants only: typical slopes of reports on the log-odds of the belief."""
    participants: Annotated[ParticipantPopulation, numbers_of(ParticipantPopulation)] = ParticipantPopulation(
        bias_sd_nats=0.5, slope_log_sd=0.6, noise_median_nats=0.9, noise_log_sd=0.3, lapse_mean=0.05
    )
    """Participants only: how people differ
    (:class:`~estimators.comparison.simulation.settings.ParticipantPopulation`)."""
    interval: Probability = 0.9
    """Probability inside the intervals, which should hold the truth so often."""
    gate: Annotated[GateThresholds, numbers_of(GateThresholds)] = GateThresholds()
    """A posterior that misses one of these is drawn again (``longer``); if it still does, it is counted as not
    converged, and stays in all numbers."""
    priors: Annotated[BeliefPriors, numbers_of(BeliefPriors)] = BeliefPriors()
    """Players only: scales of the weak priors, only those to change
    (:class:`~models.comparison.belief.BeliefPriors`)."""
    participant_priors: Annotated[ParticipantPriors, numbers_of(ParticipantPriors)] = ParticipantPriors()
    """Participants only: scales of the weak priors, only those to change
    (:class:`~models.comparison.participants.ParticipantPriors`)."""

    @model_validator(mode="after")
    def _of_the_population(self) -> RecoverySettings:
        for population, names in _ONLY.items():
            for name in names if population != self.population else ():
                if name in self.model_fields_set:
                    raise InputError(f"does nothing where the population is {self.population}", field=name)
        if len(set(self.k0)) < len(self.k0):
            raise InputError(f"is {list(self.k0)}; give each scale once", field="k0")
        return self


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


def language_models(study: xr.Dataset, players: Sequence[str] | None) -> list[str]:
    """Language models that `players` names, by default all; the participants have no known truth."""
    return chosen_models(study, players, "whose truth nobody knows; the population is language models")


def decisive_settings(study: xr.Dataset, settings: RecoverySettings) -> dict[str, Any]:
    """What the rows of every population depend on: data, seed, interval, sampler, gate."""
    return {
        "study": content_digest([(str(name), one.dims, one.to_numpy()) for name, one in study.variables.items()]),
        "seed": settings.seed,
        "interval": settings.interval,
        # cores change no number
        "sampler": {name: value for name, value in settings.sampler.arguments.items() if name != "cores"},
        "gate": vars(settings.gate),
        "longer": settings.longer,
    }
