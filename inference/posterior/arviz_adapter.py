"""The one place that knows which ArviZ and PyMC are installed.

PyMC 5 with ArviZ 0.23 (Python 3.11) give an ``arviz.InferenceData``, PyMC 6 with ArviZ 1 an ``xarray.DataTree`` of the
same groups. Their default intervals differ, so that every call here names the probability and the kind.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from shannon_game.estimators.errors import unknown_choice
from shannon_game.inference.disk import make_room
from shannon_game.inference.posterior.item_draws import thinned

if TYPE_CHECKING:
    import pymc as pm
    from numpy.typing import ArrayLike, NDArray

# nutpie's names of what every sampler reports
_STATS = {"logp": "lp", "depth": "tree_depth", "mean_tree_accept": "acceptance_rate"}

_TAIL = 0.1

InferenceData = Any
"""A posterior with its groups: ``arviz.InferenceData`` under ArviZ 0.23, ``xarray.DataTree`` under ArviZ 1."""


def _gives_trees() -> bool:
    """Whether the installed ArviZ keeps posteriors in a DataTree."""
    return int(version("arviz").split(".")[0]) >= 1


def from_groups(groups: Mapping[str, xr.Dataset]) -> InferenceData:
    """Build a posterior from its groups, of the type that the installed ArviZ uses."""
    if _gives_trees():
        return xr.DataTree.from_dict(dict(groups))
    import arviz as az  # noqa: PLC0415 - seconds that only a fit should cost

    made: InferenceData = az.InferenceData(**dict[str, Any](groups))
    return made


def from_draws(model: pm.Model, draws: Mapping[str, ArrayLike], stats: Mapping[str, ArrayLike]) -> InferenceData:
    """Build a posterior from draws of a model's variables, (chain, draw, ...), and statistics, (chain, draw)."""
    variables = {}
    for name, values in draws.items():
        own = model.named_vars_to_dims.get(name) or [f"{name}_dim_{axis}" for axis in range(np.ndim(values) - 2)]
        variables[name] = (("chain", "draw", *own), np.asarray(values))
    used = {dim for dims, _ in variables.values() for dim in dims}
    coords = {dim: np.asarray(labels) for dim, labels in model.coords.items() if dim in used and labels is not None}
    told = xr.Dataset({name: (("chain", "draw"), np.asarray(values)) for name, values in stats.items()})
    told = told.assign_coords({dim: np.arange(size) for dim, size in told.sizes.items()})
    return from_groups({"posterior": xr.Dataset(variables, coords={**told.coords, **coords}), "sample_stats": told})


def group_names(idata: InferenceData) -> tuple[str, ...]:
    """Names of the groups of a posterior."""
    return tuple(idata.children if isinstance(idata, xr.DataTree) else idata.groups())


def group(idata: InferenceData, name: str) -> xr.Dataset:
    """One group of a posterior, such as ``posterior`` or ``sample_stats``."""
    if name not in group_names(idata):
        raise unknown_choice("group", name, group_names(idata), source="posterior")
    found: xr.Dataset = idata[name].to_dataset() if isinstance(idata, xr.DataTree) else idata[name]
    return found


def add_groups(idata: InferenceData, groups: Mapping[str, xr.Dataset]) -> InferenceData:
    """Put datasets into a posterior as groups; a group of the same name is replaced."""
    for name, dataset in groups.items():
        if isinstance(idata, xr.DataTree):
            idata[name] = xr.DataTree(dataset)
        elif name in idata.groups():
            setattr(idata, name, dataset)
        else:
            idata.add_groups({name: dataset})
    return idata


def with_labels(idata: InferenceData, dim: str, labels: ArrayLike) -> InferenceData:
    """Name the entries along a dimension, in every group that has it."""
    groups = {name: group(idata, name) for name in group_names(idata)}
    there = {name: dataset for name, dataset in groups.items() if dim in dataset.dims}
    return add_groups(idata, {name: one.assign_coords({dim: np.asarray(labels)}) for name, one in there.items()})


def add_model_data(idata: InferenceData, model: pm.Model) -> InferenceData:
    """Add ``observed_data`` and ``constant_data`` of a model where the sampler left them out."""
    import arviz as az  # noqa: PLC0415
    from pymc.backends.arviz import find_constants, find_observations  # noqa: PLC0415

    dims = {name: [str(dim) for dim in found] for name, found in model.named_vars_to_dims.items()}
    coords = {name: np.asarray(values) for name, values in model.coords.items() if values is not None}
    no_draws: dict[str, Any] = {"sample_dims" if _gives_trees() else "default_dims": []}
    found = {"observed_data": find_observations(model), "constant_data": find_constants(model)}
    for name, values in found.items():
        if values and name not in group_names(idata):
            add_groups(idata, {name: az.dict_to_dataset(values, coords=coords, dims=dims, **no_draws)})
    return idata


def common_stats(idata: InferenceData) -> InferenceData:
    """Give the statistics of a draw one name each, whatever the sampler calls them."""
    stats = group(idata, "sample_stats")
    known = {old: new for old, new in _STATS.items() if old in stats and new not in stats}
    return add_groups(idata, {"sample_stats": stats.rename(known)})


def without_unconstrained(idata: InferenceData) -> InferenceData:
    """Drop the transformed twins of bounded variables (``sigma_log__`` beside ``sigma``), which nutpie keeps."""
    posterior = group(idata, "posterior")
    twins = [name for name in posterior.data_vars if str(name).endswith("__")]
    return add_groups(idata, {"posterior": posterior.drop_vars(twins)})


def diagnostics(idata: InferenceData, *, fixed: Collection[str] = ()) -> dict[str, NDArray[np.float64]]:
    """R-hat, bulk and tail ESS of every scalar of the posterior, and the E-BFMI of every chain."""
    import arviz as az  # noqa: PLC0415

    posterior, stats = group(idata, "posterior").drop_vars([*fixed]), group(idata, "sample_stats")
    # a number that never moves has no R-hat, and counts with all its draws
    with np.errstate(divide="ignore", invalid="ignore"):
        bulk, tail = az.ess(posterior, method="bulk"), az.ess(posterior, method="tail", prob=_TAIL)
        # one chain cannot disagree with another
        judged = az.rhat(posterior, method="rank") if posterior.sizes["chain"] > 1 else bulk * np.nan
    found = {"r_hat": judged, "ess_bulk": bulk, "ess_tail": tail}
    return {
        **{name: np.concatenate([np.ravel(one) for one in its.data_vars.values()]) for name, its in found.items()},
        "bfmi": np.ravel(az.bfmi(stats["energy"].values)) if "energy" in stats else np.empty(0),
    }


def ess_bulk(draws: NDArray[np.float64]) -> float:
    """Bulk effective sample size of one number's draws, (chain, draw); their number if they are all alike."""
    import arviz as az  # noqa: PLC0415

    return float(az.ess(draws, method="bulk"))


def r_hat(draws: NDArray[np.float64]) -> float:
    """Rank-normalised split R-hat of one number's draws, (chain, draw)."""
    import arviz as az  # noqa: PLC0415

    with np.errstate(divide="ignore", invalid="ignore"):
        return float(az.rhat(draws, method="rank"))


def psis_loo(
    log_likelihood: NDArray[np.float64], posterior: xr.Dataset
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Leave-one-out by PSIS."""
    import arviz as az  # noqa: PLC0415

    rows = xr.Dataset({"rows": (("chain", "draw", "row"), log_likelihood)})
    idata = from_groups({"posterior": posterior, "log_likelihood": rows})
    scale = {} if _gives_trees() else {"scale": "log"}
    with warnings.catch_warnings():
        # the k of every row is part of the result
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto distribution")
        found = az.loo(idata, pointwise=True, var_name="rows", **scale)
    elpd, p_loo = (found.elpd_i, found.p) if _gives_trees() else (found.loo_i, found.p_loo)
    return np.asarray(elpd.values), np.asarray(found.pareto_k.values), float(p_loo)


def thin(idata: InferenceData, n_draws: int) -> InferenceData:
    """Keep about `n_draws` draws, evenly spaced, the same number of every chain, in all groups that have draws."""
    drawn = ("posterior", "sample_stats")
    kept = {name: group(idata, name) for name in group_names(idata)}
    return from_groups({name: thinned(found, n_draws) if name in drawn else found for name, found in kept.items()})


def write(idata: InferenceData, path: Path) -> None:
    """Write to netCDF, without compression, a group of the file for each group."""
    make_room(path, sum(group(idata, name).nbytes for name in group_names(idata)))
    if isinstance(idata, xr.DataTree):
        idata.to_netcdf(path, engine="h5netcdf")
    else:
        idata.to_netcdf(str(path), engine="h5netcdf", compress=False)


def read(path: Path) -> InferenceData:
    """Read from netCDF, into memory; either generation of ArviZ may have written the file."""
    import arviz as az  # noqa: PLC0415

    lazy = az.from_netcdf(str(path), engine="h5netcdf")
    try:
        return lazy.load()
    finally:
        lazy.close()
