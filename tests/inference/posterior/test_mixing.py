"""R-hat and effective sample sizes of many numbers against ArviZ, which takes one after the other."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

from shannon_game.inference.posterior.mixing import mixing

az = pytest.importorskip("arviz", reason="what the numbers are compared with")

FloatArray = NDArray[np.float64]


def walks(shape: tuple[int, int, int], keep: float, stay: float) -> FloatArray:
    """Chains that keep a part of where they were, and now and then stay where they are, as a sampler that refuses."""
    rng = np.random.default_rng(sum(shape))
    found = rng.normal(size=shape)
    stays = rng.random((shape[0], shape[1], 1)) < stay
    for draw in range(1, shape[1]):
        moved = keep * found[:, draw - 1] + np.sqrt(1 - keep**2) * found[:, draw]
        found[:, draw] = np.where(stays[:, draw], found[:, draw - 1], moved)
    return found


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize(
    ("shape", "keep", "stay"),
    [
        ((4, 1000, 6), 0.9, 0.2),
        ((4, 501, 6), 0.99, 0.2),
        ((2, 51, 12), 0.5, 0.0),
        ((3, 200, 6), -0.7, 0.0),
        ((2, 401, 4), 0.999, 0.1),
        ((1, 300, 4), 0.3, 0.1),
        ((3, 7, 30), 0.5, 0.0),
        ((2, 6, 30), -0.5, 0.3),
        ((2, 4, 6), 0.0, 0.0),
        ((2, 3, 2), 0.0, 0.0),
    ],
)
def test_the_numbers_are_those_of_arviz(shape: tuple[int, int, int], keep: float, stay: float) -> None:
    draws = walks(shape, keep, stay)
    draws[:, :, 0] = np.round(draws[:, :, 0])
    draws[0, 0, 1] = np.nan
    data = xr.Dataset({"x": (("chain", "draw", "at"), draws)})
    theirs = az.rhat(data, method="rank"), az.ess(data, method="bulk"), az.ess(data, method="tail", prob=0.1)
    for ours, expected in zip(mixing(draws), theirs, strict=True):
        np.testing.assert_allclose(ours, expected["x"].values, rtol=1e-12)


def test_a_number_that_never_moves_has_no_r_hat() -> None:
    draws = np.full((4, 100, 1), 1.5)
    r_hat, bulk, tail = mixing(draws)
    assert np.isnan(r_hat[0])
    assert (bulk[0], tail[0]) == (400, 400)


def test_numbers_are_judged_alike_alone_and_together() -> None:
    draws = walks((4, 30_000, 5), 0.5, 0.1)
    together = np.stack(mixing(draws))
    alone = np.hstack([mixing(draws[:, :, [at]]) for at in range(5)])
    np.testing.assert_allclose(together, alone, rtol=1e-12)


def test_one_chain_elsewhere_is_seen() -> None:
    draws = walks((4, 400, 2), 0.0, 0.0)
    draws[0, :, 0] += 3
    draws[0, :, 1] *= 5
    assert (mixing(draws)[0] > 1.1).all()
