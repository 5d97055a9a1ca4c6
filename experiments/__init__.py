"""The experiments: what a user runs, from a study to a table, figures and a report.

What lives here: the command (``run``), one module per experiment, the loaders of studies (``studies``), what a run
writes (``outputs``), the summary of a sweep (``sweep``).
What does not: numbers from arrays (``estimators``), probabilistic programs (``models``), samplers and language models
(``inference``). Nothing imports this package.

Every experiment is a function ``run(cfg, study) -> ExperimentResult``; it draws no file and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from estimators.errors import unknown_choice

if TYPE_CHECKING:
    import xarray as xr
    from omegaconf import DictConfig

    from experiments.harness.outputs import ExperimentResult

    Experiment = Callable[[DictConfig, xr.Dataset], ExperimentResult]

__all__ = ["EXPERIMENTS", "ExperimentEntry", "load_experiment", "study_kind"]


class ExperimentEntry(NamedTuple):
    """Where an experiment lives, and the kind of study that it takes."""

    kind: str
    """A key of :data:`experiments.studies.VALIDATORS`."""
    target: str
    """``module:function``; imported when asked for."""


EXPERIMENTS: Mapping[str, ExperimentEntry] = MappingProxyType(
    {
        "perplexity": ExperimentEntry("comparison", "experiments.comparison.perplexity:run"),
        "rounding": ExperimentEntry("comparison", "experiments.comparison.rounding:run"),
        "bootstrap": ExperimentEntry("comparison", "experiments.comparison.bootstrap:run"),
        "sample_size": ExperimentEntry("comparison", "experiments.comparison.sample_size:run"),
        "belief": ExperimentEntry("comparison", "experiments.comparison.belief:run"),
        "human_loss": ExperimentEntry("comparison", "experiments.comparison.human_loss.experiment:run"),
        "calibration": ExperimentEntry("comparison", "experiments.comparison.calibration.experiment:run"),
        "recovery": ExperimentEntry("comparison", "experiments.comparison.recovery.experiment:run"),
        "accuracy": ExperimentEntry("guess", "experiments.guesses.accuracy.experiment:run"),
        "build_study": ExperimentEntry("documents", "experiments.comparison.build_study.experiment:run"),
        "corpus": ExperimentEntry("documents", "experiments.documents.corpus:run"),
        "context_length": ExperimentEntry("documents", "experiments.rankings.context_length.experiment:run"),
        "ranks": ExperimentEntry("ranking", "experiments.rankings.ranks.experiment:run"),
        "api_ranks": ExperimentEntry("documents", "experiments.rankings.api_ranks:run"),
        "rank_recovery": ExperimentEntry("ranking", "experiments.rankings.rank_recovery:run"),
        "tvd_exact": ExperimentEntry("cloze", "experiments.cloze.tvd_exact:run"),
        "sbc": ExperimentEntry("comparison", "experiments.comparison.sbc:run"),
        "tvd": ExperimentEntry("cloze", "experiments.cloze.tvd.experiment:run"),
        "tvd_sample_size": ExperimentEntry("cloze", "experiments.cloze.tvd_sample_size:run"),
        "tvd_coverage": ExperimentEntry("cloze", "experiments.cloze.tvd_coverage:run"),
        "improve": ExperimentEntry("cloze", "experiments.cloze.improve:run"),
        "distributions": ExperimentEntry("cloze", "experiments.cloze.distributions:run"),
        "ard": ExperimentEntry("cloze", "experiments.cloze.ard.experiment:run"),
        "reproduce": ExperimentEntry("published", "experiments.papers.reproduce.experiment:run"),
        "ard_coverage": ExperimentEntry("cloze", "experiments.cloze.ard_coverage:run"),
    }
)
"""Name of every experiment -> its entry."""


def load_experiment(name: str) -> Experiment:
    """Import one experiment.

    Parameters
    ----------
    name : str
        A key of :data:`EXPERIMENTS`.

    Returns
    -------
    callable
        ``run(cfg, study) -> ExperimentResult``.

    Raises
    ------
    InputError
        If there is no such experiment; the message lists those that exist.
    """
    module, function = _entry(name).target.split(":")
    run: Experiment = getattr(import_module(module), function)
    return run


def study_kind(name: str) -> str:
    """Return the kind of study that an experiment takes; raises as :func:`load_experiment` does."""
    return _entry(name).kind


def _entry(name: str) -> ExperimentEntry:
    if name not in EXPERIMENTS:
        raise unknown_choice("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
