"""What the Bayesian experiments share: their settings checked, the sampler called, the verdict in the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from omegaconf import DictConfig

from estimators.errors import InputError, require_packages, unknown_choice
from experiments.harness.settings import rng_for, tail_probability

if TYPE_CHECKING:
    import pymc as pm

    from inference.posterior.arviz_adapter import InferenceData
    from inference.posterior.convergence import Convergence
    from inference.posterior.sampling import CompiledModel

__all__ = [
    "CONVERGENCE_COLUMNS",
    "check_bayesian",
    "convergence_columns",
    "gate",
    "require_bayes",
    "sample_model",
]

CONVERGENCE_COLUMNS = ("r_hat_max", "ess_bulk_min", "ess_tail_min", "n_divergent", "bfmi_min", "converged")
"""Columns of every table with a posterior in it; see :class:`~inference.posterior.convergence.Convergence`."""


def check_bayesian(cfg: DictConfig, priors: Mapping[str, type]) -> None:
    """Check the packages and the settings that every Bayesian experiment has.

    Parameters
    ----------
    cfg : DictConfig
        With ``experiment.interval``, ``.gate``, ``.allow_unconverged`` and ``sampler``.
    priors : mapping of str to type
        Key under ``experiment`` of every set of priors -> the dataclass whose fields it may set.

    Raises
    ------
    InputError
        If a package is missing, or a setting is unknown or wrong.
    """
    require_bayes()
    from inference.posterior.convergence import GateThresholds  # noqa: PLC0415 - only where the packages are there

    settings = cfg.experiment
    tail_probability(cfg)
    if not isinstance(settings.allow_unconverged, bool):
        raise InputError(
            f"is {settings.allow_unconverged!r}, should be true or false", field="experiment.allow_unconverged"
        )
    for group, known in {"gate": GateThresholds, **priors}.items():
        valid = tuple(vars(known()))
        for name, value in settings[group].items():
            if name not in valid:
                raise unknown_choice(f"experiment.{group} setting", name, valid)
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise InputError(f"is {value!r}, should be a number", field=f"experiment.{group}.{name}")
    sampler = cfg.sampler
    for name in ("draws", "tune", "chains", "cores"):
        value = sampler[name]
        if not (isinstance(value, int) and not isinstance(value, bool)) and not (name == "cores" and value is None):
            raise InputError(f"is {value!r}, should be a whole number", field=f"sampler.{name}")


def require_bayes() -> None:
    """Raise an :class:`InputError` that says what to install if a package of the extra ``bayes`` is missing."""
    require_packages(("pymc", "nutpie", "arviz"), "bayes", source="the Bayesian experiments")


def sample_model(
    cfg: DictConfig, model: pm.Model | CompiledModel, purpose: str, *, times_draws: int = 1
) -> InferenceData:
    """Sample a posterior with the config's sampler; `purpose` names its stream of random numbers."""
    from inference.posterior.sampling import sample  # noqa: PLC0415 - seconds of imports that only a fit should cost

    settings = cfg.sampler
    return sample(
        model,
        sampler=settings.name,
        draws=settings.draws * times_draws,
        tune=settings.tune,
        chains=settings.chains,
        cores=settings.cores,
        target_accept=settings.target_accept,
        seed=int(rng_for(cfg, purpose).integers(2**31)),
    )


def gate(cfg: DictConfig, idata: InferenceData) -> Convergence:
    """Judge a posterior by the thresholds of ``experiment.gate``."""
    from inference.posterior.convergence import GateThresholds, check_convergence  # noqa: PLC0415

    return check_convergence(idata, GateThresholds(**cfg.experiment.gate))


def convergence_columns(found: Convergence | None) -> dict[str, Any]:
    """Values of :data:`CONVERGENCE_COLUMNS`; None is a result that needed no sampler."""
    return {
        "r_hat_max": np.nan if found is None else found.r_hat_max,
        "ess_bulk_min": np.nan if found is None else found.ess_bulk_min,
        "ess_tail_min": np.nan if found is None else found.ess_tail_min,
        "n_divergent": 0 if found is None else found.n_divergent,
        "bfmi_min": np.nan if found is None else found.bfmi_min,
        "converged": True if found is None else found.passed,
    }
