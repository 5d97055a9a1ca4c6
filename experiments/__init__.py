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
from typing import TYPE_CHECKING

from estimators.errors import unknown_choice

if TYPE_CHECKING:
    import xarray as xr
    from omegaconf import DictConfig

    from experiments.outputs import ExperimentResult

    Experiment = Callable[[DictConfig, xr.Dataset], ExperimentResult]

__all__ = ["EXPERIMENTS", "load_experiment"]

EXPERIMENTS: Mapping[str, str] = MappingProxyType(
    {
        "perplexity": "experiments.perplexity:run",
        "rounding": "experiments.rounding:run",
        "bootstrap": "experiments.bootstrap:run",
        "sample_size": "experiments.sample_size:run",
        "belief": "experiments.belief:run",
        "human_loss": "experiments.human_loss:run",
        "calibration": "experiments.calibration:run",
        "recovery": "experiments.recovery:run",
        "sbc": "experiments.sbc:run",
    }
)
"""Name of every experiment -> ``module:function``; imported when asked for."""


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
    if name not in EXPERIMENTS:
        raise unknown_choice("experiment", name, EXPERIMENTS)
    module, function = EXPERIMENTS[name].split(":")
    run: Experiment = getattr(import_module(module), function)
    return run
