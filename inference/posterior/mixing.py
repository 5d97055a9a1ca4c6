"""R-hat and effective sample sizes of many numbers at once (Vehtari and others 2021), in the steps of ArviZ.

ArviZ takes one number after the other: a posterior of a thousand numbers took longer to judge than to draw. Here
numbers go through sorting, normal scores and Fourier transforms in blocks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError

_FEWEST_DRAWS = 4
_BLOCK = 400_000
"""Draws that are in hand at once."""
_ALIKE = 1e-15
_TAIL = 0.1


def mixing(draws: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Judge how well chains have mixed, by every number that was drawn."""
    values = np.asarray(draws, dtype=float)
    if values.ndim != 3:
        raise InputError(f"has shape {values.shape}, should be (chain, draw, scalar)", field="draws")
    n_chains, n_draws, n_scalars = values.shape
    found = np.full((3, n_scalars), np.nan)
    if n_draws >= _FEWEST_DRAWS and n_chains > 0:
        usable = np.flatnonzero(~np.isnan(values).any(axis=(0, 1)))
        step = max(1, _BLOCK // (n_chains * n_draws))
        for first in range(0, usable.size, step):
            at = usable[first : first + step]
            found[:, at] = _judged(np.ascontiguousarray(np.moveaxis(values[:, :, at], 2, 0)))
    if n_chains < 2:
        found[0] = np.nan
    return found[0], found[1], found[2]


def _judged(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """R-hat, bulk and tail ESS of (scalar, chain, draw)."""
    split = _split(values)
    n_scalars, _, length = split.shape
    flat = split.reshape(n_scalars, -1)
    # middle of the ranks of a tie, doubled -> normal score
    score = ndtri((np.arange(2 * flat.shape[1] + 1).clip(2) / 2 - 3 / 8) / (flat.shape[1] + 1 / 4))
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    bulk = _scores(ordered, order, score).reshape(split.shape)
    half = ordered.shape[1] // 2
    median = ordered[:, [half - 1, half]].mean(axis=1, keepdims=True)
    # distances from it: both halves are in order already, which the stable sort makes use of
    folded = np.concatenate([median - ordered[:, half - 1 :: -1], ordered[:, half:] - median], axis=1)
    whose = np.concatenate([order[:, half - 1 :: -1], order[:, half:]], axis=1)
    again = np.argsort(folded, axis=1, kind="stable")
    folded = np.take_along_axis(folded, again, axis=1)
    distance = _scores(folded, np.take_along_axis(whose, again, axis=1), score).reshape(split.shape)
    r_hat = np.maximum(_r_hat(bulk), _r_hat(distance))

    # an odd number of draws has a middle one that is in neither half, but in the quantiles
    everything = ordered if 2 * length == values.shape[2] else np.sort(values.reshape(n_scalars, -1), axis=1)
    tails = [
        _ess(_split((values <= _quantile(everything, q)[:, None, None]).astype(float))) for q in (_TAIL, 1 - _TAIL)
    ]
    return r_hat, _ess(bulk), np.minimum(*tails)


def _split(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make two chains of each, (scalar, chain, draw)."""
    half = values.shape[2] // 2
    return np.concatenate([values[:, :, :half], values[:, :, -half:]], axis=1)


def _scores(ordered: FloatArray, order: NDArray[np.intp], score: FloatArray) -> FloatArray:
    """Put the normal scores of sorted values where these came from; ties share the mean of their ranks."""
    is_new = np.ones(ordered.shape, dtype=bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=is_new[:, 1:])
    start = np.flatnonzero(is_new)
    count = np.diff(start, append=ordered.size)
    of_tie = score[2 * (start % ordered.shape[1]) + count + 1]
    found = np.empty_like(ordered)
    np.put_along_axis(found, order, np.repeat(of_tie, count).reshape(ordered.shape), axis=1)
    return found


def _quantile(ordered: FloatArray, q: float) -> FloatArray:
    """Quantile of sorted values, linear between two of them."""
    place = q * (ordered.shape[1] - 1)
    low = min(int(place), ordered.shape[1] - 2)
    found: FloatArray = (1 - (place - low)) * ordered[:, low] + (place - low) * ordered[:, low + 1]
    return found


def _r_hat(values: FloatArray) -> FloatArray:
    """R-hat of (scalar, chain, draw)."""
    length = values.shape[2]
    between = length * values.mean(axis=2).var(axis=1, ddof=1)
    within = values.var(axis=2, ddof=1).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: FloatArray = np.sqrt((between / within + length - 1) / length)
    return found


def _ess(values: FloatArray) -> FloatArray:
    """Effective sample size of (scalar, chain, draw): Geyer's initial monotone sequence."""
    n_chains, length = values.shape[1:]
    n = n_chains * length
    mean = values.mean(axis=2, keepdims=True)
    spectrum = rfft(values - mean, next_fast_len(2 * length, real=True), axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).sum(axis=1)
    covariance = irfft(power, next_fast_len(2 * length, real=True), axis=1)[:, :length] / n
    within = covariance[:, [0]] * length / (length - 1)
    total = within * (length - 1) / length
    if n_chains > 1:
        total += mean[:, :, 0].var(axis=1, ddof=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1 - (within - covariance) / total
    correlation[:, 0] = 1
    # sums of an even lag and the odd one after it, as far as they are positive and there are draws enough
    last = max(0, (length - 3) // 2)
    pair = correlation[:, 0 : 2 * last + 2 : 2] + correlation[:, 1 : 2 * last + 2 : 2]
    ends = ~(pair > 0)
    ends[:, last] = True
    end = ends.argmax(axis=1)
    pair = np.minimum.accumulate(pair, axis=1)
    until = np.cumsum(np.concatenate([np.zeros((len(pair), 1)), pair], axis=1), axis=1)
    row = np.arange(len(pair))
    time = -1 + 2 * until[row, end] + np.maximum(correlation[row, 2 * end], 0)
    found: FloatArray = n / np.maximum(time, 1 / np.log10(n))
    alike = np.ptp(values, axis=(1, 2)) < _ALIKE
    found[alike] = n
    return found
