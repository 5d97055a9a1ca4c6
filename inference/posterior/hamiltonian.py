"""Hamiltonian Monte Carlo in one compiled loop, for a model whose log-density is written out for Numba.

Path lengths are random (Neal 2011), drawn evenly from 0 to 2 :data:`PATH` standard deviations of the posterior: a third
of the cost of NUTS on the participant model, half of whose gradients decide when to turn. The warm-up finds the step
size (Nesterov's dual averaging; Hoffman and Gelman 2014) and, from draws and gradients as nutpie does, every scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, log
from typing import Any, cast

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.models.compiled import compiled

PATH = 2.0
"""Mean length of a path, in standard deviations; effective draws a gradient of the slowest parameter differ little from
1.5 to 4."""

_WINDOWS = ((0.05, 0.5), (0.15, 1.0), (0.3, PATH), (0.55, PATH), (0.9, PATH), (1.0, PATH))
"""Where windows of the warm-up end, as shares of it, and how long paths are there."""
_FIRST_STEP = 0.01
_MOST_STEPS = 1000
_DIVERGENT_NATS = 1000.0
_BLOCK = 20
"""Draws between two looks at whether somebody wants to stop."""
_STEADY = 10.0
"""Draws that a scale of 1 counts as, where a window is short."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Draws of one chain after its warm-up."""

    draws: FloatArray
    stats: Mapping[str, NDArray[Any]]


@compiled
def _path(  # noqa: PLR0917 - Numba takes arguments by place alone
    density: Any,
    arguments: Any,
    x: FloatArray,
    g: FloatArray,
    momentum: FloatArray,
    scale: FloatArray,
    step: float,
    n: int,
) -> float:
    """Follow a path of `n` leapfrog steps, in place; gives the log-density at its end, NaN where it diverged."""
    value = 0.0
    for _ in range(n):
        for i in range(x.size):
            momentum[i] += 0.5 * step * scale[i] * g[i]
            x[i] += step * scale[i] * momentum[i]
        value = density(x, g, *arguments)
        if not np.isfinite(value):
            return np.nan
        for i in range(x.size):
            momentum[i] += 0.5 * step * scale[i] * g[i]
    return value


@compiled
def _walk(  # noqa: PLR0917
    density: Any,
    arguments: Any,
    x: FloatArray,
    scale: FloatArray,
    tuned: FloatArray,
    path: float,
    target: float,
    rng: np.random.Generator,
    draws: FloatArray,
    gradients: FloatArray,
    stats: FloatArray,
) -> None:
    """Fill rows of `draws`; `x` goes on in place. `tuned` is of :func:`_restart`; its first number is -1 once fixed."""
    g = np.empty_like(x)
    value = density(x, g, *arguments)
    y, h, momentum = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    for draw in range(draws.shape[0]):
        step = exp(tuned[1])
        n = min(max(1, int(np.ceil(2 * path * rng.random() / step))), _MOST_STEPS)
        energy = -value
        for i in range(x.size):
            momentum[i] = rng.standard_normal()
            energy += 0.5 * momentum[i] ** 2
            y[i], h[i] = x[i], g[i]
        found = _path(density, arguments, y, h, momentum, scale, step, n)
        lost = -found - energy
        for i in range(x.size):
            lost += 0.5 * momentum[i] ** 2
        diverged = not lost < _DIVERGENT_NATS
        accepted = 0.0 if diverged else exp(min(0.0, -lost))
        if rng.random() < accepted:
            value, energy = found, energy + lost
            for i in range(x.size):
                x[i], g[i] = y[i], h[i]
        draws[draw] = x
        gradients[draw] = g
        stats[draw, 0], stats[draw, 1], stats[draw, 2] = value, energy, accepted
        stats[draw, 3], stats[draw, 4], stats[draw, 5] = step, n, diverged
        if tuned[0] >= 0:
            tuned[0] += 1
            m = tuned[0]
            tuned[3] += (target - accepted - tuned[3]) / (m + 10)
            tuned[1] = tuned[4] - m**0.5 / 0.05 * tuned[3]
            tuned[2] += m**-0.75 * (tuned[1] - tuned[2])


_STATS = ("lp", "energy", "acceptance_rate", "step_size", "n_steps", "diverging")


def _restart(step: float) -> FloatArray:
    """State of dual averaging: draws seen, ln step, its running mean, mean error of the acceptance, ln of ten steps."""
    return np.array([0.0, log(step), log(step), 0.0, log(10 * step)])


def chain(
    density: Callable[..., float],
    arguments: tuple[Any, ...],
    start: FloatArray,
    *,
    draws: int,
    tune: int,
    target_accept: float,
    rng: np.random.Generator,
    tell: Callable[[int], None],
) -> Chain:
    """Draw one chain."""
    x = np.array(start, dtype=float)
    if not np.isfinite(density(x, np.empty_like(x), *arguments)):
        raise InputError("is not a finite number where a chain starts", source="model", field="log-density")
    scale, step = np.ones_like(x), _FIRST_STEP
    done = 0

    program = _program(density, arguments, rng)

    def walked(
        n: int, tuned: FloatArray, path: float, *, settled: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        nonlocal done
        made, stats = np.empty((n, x.size)), np.zeros((n, len(_STATS)))
        # after the warm-up nobody asks for gradients, which take as much memory as the draws
        gradients = np.empty((min(n, _BLOCK) if settled else n, x.size))
        for first in range(0, n, _BLOCK):
            tell(done)
            part = slice(first, min(first + _BLOCK, n))
            into = gradients[: part.stop - first] if settled else gradients[part]
            program(density, arguments, x, scale, tuned, path, target_accept, rng, made[part], into, stats[part])
            done += part.stop - first
        tell(done)
        return made, gradients, stats

    before = 0
    for share, path in _WINDOWS:
        end = round(share * tune)
        if end == before:
            continue
        tuned = _restart(step)
        made, gradients, _ = walked(end - before, tuned, path)
        step = exp(tuned[2])
        if share < 1:
            settled = slice(made.shape[0] // 4, None)
            scale = _scale(made[settled], gradients[settled])
        before = end
    fixed = _restart(step)
    fixed[0] = -1
    made, _, stats = walked(draws, fixed, PATH, settled=True)
    by_name: dict[str, NDArray[Any]] = dict(zip(_STATS, stats.T, strict=True))
    by_name["n_steps"] = by_name["n_steps"].astype(np.int64)
    by_name["diverging"] = by_name["diverging"].astype(bool)
    return Chain(made, by_name)


def _program(density: Any, arguments: tuple[Any, ...], rng: np.random.Generator) -> Callable[..., None]:
    """Compile :func:`_walk` with densities given by address: as constants, each would need another program on disk."""
    vector, matrix, taken = types.float64[::1], types.float64[:, ::1], typeof(arguments)
    call = types.float64(vector, vector, *taken.types)
    density.compile(call.args)
    number = types.float64
    found: Callable[..., None] = cast("Any", _walk).compile(
        (
            *(types.FunctionType(call), taken, vector, vector, vector, number, number),
            *(typeof(rng), matrix, matrix, matrix),
        )
    )
    return found


def _scale(draws: FloatArray, gradients: FloatArray) -> FloatArray:
    """Scale of every parameter: for a normal, the variance is that of the draws and one over that of the gradients."""
    n = draws.shape[0]
    variance = np.sqrt((draws.var(axis=0) + 1e-10) / (gradients.var(axis=0) + 1e-10))
    weight = n / (n + _STEADY)
    found: FloatArray = np.sqrt(np.exp(weight * np.log(variance)))
    return found
