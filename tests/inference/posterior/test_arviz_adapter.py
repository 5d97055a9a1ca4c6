"""Posteriors of either generation of ArviZ: groups, files, and warnings that no user should see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from shannon_game.inference.posterior.arviz_adapter import (
    InferenceData,
    diagnostics,
    from_groups,
    group,
    group_names,
    psis_loo,
    read,
    thin,
    write,
)

az = pytest.importorskip("arviz", reason="the posterior is of the type that ArviZ uses")
DRAWS = ("chain", "draw")


def small_groups() -> dict[str, xr.Dataset]:
    rng = np.random.default_rng(0)
    towns = {"chain": [0, 1], "draw": np.arange(50), "town": ["Åre", "Bo", "Chur"]}
    posterior = xr.Dataset({"mean": ((*DRAWS, "town"), rng.normal(size=(2, 50, 3)))}, towns, {"note": "naïve"})
    stats = {"diverging": (DRAWS, rng.random((2, 50)) < 0.1), "energy": (DRAWS, rng.normal(size=(2, 50)))}
    predictive = xr.Dataset({"y": ((*DRAWS, "answer"), rng.integers(0, 3, (2, 5, 4)))}, {"draw": np.arange(5) * 10})
    return {
        "posterior": posterior,
        "sample_stats": xr.Dataset(stats),
        "posterior_predictive": predictive,
        "observed_data": xr.Dataset({"y": ("answer", [0, 1, 2, 2])}),
    }


def own_type() -> type:
    return xr.DataTree if int(az.__version__.split(".")[0]) >= 1 else az.InferenceData


def with_trees(groups: dict[str, xr.Dataset], path: Path) -> None:
    xr.DataTree.from_dict(groups).to_netcdf(path, engine="h5netcdf")


def with_one_dataset_after_another(groups: dict[str, xr.Dataset], path: Path) -> None:
    """As ArviZ 0.23 lays a file out: an empty root, then each group appended."""
    xr.Dataset().to_netcdf(path, mode="w", engine="h5netcdf")
    for name, dataset in groups.items():
        dataset.to_netcdf(path, mode="a", group=name, engine="h5netcdf")


def with_ours(groups: dict[str, xr.Dataset], path: Path) -> None:
    write(from_groups(groups), path)


@pytest.mark.parametrize("written", [with_trees, with_one_dataset_after_another, with_ours])
def test_files_of_both_generations_are_read(
    written: Callable[[dict[str, xr.Dataset], Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "fit.nc"
    written(small_groups(), path)
    back: InferenceData = read(path)
    path.unlink()  # all of it is in memory
    assert isinstance(back, own_type())
    assert set(group_names(back)) == set(small_groups())
    for name, dataset in small_groups().items():
        xr.testing.assert_identical(group(back, name), dataset)


def test_both_generations_give_the_same_numbers() -> None:
    """Convergence to the digit; the two smooth Pareto tails a little differently."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(4, 500, 2))
    draws = noise.cumsum(axis=1) * 0.02 + noise
    energy = rng.normal(size=(4, 500)).cumsum(axis=1) * 0.1
    posterior = xr.Dataset({"x": ((*DRAWS, "at"), draws)})
    stats = xr.Dataset({"energy": (DRAWS, energy)})
    found = diagnostics(from_groups({"posterior": posterior, "sample_stats": stats}))
    np.testing.assert_allclose(found["r_hat"], [1.082983942, 1.015461302], rtol=1e-8)
    np.testing.assert_allclose(found["ess_bulk"], [31.94076513, 1101.054732], rtol=1e-8)
    np.testing.assert_allclose(found["ess_tail"], [167.6491625, 1843.166623], rtol=1e-8)
    np.testing.assert_allclose(found["bfmi"], [0.03887337685, 0.006066042045, 0.03685868838, 0.007676368984], rtol=1e-8)
    # 0.23.4 and 1.3.0: elpd -5.241 and -5.234, -3.541 and -3.534; k 1.567 and 1.565, 1.355 and 1.345
    elpd, pareto_k, p_loo = psis_loo(-0.5 * (draws - 1) ** 2, posterior)
    np.testing.assert_allclose(elpd, [-5.238, -3.537], atol=0.006)
    np.testing.assert_allclose(pareto_k, [1.566, 1.35], atol=0.01)
    assert p_loo == pytest.approx(7.462, abs=0.01)


def test_only_draws_of_the_sampler_are_thinned() -> None:
    thinned = thin(from_groups(small_groups()), 10)
    assert group(thinned, "posterior")["draw"].values.tolist() == [5, 15, 25, 35, 45]
    assert group(thinned, "sample_stats").sizes["draw"] == 5
    assert group(thinned, "posterior_predictive").sizes["draw"] == 5
    xr.testing.assert_identical(group(thinned, "observed_data"), small_groups()["observed_data"])
