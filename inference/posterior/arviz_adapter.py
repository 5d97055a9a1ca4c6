"""The one place that knows which ArviZ and PyMC are installed.

Written for PyMC 5 with ArviZ 0.23, which hand over an ``InferenceData``. PyMC 6 with ArviZ 1 hand over a DataTree and
change the default interval; whoever moves there changes this module only. Probabilities and kinds of intervals are
always given, never left to a default.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from estimators.errors import InputError, unknown_choice

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr
    from numpy.typing import NDArray

__all__ = [
    "InferenceData",
    "add_groups",
    "add_model_data",
    "common_stats",
    "diagnostics",
    "ess_bulk",
    "group",
    "interval",
    "of_posterior",
    "psis_loo",
    "psis_weights",
    "r_hat",
    "read",
    "thin",
    "without_unconstrained",
    "write",
]

# nutpie's names of what every sampler reports
_STATS = {"logp": "lp", "depth": "tree_depth", "mean_tree_accept": "acceptance_rate"}

InferenceData = Any
"""``arviz.InferenceData``; ArviZ carries no type information."""


def group(idata: InferenceData, name: str) -> xr.Dataset:
    """One group of the result, such as ``posterior`` or ``sample_stats``.

    Raises
    ------
    InputError
        If it is not there.
    """
    if name not in idata.groups():
        raise unknown_choice("group", name, idata.groups(), source="posterior")
    dataset: xr.Dataset = idata[name]
    return dataset


def add_model_data(idata: InferenceData, model: pm.Model) -> InferenceData:
    """Add ``observed_data`` and ``constant_data`` of a model where the sampler left them out."""
    import arviz as az  # noqa: PLC0415 - seconds that only a fit should cost
    from pymc.backends.arviz import find_constants, find_observations  # noqa: PLC0415

    dims = {name: [str(dim) for dim in found] for name, found in model.named_vars_to_dims.items()}
    coords = {name: np.asarray(values) for name, values in model.coords.items() if values is not None}
    found = {"observed_data": find_observations(model), "constant_data": find_constants(model)}
    for name, values in found.items():
        if values and name not in idata.groups():
            dataset = az.dict_to_dataset(values, coords=coords, dims=dims, default_dims=[], library=None)
            idata.add_groups({name: dataset})
    return idata


def of_posterior(posterior: xr.Dataset) -> InferenceData:
    """Build a result that has draws only."""
    import arviz as az  # noqa: PLC0415

    return az.InferenceData(posterior=posterior)


def add_groups(idata: InferenceData, groups: Mapping[str, xr.Dataset]) -> InferenceData:
    """Put datasets into a result as groups; one that is there already is replaced."""
    for name in groups:
        if name in idata.groups():
            del idata[name]
    idata.add_groups(dict(groups))
    return idata


def common_stats(idata: InferenceData) -> InferenceData:
    """Give the statistics of a draw one name each, whatever the sampler calls them.

    The names are PyMC's: ``diverging``, ``energy``, ``lp``, ``tree_depth``, ``n_steps``, ``acceptance_rate``.
    """
    stats = idata.sample_stats
    known = {old: new for old, new in _STATS.items() if old in stats and new not in stats}
    idata.sample_stats = stats.rename(known)
    return idata


def without_unconstrained(idata: InferenceData) -> InferenceData:
    """Drop the transformed twins of bounded variables (``sigma_log__`` beside ``sigma``), which nutpie keeps."""
    twins = [str(name) for name in idata.posterior.data_vars if str(name).endswith("__")]
    idata.posterior = idata.posterior.drop_vars(twins)
    return idata


def diagnostics(idata: InferenceData) -> dict[str, NDArray[np.float64]]:
    """R-hat, bulk and tail ESS of every scalar of the posterior, and the E-BFMI of every chain.

    Returns
    -------
    dict of str to ndarray
        ``r_hat``, ``ess_bulk``, ``ess_tail`` of shape (scalar,), ``bfmi`` of shape (chain,), empty where the sampler
        has no energy.
    """
    import arviz as az  # noqa: PLC0415

    posterior, stats = group(idata, "posterior"), group(idata, "sample_stats")

    def flat(dataset: xr.Dataset) -> NDArray[np.float64]:
        return np.concatenate([np.ravel(dataset[name].values) for name in dataset.data_vars])

    return {
        "r_hat": flat(az.rhat(posterior, method="rank")),
        "ess_bulk": flat(az.ess(posterior, method="bulk")),
        "ess_tail": flat(az.ess(posterior, method="tail", prob=0.1)),
        "bfmi": np.ravel(az.bfmi(stats["energy"].values)) if "energy" in stats else np.empty(0),
    }


def ess_bulk(draws: NDArray[np.float64]) -> float:
    """Bulk effective sample size of one number's draws, (chain, draw); NaN if they are all alike."""
    import arviz as az  # noqa: PLC0415

    return float(az.ess(draws, method="bulk"))


def r_hat(draws: NDArray[np.float64]) -> float:
    """Rank-normalised split R-hat of one number's draws, (chain, draw)."""
    import arviz as az  # noqa: PLC0415

    return float(az.rhat(draws, method="rank"))


def psis_loo(
    log_likelihood: NDArray[np.float64], posterior: xr.Dataset
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Leave-one-out by PSIS.

    Parameters
    ----------
    log_likelihood : ndarray, shape (chain, draw, row)
    posterior : xarray.Dataset
        Its effective sample sizes decide how many weights are smoothed.

    Returns
    -------
    elpd_nats, pareto_k : ndarray, shape (row,)
    p_loo : float
    """
    import arviz as az  # noqa: PLC0415

    idata = az.InferenceData(
        posterior=posterior, log_likelihood=az.dict_to_dataset({"rows": log_likelihood}, library=None)
    )
    with warnings.catch_warnings():
        # the k of every row is part of the result
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto distribution")
        found = az.loo(idata, pointwise=True, var_name="rows", scale="log")
    return np.asarray(found.loo_i.values), np.asarray(found.pareto_k.values), float(found.p_loo)


def psis_weights(log_ratio: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Pareto-smoothed importance weights of draws.

    Parameters
    ----------
    log_ratio : ndarray, shape (chain, draw)
        Log-density that is wanted minus that of the draws, up to a constant.

    Returns
    -------
    weight : ndarray, shape (chain, draw)
        They sum to one.
    pareto_k : float
        Above .7 they are not to be believed.
    """
    import arviz as az  # noqa: PLC0415

    log_weight, pareto_k = az.psislw(np.ravel(log_ratio))
    weight = np.exp(np.asarray(log_weight, dtype=float)).reshape(log_ratio.shape)
    return weight / weight.sum(), float(pareto_k)


def interval(draws: NDArray[np.float64], *, probability: float, kind: Literal["eti", "hdi"]) -> tuple[float, float]:
    """Equal-tailed or highest-density interval of draws of any shape."""
    if not 0 < probability < 1:
        raise InputError(f"is {probability}, should be between 0 and 1", field="probability")
    flat = np.ravel(np.asarray(draws, dtype=float))
    if kind == "eti":
        tail = (1 - probability) / 2
        lower, upper = np.quantile(flat, [tail, 1 - tail])
    elif kind == "hdi":
        import arviz as az  # noqa: PLC0415

        lower, upper = az.hdi(flat, hdi_prob=probability)
    else:
        raise unknown_choice("kind", kind, ("eti", "hdi"))
    return float(lower), float(upper)


def thin(idata: InferenceData, n_draws: int) -> InferenceData:
    """Keep about `n_draws` draws, evenly spaced, the same number of every chain, in all groups that have draws."""
    posterior = group(idata, "posterior")
    per_chain = max(1, min(round(n_draws / posterior.sizes["chain"]), posterior.sizes["draw"]))
    at = np.floor((np.arange(per_chain) + 0.5) * posterior.sizes["draw"] / per_chain).astype(int)
    return idata.isel(draw=at, groups=["posterior", "sample_stats"])


def write(idata: InferenceData, path: Path) -> None:
    """Write to netCDF, without compression."""
    idata.to_netcdf(str(path), engine="h5netcdf", compress=False)


def read(path: Path) -> InferenceData:
    """Read from netCDF, into memory."""
    import arviz as az  # noqa: PLC0415

    lazy = az.from_netcdf(str(path), engine="h5netcdf")
    try:
        return lazy.load()
    finally:
        lazy.close()
