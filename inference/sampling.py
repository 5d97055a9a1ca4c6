"""Draws from the posterior of a PyMC model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from estimators.errors import InputError, unknown_choice
from inference.arviz_adapter import InferenceData, add_model_data, without_unconstrained

if TYPE_CHECKING:
    import pymc as pm

__all__ = ["SAMPLERS", "CompiledModel", "compile_model", "sample"]

SAMPLERS = ("nutpie", "pymc", "numpyro", "blackjax")
"""NUTS by these packages; ``numpyro`` and ``blackjax`` have to be installed separately."""


@dataclass(frozen=True)
class CompiledModel:
    """A model compiled once for nutpie; the values of its ``pm.Data`` can change between fits, their shapes too.

    Attributes
    ----------
    model : pymc.Model
    program : object
        What nutpie made of it.
    """

    model: pm.Model
    program: Any


def compile_model(model: pm.Model, *, jitter: bool = True) -> CompiledModel:
    """Compile a model for nutpie, which takes seconds, so that several fits share it.

    Parameters
    ----------
    model : pymc.Model
    jitter : bool
        Start every chain at a random distance from the model's support point, instead of at it.

    Returns
    -------
    CompiledModel
    """
    import nutpie  # noqa: PLC0415 - seconds that only a fit should cost

    return CompiledModel(model, nutpie.compile_pymc_model(model, jitter_rvs=None if jitter else set()))


def sample(
    model: pm.Model | CompiledModel,
    *,
    sampler: str = "nutpie",
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 4,
    cores: int | None = None,
    target_accept: float = 0.8,
    seed: int = 0,
    progress: bool = False,
) -> InferenceData:
    """Sample the posterior of a model.

    Parameters
    ----------
    model : pymc.Model or CompiledModel
        The latter (nutpie only) is sampled with the values that the model's data have now.
    sampler : str
        One of :data:`SAMPLERS`.
    draws, tune, chains : int
        Draws kept and draws of the warm-up, per chain.
    cores : int, optional
        Chains at a time; by default all of them that the machine has cores for.
    target_accept : float
    seed : int
        The same seed gives the same draws with the same sampler, whatever the cores.
    progress : bool

    Returns
    -------
    arviz.InferenceData
        Groups posterior, sample_stats, observed_data and constant_data (the last two where the model has any).

    Raises
    ------
    InputError
        For an unknown sampler, or numbers of draws, chains or cores that are not positive.
    """
    if sampler not in SAMPLERS:
        raise unknown_choice("sampler", sampler, SAMPLERS)
    for name, value in (("draws", draws), ("tune", tune), ("chains", chains), ("cores", cores)):
        if value is not None and value < 1:
            raise InputError(f"is {value}, should be at least 1", source="sampler", field=name)
    if not 0 < target_accept < 1:
        raise InputError(f"is {target_accept}, should be between 0 and 1", source="sampler", field="target_accept")
    compiled = model if isinstance(model, CompiledModel) else None
    program = compiled.model if compiled is not None else model
    settings = {"draws": draws, "tune": tune, "chains": chains, "cores": cores, "target_accept": target_accept}
    if sampler == "nutpie":
        idata = _nutpie(compiled or compile_model(program), settings, seed=seed, progress=progress)
    else:
        idata = _pymc(program, sampler, settings, seed=seed, progress=progress)
    return add_model_data(idata, program)


def _nutpie(compiled: CompiledModel, settings: dict[str, Any], *, seed: int, progress: bool) -> InferenceData:
    import nutpie  # noqa: PLC0415

    program = compiled.program
    names = [name for name in program.shared_data if name in compiled.model.named_vars]
    if names:
        program = program.with_data(**{name: compiled.model[name].get_value() for name in names})
    return without_unconstrained(
        nutpie.sample(program, seed=seed, progress_bar=progress, save_warmup=False, **settings)
    )


def _pymc(model: pm.Model, sampler: str, settings: dict[str, Any], *, seed: int, progress: bool) -> InferenceData:
    import pymc as pm  # noqa: PLC0415

    return pm.sample(
        model=model,
        nuts_sampler=sampler,
        random_seed=seed,
        progressbar=progress,
        compute_convergence_checks=False,
        **settings,
    )
