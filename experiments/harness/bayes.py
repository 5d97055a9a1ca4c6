"""The one driver of Bayesian experiments: sample, judge, columns, warnings, the posterior with all its groups."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.inference.posterior.arviz_adapter import group, thin
from shannon_game.inference.posterior.thresholds import GateThresholds, SamplerName
from shannon_game.inference.progress import advance, counted, say, stage
from shannon_game.inference.settings import Count, Group, Probability, Settings, numbers_of

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from shannon_game.inference.posterior.arviz_adapter import InferenceData
    from shannon_game.inference.posterior.convergence import Convergence
    from shannon_game.inference.posterior.sampling import CompiledModel

log = logging.getLogger("shannon-game")


class ConvergenceRow(column.Row):
    """Columns of every table with a posterior in it; see :class:`~shannon_game.inference.Convergence`."""

    r_hat_max: float | None = column.detail("largest split R-hat")
    ess_bulk_min: float | None = column.detail("smallest effective sample size of the bulk")
    ess_tail_min: float | None = column.detail("smallest effective sample size of the tails")
    n_divergent: int | None = column.detail("divergent draws")
    bfmi_min: float | None = column.detail("smallest energy fraction of missing information")
    converged: bool | None = column.flag("whether the fit behind the row passed every check", bad={"False": "§"})


CONVERGENCE_COLUMNS = tuple(each.name for each in ConvergenceRow.columns)


FITS = "fits"
"""Name of the stage that counts fits, see :func:`several_fits`."""

KEPT = 2000
"""Draws of a posterior that has every group, where its log-likelihood has a value a draw and row."""


class ChainSettings(Settings):
    """How long the chains are."""

    draws: Count = 4000
    """Draws kept, per chain."""
    tune: Count = 1500
    """Draws of the warm-up, per chain."""
    chains: Count = 4
    """Chains."""
    target_accept: Probability = 0.9
    """Target acceptance rate of the integrator's steps."""


class SamplerSettings(Group, ChainSettings):
    """What draws from the posterior."""

    name: SamplerName = "nutpie"
    """NUTS by this package (numpyro and blackjax come with the extra samplers); human_loss and recovery of loss take
    pymc alone, for the density of trajectories of their own."""
    cores: Count | None = None
    """Chains at a time; null is all that the machine has cores for (numpyro and blackjax run all as one program)."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of :func:`shannon_game.inference.posterior.sampling.sample`."""
        named = {name: getattr(self, name) for name in SamplerSettings.model_fields}
        return {"sampler": named.pop("name"), **named}


class BayesianSettings(Seeded):
    """What every experiment with a posterior takes."""

    sampler: SamplerSettings = SamplerSettings()
    """What draws from the posterior."""
    interval: Probability = 0.9
    """Probability inside the posterior intervals (equal tails)."""
    gate: Annotated[GateThresholds, numbers_of(GateThresholds)] = GateThresholds()
    """What a posterior must reach; the run ends with exit code 3 where one misses it (r_hat, ess_bulk, ess_tail,
    divergent, bfmi)."""
    allow_unconverged: bool = False
    """End with exit code 0 all the same; the table and the warnings say it either way."""

    @property
    def tail(self) -> float:
        """Probability below (and above) the interval."""
        return (1 - self.interval) / 2


class PosteriorSettings(BayesianSettings):
    """What an experiment takes that can leave posteriors."""

    save_posterior: bool = True
    """Write every main posterior to a file posterior_*.nc, with all groups."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Draws from a posterior and the verdict on them."""

    idata: InferenceData
    convergence: Convergence

    @property
    def posterior(self) -> xr.Dataset:
        """The draws."""
        return group(self.idata, "posterior")


def sampler_seed(seed: int, purpose: str) -> int:
    """Seed of one fit: `purpose` names its stream of the run's random numbers."""
    return int(rng_for(seed, purpose).integers(2**31))


def draw_posterior(
    settings: BayesianSettings,
    model: pm.Model | CompiledModel,
    purpose: str,
    *,
    times_draws: int = 1,
    target_accept: float | None = None,
) -> InferenceData:
    """Sample a posterior; :func:`fit_model` judges it too."""
    # experiments whose posterior is optional import this module without the extra bayes
    from shannon_game.inference.posterior import kept  # noqa: PLC0415
    from shannon_game.inference.posterior.sampling import CompiledModel, sample  # noqa: PLC0415

    arguments = {**settings.sampler.arguments, "seed": sampler_seed(settings.seed, purpose)}
    arguments["draws"] *= times_draws
    arguments["target_accept"] = target_accept or arguments["target_accept"]
    program = model.model if isinstance(model, CompiledModel) else model
    return kept.posterior(purpose, program, of=arguments, draw=lambda: sample(model, **arguments))


def fit_model(settings: BayesianSettings, model: pm.Model | CompiledModel, purpose: str) -> Fit:
    """Sample a posterior and judge it."""
    from shannon_game.inference.posterior.convergence import check_convergence  # noqa: PLC0415 - see draw_posterior

    idata = draw_posterior(settings, model, purpose)
    advance(FITS)
    return Fit(idata, check_convergence(idata, settings.gate))


def with_all_groups(
    idata: InferenceData, model: pm.Model | CompiledModel, seed: int, purpose: str, *, keep: int | None = None
) -> InferenceData:
    """Add to a posterior what the sampler leaves out: log-likelihood, prior, predictions, data."""
    from shannon_game.inference.posterior.predictive import complete  # noqa: PLC0415 - see draw_posterior

    return complete(
        idata if keep is None else thin(idata, keep), model, seed=sampler_seed(seed, f"predictive {purpose}")
    )


@contextmanager
def several_fits(n: int, sampler: ChainSettings) -> Iterator[None]:
    """Say how many fits there are to do, and which one it is as long as the block runs."""
    say(f"to do: {counted(n, 'fit')} of {sampler.chains} x {sampler.tune + sampler.draws:,} draws")
    with stage(FITS, n):
        yield


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Say in the log, and where somebody watches, what is done and how long it took."""
    start = time.perf_counter()
    with stage(what):
        yield
    text = f"{what} took {time.perf_counter() - start:.1f} s"
    log.info(text)
    say(text)


def interval_columns(name: str, draws: ArrayLike, tail: float) -> dict[str, float]:
    """Columns of a table: the median of some draws, and the ends of their interval with `tail` on either side."""
    median, lower, upper = np.quantile(np.asarray(draws, dtype=float), [0.5, tail, 1 - tail])
    return {f"{name}_median": float(median), f"{name}_lower": float(lower), f"{name}_upper": float(upper)}


def convergence_columns(found: Convergence | None) -> dict[str, Any]:
    """Values of :data:`CONVERGENCE_COLUMNS`; None is a result that needed no sampler."""
    if found is None:
        return dict.fromkeys(CONVERGENCE_COLUMNS, np.nan) | {"n_divergent": 0, "converged": True}
    return {name: getattr(found, name) for name in CONVERGENCE_COLUMNS[:-1]} | {"converged": found.passed}


def unconverged(found: Mapping[str, Convergence | None]) -> tuple[str, ...]:
    """One warning a fit that missed the gate, by the fit's name."""
    return tuple(
        f"the posterior of {name} did not converge ({'; '.join(each.reasons)}): do not use it{_remedy(each)}"
        for name, each in found.items()
        if each is not None and not each.passed
    )


def _remedy(found: Convergence) -> str:
    """Say which setting may help a fit that missed its check."""
    if np.isnan(found.ess_bulk_min):
        return "; run sampler=pymc, which takes far longer and assumes no Gaussian"
    if not any("R-hat" in reason or "ESS" in reason or "diverg" in reason for reason in found.reasons):
        return ""
    return (
        f"; set {Set('sampler.target_accept')} nearer to 1" if found.n_divergent else f"; raise {Set('sampler.draws')}"
    )


def gate_failed(settings: BayesianSettings, found: Mapping[str, Convergence | None]) -> bool:
    """Whether a fit missed the gate and the settings do not excuse it."""
    return bool(unconverged(found)) and not settings.allow_unconverged
