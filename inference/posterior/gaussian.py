r"""A posterior's mode, the Gaussian around it, and Hamiltonian Monte Carlo that moves exactly on the Gaussian.

For models of a hundred parameters whose likelihood takes milliseconds. With PyMC's own diagonal metric NUTS takes
hundreds of gradients a draw on the participant model, with the Gaussian's covariance eight. A trajectory of a quarter
of the Gaussian's period forgets where it began. Where only what differs from the Gaussian takes steps (Shahbaba and
others 2014, *Statistics and Computing* 24, 339) three or four gradients are a draw.

The mode of a joint posterior is no good place for the spread of parameters that are alike (a ``Spread``): with n of
them, each known with precision :math:`\lambda_i` from the data, the density of the spread s alone is about

.. math:: p(s) \, \max_b p(b, \ldots \mid s) \prod_i (s^{-2} + \lambda_i)^{-1/2},

where the last factor keeps the mode away from s = 0 (Laplace's approximation). Only the search for the mode has it,
from its beginning: a search that came near s = 0 explains unusual members by other parameters, and stays there.

All scales are known, so that the step hardly needs tuning. For normal parameters an acceptance a takes steps in
proportion to :math:`(\Phi^{-1}(1 - a/2))^{1/2} n^{-1/4}` (Beskos and others 2013,
*Bernoulli* 19, 1501).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
from pymc.blocking import DictToArrayBijection, RaveledVars
from scipy.optimize import minimize
from scipy.stats import norm

from shannon_game.estimators.arrays import FloatArray
from shannon_game.inference.posterior.arviz_adapter import InferenceData, from_draws
from shannon_game.inference.posterior.compiler import QUICK
from shannon_game.inference.posterior.sampling import whole_or_not_at_all
from shannon_game.inference.progress import advance, stage
from shannon_game.models.outside import Spread

_STEP = 1e-3
_LEAST_PRECISION = 1e-2
_ROUNDS = 60, 300
"""Most steps of a round of the search, the first and further ones."""
_DRAWS = "draws"
_QUARTER = np.pi / 2
_JITTER = 0.1
_DIVERGED = 1e3
_JUDGED = 16
"""Trajectories by which the number of steps is judged, and after earlier draws the least that are not kept."""
_LEAST_SEEN = 0.05
"""Least acceptance from which the number of steps follows: at most some three times as many at once."""
_STATS = ("lp", "energy", "energy_error", "diverging", "acceptance_rate", "n_steps")
_STEP_SCALE = 2.75
"""Measured on studies of the participant model, of some 125 parameters."""


_Place = tuple[FloatArray, float, FloatArray]
"""Parameters, minus the log-density there, and its gradient."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mode of the unconstrained parameters, and directions (columns), each one standard deviation long."""

    mode: FloatArray
    directions: FloatArray

    def points(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw parameters, (n, parameter)."""
        return self.mode + rng.normal(size=(n, self.mode.size)) @ self.directions.T

    def wider(self, points: FloatArray) -> Gaussian:
        """Move and stretch it along directions in which draws (draw, parameter) are wider than chance makes them."""
        z = np.linalg.solve(self.directions, (points - self.mode).T)
        value, vectors = np.linalg.eigh(np.atleast_2d(np.cov(z)))
        # eigenvalues of independent draws are below the first factor (Marchenko and Pastur)
        wide = value > (1 + np.sqrt(len(z) / z.shape[1])) ** 2 * 1.5
        stretch = vectors * np.where(wide, np.sqrt(value.clip(1)), 1) @ vectors.T
        off = vectors[:, wide] @ (vectors[:, wide].T @ z.mean(axis=1))
        return Gaussian(self.mode + self.directions @ off, self.directions @ stretch)


class Program:
    """A model compiled: its log-density with gradient, and its variables, at unconstrained parameters.

    The log-density may have the factors of `spreads` in it once :meth:`learn_spreads` was called. `held_by` is whose
    data the model holds, where several fits take turns.
    """

    def __init__(
        self, model: pm.Model, wanted: Mapping[str, Any] | None = None, spreads: Sequence[Spread] = ()
    ) -> None:
        self.model = model
        self._spreads = spreads
        self.held_by: Any = None
        self.precision: list[tuple[Spread, FloatArray]] = []
        start = model.initial_point()
        with stage("compiling"):
            self.logp = model.logp_dlogp_function(ravel_inputs=True, mode=QUICK)
            self.logp.set_extra_values({})
            raveled = DictToArrayBijection.map({v.name: start[v.name] for v in self.logp._grad_vars})
            self.start: FloatArray = np.asarray(raveled.data, dtype=float)
            self.logp(self.start)  # Numba compiles what is called
        self._layout = raveled.point_map_info
        self.variables = [*model.free_RVs, *model.deterministics]
        self._wanted = dict(wanted or {})

    def compiled(self, outputs: Sequence[Any], inputs: Sequence[Any]) -> Any:
        """Compile what depends on free variables of the model, or on their unconstrained twins."""
        how: Any = {"on_unused_input": "ignore", "point_fn": False, "mode": QUICK}
        return self.model.compile_fn([*outputs], inputs=[*inputs], **how)

    @cached_property
    def _values(self) -> Any:
        return self.compiled(self.model.replace_rvs_by_values(self.variables), self.model.value_vars)

    @cached_property
    def _of_wanted(self) -> Any:
        return self.compiled(self.model.replace_rvs_by_values([*self._wanted.values()]), self.model.value_vars)

    @cached_property
    def _unconstrained(self) -> Any:
        ways = self.model.rvs_to_transforms
        found = [one if ways[one] is None else ways[one].forward(one, *one.owner.inputs) for one in self.model.free_RVs]
        return self.compiled(found, self.model.free_RVs)

    def at(self, values: Mapping[Any, Any]) -> FloatArray:
        """Unconstrained parameters of values of the model's free variables."""
        found = self._unconstrained(*(np.asarray(values[one.name]) for one in self.model.free_RVs))
        by_name = {one.name: value for one, value in zip(self.model.value_vars, found, strict=True)}
        return np.concatenate([np.ravel(by_name[name]) for name, *_ in self._layout]).astype(float)

    def posterior(self, x: FloatArray, stats: Mapping[str, FloatArray]) -> InferenceData:
        """Draws of the model's variables at unconstrained parameters (chain, draw, parameter), and statistics."""
        found = [self.values(one) for one in x.reshape(-1, x.shape[-1])]
        every = {name: np.stack([each[name] for each in found]) for name in found[0]}
        draws = {name: values.reshape(*x.shape[:2], *values.shape[1:]) for name, values in every.items()}
        return from_draws(self.model, draws, {**stats, "diverging": stats["diverging"] > 0})

    def density(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Log-density and its gradient, with the factors of spreads."""
        found, slope = self.logp(x)
        value, gradient = float(found), np.array(slope, dtype=float)
        for one, precision in self.precision:
            at = self._places[one.log_sd]
            own = np.exp(2 * float(x[at][0])) * precision
            value -= 0.5 * float(np.log1p(own).sum())
            gradient[at] -= (own / (1 + own)).sum()
            if one.centred:
                value += own.size * float(x[at][0])
                gradient[at] += own.size
        return value, gradient

    def curvature(self, x: FloatArray) -> FloatArray:
        """Second derivatives of minus the log-density, (parameter, parameter)."""
        gradient = self.density(x)[1]
        found = np.stack([gradient - self.density(x + step)[1] for step in _STEP * np.eye(x.size)]) / _STEP
        symmetric: FloatArray = (found + found.T) / 2
        return symmetric

    def learn_spreads(self, x: FloatArray, curvature: FloatArray) -> None:
        """Take the precision with which data know the parameters that are alike from the curvature at x."""
        self.precision = []
        for one in self._spreads:
            if one.log_sd in self._places:
                at = self._places[one.members]
                sd2 = float(np.exp(2 * x[self._places[one.log_sd]][0]))
                prior = 1 / sd2 if one.centred else 1.0
                data = np.maximum(np.linalg.eigvalsh(curvature[at, at]) - prior, 0)
                self.precision.append((one, data if one.centred else data / sd2))

    @cached_property
    def _places(self) -> dict[str, slice]:
        ends = np.cumsum([size for *_, size, _ in self._layout])
        return {name: slice(end - size, end) for (name, _, size, _), end in zip(self._layout, ends, strict=True)}

    def wanted(self, x: FloatArray) -> list[FloatArray]:
        """Give the further tensors."""
        return [np.asarray(value, dtype=float) for value in self._of_wanted(*self._inputs(x))]

    def values(self, x: FloatArray) -> dict[str, FloatArray]:
        """Values of the model's variables by name."""
        found = self._values(*self._inputs(x))
        return {one.name: np.asarray(value, dtype=float) for one, value in zip(self.variables, found, strict=True)}

    def _inputs(self, x: FloatArray) -> list[Any]:
        point = DictToArrayBijection.rmap(RaveledVars(x, self._layout))
        return [point[one.name] for one in self.model.value_vars]


def fit_gaussian(
    program: Program, *, near: Gaussian | None = None, before: Callable[[FloatArray], None] | None = None
) -> Gaussian:
    """Find the mode, and the Gaussian that has the curvature of the log-density there.

    The search begins at `near`, the Gaussian of a model that is much alike, in its directions, or in rounds at the
    model's own start; `before` is called with the parameters before every round, to adapt the program to where it is.
    """
    adapt = before or (lambda _: None)
    found = near or Gaussian(program.start, np.eye(program.start.size))
    for n_steps in _ROUNDS if near is None else _ROUNDS[1:]:
        adapt(found.mode)
        if near is None:
            curvature = program.curvature(found.mode)
            program.learn_spreads(found.mode, curvature)
            found = Gaussian(found.mode, _directions(curvature))
        found = Gaussian(nearby_mode(program, found, n_steps), found.directions)
    adapt(found.mode)
    x = nearby_mode(program, found, _ROUNDS[1])
    return Gaussian(x, _directions(program.curvature(x)))


def _directions(precision: FloatArray) -> FloatArray:
    value, vectors = np.linalg.eigh(precision)
    found: FloatArray = vectors / np.sqrt(np.maximum(np.abs(value), _LEAST_PRECISION))
    return found


def nearby_mode(program: Program, gaussian: Gaussian, n_steps: int = 40) -> FloatArray:
    """Find the mode of a program from the Gaussian of one that is much alike, in its directions."""

    def downhill(z: FloatArray) -> Any:
        value, gradient = program.density(gaussian.mode + gaussian.directions @ z)
        return (-value, -(gaussian.directions.T @ gradient)) if np.isfinite(value) else (1e10, np.zeros_like(z))

    options: Any = {"maxiter": n_steps, "maxcor": 30, "gtol": 0.03}
    z = minimize(downhill, np.zeros(gaussian.mode.size), jac=True, method="L-BFGS-B", options=options).x
    found: FloatArray = gaussian.mode + gaussian.directions @ z
    return found


def trajectories(
    program: Program,
    gaussian: Gaussian,
    rng: np.random.Generator,
    *,
    draws: int,
    tune: int,
    chains: int = 4,
    target_accept: float = 0.8,
    after: FloatArray | None = None,
) -> InferenceData:
    """Hamiltonian Monte Carlo from draws of a Gaussian or ends of chains, whose part of the motion is exact.

    Draws `after` others (chain, draw, parameter) take from these in which directions the Gaussian is too narrow. While
    chains are tuned steps are made shorter where fewer trajectories are accepted than are aimed at.
    """
    n = gaussian.mode.size
    z = rng.normal(size=(chains, n)) / 2
    if after is not None:
        gaussian = gaussian.wider(after.reshape(-1, n))
        z = np.asarray(np.linalg.solve(gaussian.directions, (after[:, -1] - gaussian.mode).T).T, dtype=float)
        tune = max(tune, -(-_JUDGED // chains))
    directions = gaussian.directions

    def potential(at: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = program.logp(gaussian.mode + directions @ at)
        return -float(value), -(directions.T @ np.asarray(gradient))

    aim = float(norm.isf(target_accept / 2))
    n_steps = int(np.ceil(_QUARTER / (_STEP_SCALE * np.sqrt(aim) * n**-0.25)))
    state = [(at, *potential(at)) for at in z]
    x, stats = np.empty((chains, draws, n)), np.zeros((len(_STATS), chains, draws))
    accepted: list[float] = []
    with stage(_DRAWS, chains * (tune + draws)), whole_or_not_at_all() as go_on:
        for number in range(-tune, draws):
            for chain in range(chains):
                momentum = rng.normal(size=n)
                step = _QUARTER / n_steps * (1 + _JITTER * rng.uniform(-1, 1))
                end, moved = _motion(potential, state[chain], momentum, step, n_steps)
                energy = state[chain][1] + momentum @ momentum / 2
                error = end[1] + moved @ moved / 2 - energy
                diverged = not error < _DIVERGED
                accept = 0.0 if diverged else min(1.0, float(np.exp(-error)))
                if rng.random() < accept:
                    state[chain] = end
                    energy += error
                if number >= 0:
                    x[chain, number] = gaussian.mode + directions @ state[chain][0]
                    stats[:, chain, number] = -state[chain][1], energy, error, diverged, accept, n_steps
                accepted.append(accept)
                go_on()
                advance(_DRAWS)
            if number < 0 and len(accepted) >= _JUDGED:
                seen = float(norm.isf(max(float(np.mean(accepted)), _LEAST_SEEN) / 2))
                n_steps, accepted = round(n_steps * max(1.0, float(np.sqrt(seen / aim)))), []
    return program.posterior(x, dict(zip(_STATS, stats, strict=True)))


def _motion(
    potential: Callable[[FloatArray], tuple[float, FloatArray]], start: _Place, p: FloatArray, step: float, n_steps: int
) -> tuple[_Place, FloatArray]:
    """Turn by the Gaussian's exact motion between kicks by what the density differs (Shahbaba and others 2014)."""
    z, value, slope = start
    cosine, sine, most = np.cos(step), np.sin(step), value + p @ p / 2 + _DIVERGED
    for _ in range(n_steps):
        p = p - step / 2 * (slope - z)
        z, p = cosine * z + sine * p, cosine * p - sine * z
        value, slope = potential(z)
        p = p - step / 2 * (slope - z)
        if not value < most:
            break
    return (z, value, slope), p
