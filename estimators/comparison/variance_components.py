r"""Restricted maximum likelihood for variances of effects that lie within blocks, such as people and tokens of an item.

.. math:: d = X\beta + \sum_j Z_j e_j, \qquad \mathrm{Var}(e_j) = \theta_j I, \qquad V = \sum_j \theta_j Z_j Z_j^\top

Every :math:`Z_j` is block-diagonal, so that :math:`V^{-1}` is, too, while fixed effects X may cross blocks. With
:math:`P = V^{-1} - V^{-1} X (X^\top V^{-1} X)^{-1} X^\top V^{-1}` every step solves

.. math:: \sum_k \mathrm{tr}(Z_j^\top P Z_k Z_k^\top P Z_j)\, \theta_k = |Z_j^\top P d|^2 .

One step is MINQUE (C. R. Rao 1971), unbiased whatever the distribution; its fixed point is REML.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.errors import InputError

_TOLERANCE = 1e-3  # of the largest variance
_LEAST = 0.02  # of the last variance, beside the largest, in the weights
_DEPENDENT = 1e-8


def variance_components(
    values: FloatArray,
    fixed: FloatArray,
    effects: Sequence[tuple[FloatArray, IntArray]],
    block: IntArray,
    *,
    start: FloatArray | None = None,
    max_steps: int = 20,
) -> FloatArray:
    """Estimate variances of effects."""
    columns = fixed / np.maximum(np.sqrt((fixed**2).sum(axis=0)), np.finfo(float).tiny)
    size, turned = np.linalg.eigh(columns.T @ columns)
    kept = size > _DEPENDENT * size[-1]
    x: FloatArray = columns @ (turned[:, kept] / np.sqrt(size[kept]))
    row = np.arange(values.size)
    z = [sparse.csr_array((weight, (row, number))) for weight, number in effects]
    edges = np.flatnonzero(np.diff(block, prepend=block[0] - 1, append=block[-1] + 1))
    parts = [slice(low, high) for low, high in pairwise(edges.tolist())]
    # of Z Z', an effect after the other
    blocks = [
        [(number[part, None] == number[part]) * np.outer(weight[part], weight[part]) for weight, number in effects]
        for part in parts
    ]
    theta = np.array([*np.zeros(len(z) - 1), 1.0]) if start is None else start
    for _ in range(max_steps):
        found = _step(values, x, z, blocks, theta)
        moved, theta = np.abs(found - theta).max(), found
        if moved <= _TOLERANCE * np.abs(found).max():
            break
    return theta


def _step(values: FloatArray, x: FloatArray, z: Sequence[Any], blocks: Sequence[Any], theta: FloatArray) -> FloatArray:
    """One step, with weights of the variances `theta`."""
    weight = np.maximum(theta, 0)
    weight[-1] = max(weight[-1], _LEAST * weight.max())
    inverse: Any = sparse.block_diag(
        [
            sparse.coo_array(np.linalg.inv(sum(w * part for w, part in zip(weight, each, strict=True))))
            for each in blocks
        ],
        format="csr",
    )
    vx = inverse @ x
    root = np.linalg.cholesky(x.T @ vx)
    w = np.linalg.solve(root, vx.T).T
    left = inverse @ values - w @ (w.T @ values)
    square = np.array([np.sum((each.T @ left) ** 2) for each in z])
    vz, wz = [inverse @ each for each in z], [each.T @ w for each in z]
    trace = np.empty((len(z), len(z)))
    for a in range(len(z)):
        for b in range(a, len(z)):
            s, pa, pb = z[a].T @ vz[b], wz[a], wz[b]
            # |S - A B'|^2 without the dense product
            trace[a, b] = s.multiply(s).sum() - 2 * np.sum((s @ pb) * pa) + np.sum((pa.T @ pa) * (pb.T @ pb))
            trace[b, a] = trace[a, b]
    scale = np.sqrt(np.diag(trace))
    if not (scale > 0).all() or np.linalg.cond(trace / np.outer(scale, scale)) > 1 / _DEPENDENT:
        raise InputError("cannot be told from each other by these answers", source="variances", field="effects")
    return np.linalg.solve(trace, square)
