r"""A posterior's mode, the Gaussian around it, and Hamiltonian Monte Carlo in the Gaussian's directions.

For models of a hundred parameters whose likelihood takes milliseconds. NUTS from a diagonal metric takes hundreds of
gradients a draw on the participant model; along the Gaussian's directions four or five suffice.

The mode of a joint posterior is no good place for the spread of parameters that are alike (:class:`Spread`): with n of
them, each known with precision :math:`\lambda_i` from the data, the density of the spread s alone is about

.. math:: p(s) \, \max_b p(b, \ldots \mid s) \prod_i (s^{-2} + \lambda_i)^{-1/2},

where the last factor keeps the mode away from s = 0 (Laplace's approximation). Only the search for the mode has it.
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

from shannon_game.inference.posterior.arviz_adapter import InferenceData, from_groups
from shannon_game.inference.progress import advance, stage

__all__ = ["Gaussian", "Program", "Spread", "Walk", "fit_gaussian", "nearby_mode", "posterior_of", "walk"]

FloatArray = NDArray[np.float64]

_QUICK = Mode("cvm", "fast_compile")
"""Compiles in half of the time; a call takes as long where the likelihood is one operation."""
_STEP = 1e-3
_NEWTON = 3
_LEAST_PRECISION = 1e-2
_NEARBY = 40
_FIRST_STEP, _ACCEPTED, _SCALED = 0.3, 0.7, 0.6
_DRAWS = "draws (hmc)"
_DIVERGENT_NATS = 1000.0
_STEADY = 20.0
"""Draws that a scale of 1 counts as."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mode of the unconstrained parameters, and directions (columns), each one standard deviation long."""

    mode: FloatArray
    directions: FloatArray

    def points(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw parameters, (n, parameter)."""
        return self.mode + rng.normal(size=(n, self.mode.size)) @ self.directions.T


@dataclass(frozen=True, eq=False)
class Walk:
    """Draws (chain, draw, parameter), the acceptance of each proposal, and which diverged, (chain, draw)."""

    points: FloatArray
    acceptance: FloatArray
    diverging: NDArray[np.bool_]


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

    The log-density may have the factors of `spreads` in it once :meth:`learn_spreads` was called.
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

    def density(self, x: FloatArray, *, laplace: bool = True) -> tuple[float, FloatArray]:
        """Log-density and its gradient, with the factors of spreads or without."""
        found, slope = self._density(x)
        value, gradient = float(found), np.array(slope, dtype=float)
        for one, precision in self._precision if laplace else ():
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
    return Gaussian(x, directions)


def nearby_mode(program: Program, gaussian: Gaussian) -> FloatArray:
    """Mode of a program whose data have changed a little, from the Gaussian of what it was."""

    def downhill(z: FloatArray) -> Any:
        value, gradient = program.density(gaussian.mode + gaussian.directions @ z)
        return -value, -(gaussian.directions.T @ gradient)

    options: Any = {"maxiter": _NEARBY, "maxcor": 30, "gtol": 0.03}
    z = minimize(downhill, np.zeros(gaussian.mode.size), jac=True, method="L-BFGS-B", options=options).x
    found: FloatArray = gaussian.mode + gaussian.directions @ z
    return found


def walk(
    program: Program,
    gaussian: Gaussian,
    rng: np.random.Generator,
    *,
    draws: int,
    tune: int,
    chains: int = 4,
    target_accept: float = _ACCEPTED,
) -> Walk:
    """Hamiltonian Monte Carlo from draws of a Gaussian, in its directions, which the warm-up scales."""
    size, total = gaussian.mode.size, tune + draws
    points, acceptance = np.empty((chains, total, size)), np.empty((chains, total))
    diverging = np.zeros((chains, total), dtype=bool)
    directions, step = gaussian.directions, _FIRST_STEP
    last = (gaussian.mode + gaussian.points(chains, rng)) / 2

    def at(z: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = program.density(gaussian.mode + directions @ z, laplace=False)
        return value, directions.T @ gradient

    with stage(_DRAWS, chains * total):
        scaled = round(_SCALED * tune)
        for first, end in ((0, scaled), (scaled, tune), (tune, total)):
            if first == scaled and scaled:
                directions = _rescaled(gaussian, points[:, scaled // 3 : scaled].reshape(-1, size))
            adapting = _StepSize(step, target_accept)
            for chain in range(chains):
                z = np.linalg.solve(directions, last[chain] - gaussian.mode)
                here = at(z)
                for draw in range(first, end):
                    z, here, gain = _path(at, z, here, step if first == tune else adapting.now, rng)
                    chance = float(np.exp(min(0.0, gain)))
                    points[chain, draw], acceptance[chain, draw] = gaussian.mode + directions @ z, chance
                    diverging[chain, draw] = gain < -_DIVERGENT_NATS
                    adapting.learn(chance)
                    advance(_DRAWS)
                last[chain] = gaussian.mode + directions @ z
            step = adapting.mean if first < tune else step
    return Walk(points[:, tune:], acceptance[:, tune:], diverging[:, tune:])


def _rescaled(gaussian: Gaussian, warm: FloatArray) -> FloatArray:
    """Directions as long as the draws of the warm-up say."""
    n = len(warm)
    variance = np.linalg.solve(gaussian.directions, (warm - gaussian.mode).T).var(axis=1)
    found: FloatArray = gaussian.directions * np.sqrt((n * variance + _STEADY) / (n + _STEADY))
    return found


class _StepSize:
    """Dual averaging of the step size (Hoffman and Gelman 2014, with their constants)."""

    def __init__(self, step: float, target: float) -> None:
        self.now, self.mean = step, step
        self._target, self._towards, self._error, self._n = target, np.log(2 * step), 0.0, 0

    def learn(self, chance: float) -> None:
        """Learn from one proposal's acceptance."""
        self._n += 1
        self._error += (self._target - chance - self._error) / (self._n + 10)
        self.now = float(np.exp(self._towards - self._n**0.5 / 0.05 * self._error))
        weight = self._n**-0.75
        self.mean = float(np.exp(weight * np.log(self.now) + (1 - weight) * np.log(self.mean)))


def _path(
    at: Callable[[FloatArray], tuple[float, FloatArray]],
    z: FloatArray,
    here: tuple[float, FloatArray],
    step: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, tuple[float, FloatArray], float]:
    """Follow a path and accept its end or not: the place, log-density and gradient there, and ln acceptance ratio.

    A path takes a random time, at most half a period of a standard normal, so that no direction comes back to its start
    at every draw (Neal 2011).
    """
    momentum = rng.normal(size=z.size)
    energy = here[0] - momentum @ momentum / 2
    y, ahead = z, here
    for _ in range(int(np.ceil(rng.uniform(0, np.pi) / step))):
        momentum = momentum + step / 2 * ahead[1]
        y = y + step * momentum
        ahead = at(y)
        if not ahead[0] > energy - _DIVERGENT_NATS:
            return z, here, -np.inf
        momentum = momentum + step / 2 * ahead[1]
    gain = float(ahead[0] - momentum @ momentum / 2 - energy)
    return (y, ahead, gain) if np.log(rng.random()) < gain else (z, here, gain)


def posterior_of(program: Program, found: Walk, attrs: Mapping[str, str]) -> tuple[InferenceData, list[Any]]:
    """Variables at the draws, and the further tensors draw by draw."""
    chains, n, size = found.points.shape
    values = [program.values(x) for x in found.points.reshape(-1, size)]
    data = {}
    for one in program.variables:
        stacked = np.stack([its[one.name] for its, _ in values])
        dims = program.model.named_vars_to_dims.get(one.name, ())
        labelled = ("chain", "draw", *dims)
        data[one.name] = (
            labelled,
            stacked.reshape(chains, n, *stacked.shape[1:]),
            {"description": attrs.get(one.name, "")},
        )
    used = {dim for dims, *_ in data.values() for dim in dims}
    coords = {dim: np.asarray(values) for dim, values in program.model.coords.items() if dim in used}
    posterior = xr.Dataset(data, {"chain": np.arange(chains), "draw": np.arange(n), **coords})
    stats = {
        "diverging": (("chain", "draw"), found.diverging),
        "acceptance_rate": (("chain", "draw"), found.acceptance),
    }
    groups = {
        "posterior": posterior,
        "sample_stats": xr.Dataset(stats, {name: posterior[name] for name in ("chain", "draw")}),
    }
    return from_groups(groups), [further for _, further in values]
