"""What belongs to a posterior besides its draws: log-likelihood, prior, prior and posterior predictive."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from pymc.pytensorf import collect_default_updates, reseed_rngs
from pymc.pytensorf import compile as compile_function
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.arviz_adapter import InferenceData, add_groups, add_model_data, from_groups, group
from shannon_game.inference.posterior.item_draws import thinned
from shannon_game.inference.posterior.sampling import CompiledModel, whole_or_not_at_all
from shannon_game.models.outside import OutsideLikelihood


@dataclass(frozen=True, eq=False)
class LogLikelihood:
    """Log-likelihood of every row of the model's data, compiled once, where PyMC's own compiles at every call."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dims: Mapping[str, tuple[str, ...]]
    function: Any

    def at(self, point: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Rows' log-likelihoods at one point, by output."""
        found = self.function(*(point[name] for name in self.inputs))
        return {name: np.asarray(value, dtype=float) for name, value in zip(self.outputs, found, strict=True)}

    def of_draws(self, posterior: xr.Dataset) -> dict[str, FloatArray]:
        """Rows' log-likelihoods at every draw, each output of shape (chain, draw, ...)."""
        values = _draws_of(posterior, self.inputs)
        shape = (posterior.sizes["chain"], posterior.sizes["draw"])
        points = zip(*(value.reshape(-1, *value.shape[2:]) for value in values), strict=True)
        rows = [self.function(*point) for point in points]
        return {
            name: np.stack([row[at] for row in rows]).astype(float).reshape(*shape, *np.shape(rows[0][at]))
            for at, name in enumerate(self.outputs)
        }


def _draws_of(posterior: xr.Dataset, names: Sequence[str]) -> list[NDArray[Any]]:
    missing = [name for name in names if name not in posterior]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}", source="posterior")
    return [posterior[name].transpose("chain", "draw", ...).values for name in names]


def log_likelihood(model: pm.Model | CompiledModel) -> LogLikelihood:
    """Compile the log-likelihood of a model's rows.

    A potential counts as data where it has named dims, one row per entry; a scalar one (a soft constraint) does not.
    """
    program = _model_of(model)
    outside = _outside(program)
    outputs = [*program.observed_RVs, *([] if outside else _rows_of_potentials(program))]
    if not outputs and outside is None:
        raise InputError("has no observed variable", source="model")
    terms: list[Any] = list(program.logp(vars=outputs, jacobian=False, sum=False)) if outputs else []
    names = [variable.name for variable in outputs]
    dims = dict(program.named_vars_to_dims)
    if outside is not None:
        names += list(outside.log_likelihood)
        terms += program.replace_rvs_by_values(list(outside.log_likelihood.values()))
        dims |= outside.dims
    # parameters come on their own scale, the log-density takes them on the sampler's
    point = {rv: rv.type(rv.name) for rv in program.free_RVs}
    to_point: dict[Any, Any] = {}
    for rv, value in program.rvs_to_values.items():
        if rv in point:
            transform = program.rvs_to_transforms[rv]
            inner = point[rv] if transform is None else transform.forward(point[rv], *rv.owner.inputs)
            to_point[value] = inner if transform is None else clone_replace(inner, point)
    terms = clone_replace(terms, to_point)
    return LogLikelihood(
        inputs=tuple(rv.name for rv in program.free_RVs),
        outputs=tuple(names),
        # a row of a multivariate variable has one log-likelihood: its last dims are gone
        dims={
            name: tuple(map(str, dims.get(name, ())))[: term.type.ndim] for name, term in zip(names, terms, strict=True)
        },
        function=compile_function(
            list(point.values()), terms, on_unused_input="ignore", mode=None if outside is None else outside.mode
        ),
    )


def _model_of(model: pm.Model | CompiledModel) -> pm.Model:
    return model.model if isinstance(model, CompiledModel) else model


def _outside(model: pm.Model) -> OutsideLikelihood | None:
    return getattr(model, "outside", None)


def _rows_of_potentials(model: pm.Model) -> list[Any]:
    return [potential for potential in model.potentials if model.named_vars_to_dims.get(potential.name)]


def prior_simulator(
    model: pm.Model, names: Sequence[str] | None = None
) -> Callable[[np.random.Generator], dict[str, NDArray[Any]]]:
    """Compile a joint draw of parameters and data from the prior; it depends on its generator alone, not on others."""
    _check_generative(model)
    wanted = [variable.name for variable in model.basic_RVs] if names is None else list(names)
    variables = [model[name] for name in wanted]
    function, rngs = compile_function([], variables), list(collect_default_updates(variables))

    def draw(rng: np.random.Generator) -> dict[str, NDArray[Any]]:
        reseed_rngs(rngs, int(rng.integers(2**31)))
        return {name: np.asarray(value) for name, value in zip(wanted, function(), strict=True)}

    return draw


def _check_generative(model: pm.Model) -> None:
    if model.potentials:
        names = ", ".join(repr(potential.name) for potential in model.potentials)
        raise InputError(
            f"has potentials ({names}), from which nothing can be drawn",
            source="model",
        )


def complete(
    idata: InferenceData,
    model: pm.Model | CompiledModel,
    *,
    seed: int,
    n_prior: int = 500,
    n_predictive: int | None = 500,
) -> InferenceData:
    """Add what the sampler leaves out to a posterior, in place.

    Parameters
    ----------
    idata : arviz.InferenceData
        As :func:`shannon_game.inference.sample` gives it.
    model : pymc.Model or CompiledModel
        What was sampled; its data have the values they had then.
    n_prior : int
        Draws of the prior.
    n_predictive : int
        About as many draws of the posterior, evenly spaced, get data drawn from them; None is all, as ``az.loo_pit``
        wants them.

    Returns
    -------
    arviz.InferenceData
        The same object, with log_likelihood (of every draw), prior, prior_predictive, posterior_predictive,
        observed_data and constant_data besides what it had.

    Raises
    ------
    KeyboardInterrupt
        If the user stops it; no group is added half.

    Examples
    --------
    >>> from shannon_game import inference
    >>> from shannon_game.inference.examples import normal_model
    >>> model = normal_model()
    >>> idata = inference.complete(inference.stand_in_posterior(model), model, seed=1, n_prior=20, n_predictive=10)
    >>> idata.log_likelihood["y"].shape, idata.prior_predictive["y"].shape, idata.posterior_predictive["y"].shape
    ((2, 8, 4), (1, 20, 4), (2, 5, 4))
    """
    for name, value in (("n_prior", n_prior), ("n_predictive", n_predictive)):
        if value is not None and value < 1:
            raise InputError(f"is {value}, should be at least 1", field=name)
    program = _model_of(model)
    outside = _outside(program)
    posterior = group(idata, "posterior")
    if outside is None:
        _check_generative(program)
        _draws_of(posterior, [rv.name for rv in program.free_RVs])
    with whole_or_not_at_all():
        rows = log_likelihood(program)
        found = {"log_likelihood": _dataset(rows.of_draws(posterior), rows.dims, posterior, program)}
        known = posterior if n_predictive is None else thinned(posterior, n_predictive)
        if outside is None:
            found |= _prior(program, n_prior, seed)
            found["posterior_predictive"] = _predicted(program, known, seed + 1)
        else:
            with warnings.catch_warnings():
                # nothing wanted here depends on the potentials
                warnings.filterwarnings("ignore", message="The effect of Potentials")
                drawn = pm.sample_prior_predictive(
                    n_prior,
                    model=program,
                    var_names=outside.parameters,
                    random_seed=seed,
                    compile_kwargs={} if outside.mode is None else {"mode": outside.mode},
                )
            found["prior"] = group(drawn, "prior")
            of_prior = outside.simulate_prior or outside.simulate
            for name, draws, at, by in (
                ("prior", found["prior"], seed, of_prior),
                ("posterior", known, seed + 1, outside.simulate),
            ):
                found[f"{name}_predictive"] = _simulated(outside, program, draws, np.random.default_rng(at), by)
            for name, values in (
                ("observed_data", outside.observed()),
                ("constant_data", (outside.constant or dict)()),
            ):
                own = {one: (outside.dims[one], value) for one, value in values.items()}
                if own:
                    found[name] = xr.Dataset(own, coords=_coords(program, own.values()))
    add_groups(idata, found)
    return add_model_data(idata, program)


def _prior(model: pm.Model, n_draws: int, seed: int) -> dict[str, xr.Dataset]:
    drawn = pm.sample_prior_predictive(n_draws, model=model, random_seed=seed)
    return {name: group(drawn, name) for name in ("prior", "prior_predictive")}


def _predicted(model: pm.Model, posterior: xr.Dataset, seed: int) -> xr.Dataset:
    """Data drawn from the draws of a posterior; what is observed of a variable's parents stays as it was."""
    observed = {rv.name: rv for rv in model.observed_RVs}
    parts = []
    for name, rv in observed.items():
        parents = [node for node in ancestors([rv]) if node is not rv]
        given = {other: model.rvs_to_values[seen] for other, seen in observed.items() if seen in parents}
        program = pm.do(model, given) if given else model
        # With the data that the parameters depend on beside them; PyMC would otherwise think that the data may have
        # changed, and draw such parameters anew from their prior.
        known = add_model_data(from_groups({"posterior": posterior}), program)
        # by name: PyMC 5.28 appends to the model's own list of observed variables where it is asked for all
        drawn = pm.sample_posterior_predictive(
            known, model=program, var_names=[name], random_seed=seed, progressbar=False
        )
        parts.append(group(drawn, "posterior_predictive"))
    merged: xr.Dataset = xr.merge(parts, join="exact", compat="equals")
    return merged


def _simulated(
    outside: OutsideLikelihood,
    model: pm.Model,
    draws: xr.Dataset,
    rng: np.random.Generator,
    simulate: Callable[..., Mapping[str, NDArray[Any]]],
) -> xr.Dataset:
    values = _draws_of(draws, outside.parameters)
    shape = (draws.sizes["chain"], draws.sizes["draw"])
    points = zip(*(value.reshape(-1, *value.shape[2:]) for value in values), strict=True)
    found = [simulate(dict(zip(outside.parameters, point, strict=True)), rng) for point in points]
    stacked = {name: np.stack([one[name] for one in found]) for name in found[0]}
    return _dataset(
        {name: value.reshape(*shape, *value.shape[1:]) for name, value in stacked.items()}, outside.dims, draws, model
    )


def _dataset(
    found: Mapping[str, NDArray[Any]], dims: Mapping[str, tuple[str, ...]], posterior: xr.Dataset, model: pm.Model
) -> xr.Dataset:
    coords = {"chain": posterior["chain"].values, "draw": posterior["draw"].values}
    variables = {}
    for name, values in found.items():
        own = dims[name] or tuple(f"{name}_dim_{axis}" for axis in range(values.ndim - 2))
        variables[name] = (("chain", "draw", *own), values)
    return xr.Dataset(variables, coords=coords | _coords(model, variables.values()))


def _coords(model: pm.Model, variables: Iterable[tuple[tuple[str, ...], Any]]) -> dict[str, NDArray[Any]]:
    used = {dim for dims, _ in variables for dim in dims}
    return {dim: np.asarray(model.coords[dim]) for dim in used if model.coords.get(dim) is not None}
