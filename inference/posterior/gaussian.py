r"""A posterior's mode and the Gaussian around it, with a check of how Gaussian it is.

For models of a hundred parameters whose likelihood takes milliseconds this is ten times quicker than NUTS. It is only
as good as the posterior is Gaussian: draws of :func:`inference.sample` from the same model say whether it is.

The mode of a joint posterior is no good place for the spread of parameters that are alike (:class:`Spread`): with n of
them, each known with precision :math:`\lambda_i` from the data, the density of the spread s alone is about

.. math:: p(s) \, \max_b p(b, \ldots \mid s) \prod_i (s^{-2} + \lambda_i)^{-1/2},

where the last factor keeps the mode away from s = 0 (Laplace's approximation). It is added to the log-density.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from pymc.blocking import DictToArrayBijection, RaveledVars
from pytensor.compile.mode import Mode
from scipy.optimize import minimize

from inference.posterior.arviz_adapter import InferenceData, from_groups
from inference.posterior.convergence import Convergence

__all__ = ["Gaussian", "Program", "Spread", "fit_gaussian", "nearby_mode"]

FloatArray = NDArray[np.float64]

_QUICK = Mode("vm", "fast_compile")
"""Compiles in half of the time; a call takes as long where the likelihood is one operation."""
_CHAINS = 4
_STEP = 1e-3
_GRADIENT = 0.5
_SOFTEST = 24
_DROPS = (0.8, 4.5)
_STRETCHES = 4
_NEWTON = 3
_LEAST_PRECISION = 1e-2
_NEARBY = 40


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mode and directions of a Gaussian in the unconstrained parameters.

    Attributes
    ----------
    mode : ndarray, shape (parameter,)
    directions : ndarray, shape (parameter, parameter)
        Columns, each one standard deviation long, those known least first.
    scales : ndarray, shape (parameter, 2)
        By what to stretch each direction downward and upward: the Gaussian is split where the posterior is skewed.
    convergence : Convergence
    """

    mode: FloatArray
    directions: FloatArray
    scales: FloatArray
    convergence: Convergence

    def points(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw parameters, (n, parameter)."""
        size = np.abs(rng.normal(size=(n, self.mode.size)))
        upward = rng.random(size.shape) * self.scales.sum(axis=1) < self.scales[:, 1]
        away = np.where(upward, self.scales[:, 1] * size, -self.scales[:, 0] * size)
        return self.mode + away @ self.directions.T


@dataclass(frozen=True)
class Spread:
    """A standard deviation, and the parameters whose it is, by the names of their values.

    ``centred`` parameters are Normal(0, spread), others are Normal(0, 1) and are multiplied by the spread.
    """

    log_sd: str
    members: str
    centred: bool = True


class Program:
    """A model compiled: its log-density with gradient, and its variables, at unconstrained parameters.

    The log-density has the factors of `spreads` in it once :meth:`learn_spreads` was called.
    """

    def __init__(
        self, model: pm.Model, wanted: Mapping[str, Any] | None = None, spreads: Sequence[Spread] = ()
    ) -> None:
        self.model = model
        self._spreads = spreads
        self._precision: list[tuple[Spread, FloatArray]] = []
        self._density = model.logp_dlogp_function(ravel_inputs=True, mode=_QUICK)
        self._density.set_extra_values({})
        start = model.initial_point()
        raveled = DictToArrayBijection.map({v.name: start[v.name] for v in self._density._grad_vars})
        self.start: FloatArray = np.asarray(raveled.data, dtype=float)
        self._layout = raveled.point_map_info
        self.variables = [*model.free_RVs, *model.deterministics]
        self._wanted = dict(wanted or {})

    @cached_property
    def _values(self) -> Any:
        outputs = [*self.model.replace_rvs_by_values(self.variables), *self._of_wanted]
        return self.model.compile_fn(
            outputs, inputs=self.model.value_vars, on_unused_input="ignore", point_fn=False, mode=_QUICK
        )

    @property
    def _of_wanted(self) -> list[Any]:
        return list(self.model.replace_rvs_by_values(list(self._wanted.values())))

    @cached_property
    def _only_wanted(self) -> Any:
        return self.model.compile_fn(
            self._of_wanted, inputs=self.model.value_vars, on_unused_input="ignore", point_fn=False, mode=_QUICK
        )

    def density(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Log-density and its gradient."""
        found, slope = self._density(x)
        value, gradient = float(found), np.array(slope, dtype=float)
        for one, precision in self._precision:
            at = self._places[one.log_sd]
            own = np.exp(2 * float(x[at][0])) * precision
            value -= 0.5 * float(np.log1p(own).sum())
            gradient[at] -= (own / (1 + own)).sum()
            if one.centred:
                value += own.size * float(x[at][0])
                gradient[at] += own.size
        return value, gradient

    def learn_spreads(self, x: FloatArray) -> None:
        """Take the precision with which data know the parameters that are alike from the curvature here."""
        self._precision = []
        found = []
        for one in self._spreads:
            if one.log_sd not in self._places:
                continue
            at = self._places[one.members]
            steps = _STEP * np.eye(x.size)[at]
            curvature = np.stack([self.density(x - h)[1][at] - self.density(x + h)[1][at] for h in steps]) / (2 * _STEP)
            sd2 = float(np.exp(2 * x[self._places[one.log_sd]][0]))
            prior = 1 / sd2 if one.centred else 1.0
            data = np.maximum(np.linalg.eigvalsh((curvature + curvature.T) / 2) - prior, 0)
            found.append((one, data if one.centred else data / sd2))
        self._precision = found

    @cached_property
    def _places(self) -> dict[str, slice]:
        ends = np.cumsum([size for *_, size, _ in self._layout])
        return {name: slice(end - size, end) for (name, _, size, _), end in zip(self._layout, ends, strict=True)}

    def wanted(self, x: FloatArray) -> list[FloatArray]:
        """Give the further tensors."""
        return [np.asarray(value, dtype=float) for value in self._only_wanted(*self._inputs(x))]

    def values(self, x: FloatArray) -> tuple[dict[str, FloatArray], list[FloatArray]]:
        """Values of the model's variables by name, and of the further tensors."""
        found = [np.asarray(value, dtype=float) for value in self._values(*self._inputs(x))]
        n = len(self.variables)
        return {one.name: value for one, value in zip(self.variables, found[:n], strict=True)}, found[n:]

    def _inputs(self, x: FloatArray) -> list[Any]:
        point = DictToArrayBijection.rmap(RaveledVars(x, self._layout))
        return [point[one.name] for one in self.model.value_vars]


def fit_gaussian(
    program: Program,
    *,
    start: FloatArray | None = None,
    before: Callable[[FloatArray], None] | None = None,
    rounds: int = 3,
) -> Gaussian:
    """Find the mode, and the Gaussian that has the curvature of the log-density there.

    Parameters
    ----------
    program : Program
    start : ndarray, shape (parameter,), optional
        By default the model's own.
    before : callable, optional
        Called with the parameters before every round of the search, to adapt the program to where it is.
    rounds : int

    Returns
    -------
    Gaussian
        Its convergence says whether the gradient vanishes, the log-density is curved downward, and falls off as the
        Gaussian does at two standard deviations along the directions that are known least.
    """

    def downhill(x: FloatArray) -> Any:
        value, gradient = program.density(x)
        return (-value, -gradient) if np.isfinite(value) else (1e10, np.zeros_like(x))

    x = program.start if start is None else start
    for at in range(rounds):
        if before is not None:
            before(x)
        options: Any = {"maxiter": 60 if at == 0 else 500, "maxcor": 30, "ftol": 1e-11, "gtol": 1e-3}
        x = minimize(downhill, x, jac=True, method="L-BFGS-B", options=options).x
        if at == rounds - 2:
            program.learn_spreads(x)
    top, gradient = program.density(x)
    steps = _STEP * np.eye(x.size)
    hessian = np.stack([(downhill(x + step)[1] - downhill(x - step)[1]) / (2 * _STEP) for step in steps])
    precision, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    directions = vectors / np.sqrt(np.maximum(precision, _LEAST_PRECISION))
    for _ in range(_NEWTON):  # what the search left, along directions that it hardly saw
        near = x + directions @ (directions.T @ gradient)
        value, slope = program.density(near)
        if not value > top:
            break
        x, top, gradient = near, value, slope
    reasons = []
    # a step by the gradient moves the log-density by half of this
    left = float(np.sum((directions.T @ gradient) ** 2))
    if left > _GRADIENT:
        reasons.append(f"the mode was not reached (the log-density would rise by {left / 2:.2g})")
    if precision[0] <= _LEAST_PRECISION:
        reasons.append("the log-density is flat or curved upward at the mode")
    scales = np.ones((x.size, 2))
    drops = np.full((min(_SOFTEST, x.size), 2), np.nan)
    for at, side in np.ndindex(*drops.shape):
        for _ in range(_STRETCHES):
            away = (2 * side - 1) * 2 * scales[at, side] * directions[:, at]
            drops[at, side] = top - program.density(x + away)[0]
            scales[at, side] *= np.clip(np.sqrt(2 / max(float(drops[at, side]), 1e-3)), 0.4, 2.0)
            if _DROPS[0] <= drops[at, side] <= _DROPS[1]:
                break
    if not _DROPS[0] <= drops.min() <= drops.max() <= _DROPS[1]:
        reasons.append(
            f"two standard deviations off the mode the log-density falls by {drops.min():.2g} to {drops.max():.2g}, "
            "where a Gaussian's falls by 2"
        )
    nan = float("nan")
    return Gaussian(x, directions, scales, Convergence(not reasons, tuple(reasons), nan, nan, nan, 0, nan))


def nearby_mode(program: Program, gaussian: Gaussian) -> FloatArray:
    """Mode of a program whose data have changed a little, from the Gaussian of what it was."""

    def downhill(z: FloatArray) -> Any:
        value, gradient = program.density(gaussian.mode + gaussian.directions @ z)
        return -value, -(gaussian.directions.T @ gradient)

    options: Any = {"maxiter": _NEARBY, "maxcor": 30, "gtol": 0.03}
    z = minimize(downhill, np.zeros(gaussian.mode.size), jac=True, method="L-BFGS-B", options=options).x
    found: FloatArray = gaussian.mode + gaussian.directions @ z
    return found


def posterior_of(program: Program, points: FloatArray, attrs: Mapping[str, str]) -> tuple[InferenceData, list[Any]]:
    """Variables at unconstrained points (draw, parameter), as four chains, and the further tensors draw by draw."""
    found = [program.values(x) for x in points]
    n = len(points) // _CHAINS
    data = {}
    for one in program.variables:
        stacked = np.stack([values[one.name] for values, _ in found])
        dims = program.model.named_vars_to_dims.get(one.name, ())
        labelled = ("chain", "draw", *dims)
        data[one.name] = (
            labelled,
            stacked.reshape(_CHAINS, n, *stacked.shape[1:]),
            {"description": attrs.get(one.name, "")},
        )
    used = {dim for dims, *_ in data.values() for dim in dims}
    coords = {dim: np.asarray(values) for dim, values in program.model.coords.items() if dim in used}
    posterior = xr.Dataset(data, {"chain": np.arange(_CHAINS), "draw": np.arange(n), **coords})
    stats = xr.Dataset({"diverging": (("chain", "draw"), np.zeros((_CHAINS, n), dtype=bool))}, posterior.coords)
    return from_groups({"posterior": posterior, "sample_stats": stats}), [further for _, further in found]
