r"""A posterior's mode, the Gaussian around it, and PyMC's NUTS with the Gaussian's covariance as its metric.

For models of a hundred parameters whose likelihood takes milliseconds. With PyMC's own diagonal metric NUTS takes
hundreds of gradients a draw on the participant model, with this one seven.

The mode of a joint posterior is no good place for the spread of parameters that are alike (a ``Spread``): with n of
them, each known with precision :math:`\lambda_i` from the data, the density of the spread s alone is about

.. math:: p(s) \, \max_b p(b, \ldots \mid s) \prod_i (s^{-2} + \lambda_i)^{-1/2},

where the last factor keeps the mode away from s = 0 (Laplace's approximation). Only the search for the mode has it,
from its beginning: a search that came near s = 0 explains unusual members by other parameters, and stays there.

In the metric of the covariance all scales are known, so that the step is not adapted. For normal parameters an
acceptance a takes steps in proportion to :math:`(\Phi^{-1}(1 - a/2))^{1/2} n^{-1/4}` (Beskos and others 2013,
*Bernoulli* 19, 1501).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.step_methods.hmc.quadpotential import QuadPotentialFull
from pytensor.compile.mode import Mode
from scipy.optimize import minimize
from scipy.stats import norm

from shannon_game.estimators.arrays import FloatArray
from shannon_game.inference.posterior.arviz_adapter import InferenceData
from shannon_game.inference.posterior.sampling import whole_or_not_at_all
from shannon_game.inference.progress import advance, stage
from shannon_game.models.outside import Spread

QUICK = Mode("cvm", "fast_compile")
"""Compiles in half of the time; for what is called at every draw."""
OFTEN = Mode("cvm", "fast_run").excluding("fusion")  # type: ignore[no-untyped-call]
"""For the log-density, called some thousand times: a gradient of the participant model takes 6.0 ms, with QUICK 7.6."""
_STEP = 1e-3
_LEAST_PRECISION = 1e-2
_ROUNDS = 60, 300
"""Most steps of a round of the search, the first and further ones."""
_DRAWS = "draws"
_DEPTH = 3
"""Of trees of steps: seven of them are half a period of the Gaussian, beyond which a trajectory turns back."""
_LONGEST = np.pi / (2**_DEPTH - 1)
"""Standard deviations of a step with which a tree is half a period long."""
_STEP_SCALE = 2.75
"""Measured on studies of the participant model, of some 125 parameters."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mode of the unconstrained parameters, and directions (columns), each one standard deviation long."""

    mode: FloatArray
    directions: FloatArray

    def points(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw parameters, (n, parameter)."""
        return self.mode + rng.normal(size=(n, self.mode.size)) @ self.directions.T


class Program:
    """A model compiled: its log-density with gradient, and its variables, at unconstrained parameters.

    The log-density may have the factors of `spreads` in it once :meth:`learn_spreads` was called. `held_by` is whose
    data the model holds, where several fits take turns.
    """

    def __init__(
        self,
        model: pm.Model,
        wanted: Mapping[str, Any] | None = None,
        spreads: Sequence[Spread] = (),
        mode: Mode = OFTEN,
    ) -> None:
        self.model = model
        self._spreads = spreads
        self._functions: dict[str, Any] = {}
        self.held_by: Any = None
        self.precision: list[tuple[Spread, FloatArray]] = []
        self.logp = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
        self.logp.set_extra_values({})
        start = model.initial_point()
        raveled = DictToArrayBijection.map({v.name: start[v.name] for v in self.logp._grad_vars})
        self.start: FloatArray = np.asarray(raveled.data, dtype=float)
        self._layout = raveled.point_map_info
        self.variables = [*model.free_RVs, *model.deterministics]
        self._wanted = dict(wanted or {})

    @cached_property
    def _values(self) -> Any:
        outputs = [*self.model.replace_rvs_by_values(self.variables), *self._of_wanted]
        return self.model.compile_fn(
            outputs, inputs=self.model.value_vars, on_unused_input="ignore", point_fn=False, mode=QUICK
        )

    @property
    def _of_wanted(self) -> list[Any]:
        return list(self.model.replace_rvs_by_values(list(self._wanted.values())))

    @cached_property
    def _only_wanted(self) -> Any:
        return self.model.compile_fn(
            self._of_wanted, inputs=self.model.value_vars, on_unused_input="ignore", point_fn=False, mode=QUICK
        )

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
        return [np.asarray(value, dtype=float) for value in self._only_wanted(*self._inputs(x))]

    def values(self, x: FloatArray) -> tuple[dict[str, FloatArray], list[FloatArray]]:
        """Values of the model's variables by name, and of the further tensors."""
        found = [np.asarray(value, dtype=float) for value in self._values(*self._inputs(x))]
        n = len(self.variables)
        return {one.name: value for one, value in zip(self.variables, found[:n], strict=True)}, found[n:]

    def function(self, name: str, outputs: Sequence[Any]) -> Any:
        """Compile once, under a name, what depends on the model's free variables."""
        if name not in self._functions:
            self._functions[name] = self.model.compile_fn(
                [*outputs], inputs=self.model.free_RVs, on_unused_input="ignore", point_fn=False, mode=QUICK
            )
        return self._functions[name]

    def _inputs(self, x: FloatArray) -> list[Any]:
        point = DictToArrayBijection.rmap(RaveledVars(x, self._layout))
        return [point[one.name] for one in self.model.value_vars]


def fit_gaussian(
    program: Program, *, start: FloatArray | None = None, before: Callable[[FloatArray], None] | None = None
) -> Gaussian:
    """Find the mode, and the Gaussian that has the curvature of the log-density there.

    The search begins at `start`, the mode of a model that is much alike, or in more rounds at the model's own; `before`
    is called with the parameters before every round, to adapt the program to where it is.
    """
    adapt = before or (lambda _: None)
    found = Gaussian(program.start if start is None else start, np.eye(program.start.size))
    for n_steps in _ROUNDS if start is None else _ROUNDS[1:]:
        adapt(found.mode)
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


def nuts(
    program: Program,
    gaussian: Gaussian,
    rng: np.random.Generator,
    *,
    draws: int,
    tune: int,
    chains: int = 4,
    cores: int | None = 1,
    target_accept: float = 0.8,
    after: xr.Dataset | None = None,
) -> InferenceData:
    """PyMC's NUTS from draws of a Gaussian or ends of chains, with its covariance as the metric and a step for it."""
    free = [one.name for one in program.model.free_RVs]
    if after is None:
        starts = [program.values(x)[0] for x in (gaussian.mode + gaussian.points(chains, rng)) / 2]
    else:
        starts = [{name: after[name].isel(chain=at, draw=-1).to_numpy() for name in free} for at in range(chains)]
    with stage(_DRAWS, chains * (tune + draws)), whole_or_not_at_all() as go_on, program.model:

        def told(**_: Any) -> None:
            go_on()
            advance(_DRAWS)

        step = pm.NUTS(
            potential=QuadPotentialFull(gaussian.directions @ gaussian.directions.T),
            step_scale=min(_STEP_SCALE * np.sqrt(norm.isf(target_accept / 2)), _LONGEST * gaussian.mode.size**0.25),
            adapt_step_size=False,
            max_treedepth=_DEPTH,
            # compiled once: to compile takes longer than the draws of a small study
            logp_dlogp_func=program.logp,
        )
        return pm.sample(
            draws,
            tune=tune,
            chains=chains,
            cores=cores,
            step=step,
            initvals=[{name: start[name] for name in free} for start in starts],
            random_seed=int(rng.integers(2**31)),
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
            callback=told,
        )
