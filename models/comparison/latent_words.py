r"""Log-likelihood of a comparison study given what all items share, its words' log-ratios summed out on grids.

An item's words have latent log-ratios e and its target t. Reports compare e with t, free answers say how large
:math:`g e^{e}` is beside the sum Z over the vocabulary, so that given t and a Gamma variable the words are independent:

.. math:: Z^{-n} = \frac{1}{\Gamma(n)} \int_0^\infty \lambda^{n - 1} e^{-\lambda Z} \, d\lambda, \qquad
          e^{-\lambda Z} = \prod_x e^{-\lambda g(x) e^{e_x}}

for n free answers: the multinomial is exact, every word of the vocabulary is in it, and the belief sums to one. An item
is then a sum over the grids of t and :math:`\ln \lambda` of a product over words of sums over the grid of e.

A word here is a token of :class:`~shannon_game.models.comparison.participant_data.ParticipantData`. In loops q is an
item, x a word; z, i and j are places on the grids of ln lambda, t and e.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op
from scipy.special import ndtr

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.models.compiled import compiled

_END, _CELLS = 8.0, 4096
_AT = np.linspace(-_END, _END, _CELLS + 1)
_CDF = ndtr(_AT)
_PDF = np.exp(-(_AT**2) / 2) / math.sqrt(2 * math.pi)
_PDF[[0, -1]] = 0.0
_PER_UNIT = _CELLS / (2 * _END)
_LEAST = 1e-290
_NEGLIGIBLE = 1e-12
"""Posterior probability of a place below which a report there changes no gradient."""


@dataclass(frozen=True, eq=False)
class Reports:
    """Reports on words, those of one word together; boxes in log-odds of the target.

    ``first`` (word + 1,) says where a word's reports begin; ``log_g_ratio`` is ln g(x)/g(y); ``at_half`` marks boxes
    that hold one half.
    """

    first: IntArray
    participant: IntArray
    low: FloatArray
    high: FloatArray
    log_g_ratio: FloatArray
    at_half: NDArray[np.bool_]
    n_boxes: int


@dataclass(frozen=True, eq=False)
class Words:
    """Words that were compared or answered, by item, and the part of the grid that matters to each.

    ``first`` (item + 1,) says where an item's words begin; ``bin`` is the row of the law; ``e_first``, ``e_size``
    (word,) give its window of the grid of e; ``answers`` holds, from ``answers_first`` on, each word's probability of
    its free answers on the windows of its item's ln lambda and its own e.
    """

    first: IntArray
    bin: IntArray
    e_first: IntArray
    e_size: IntArray
    answers: FloatArray
    answers_first: IntArray


@dataclass(frozen=True, eq=False)
class Items:
    """Windows of an item on the grids of t and of ln lambda, what the grids of e and t begin with, and free answers.

    ``answers`` (item, lambda, t) is what free answers say of the target, as logarithms.
    """

    t_first: IntArray
    t_size: IntArray
    z_first: IntArray
    z_size: IntArray
    e_start: float
    t_start: float
    step: float
    answers: FloatArray


@compiled
def _at(table: FloatArray, z: float) -> float:
    """Value of a table on [-8, 8] between its places, and at its ends beyond them."""
    place = min(max((z + _END) * _PER_UNIT, 0.0), _CELLS - 1e-9)
    i = int(place)
    return table[i] + (place - i) * (table[i + 1] - table[i])  # type: ignore[no-any-return]


@compiled
def _report(out, row, people, reports, ratio, step):  # noqa: PLR0917
    """Probability of one report where the log-ratio is `ratio`, one step less, and so on."""
    slope, bias, noise, lapse, half = people
    _, participant, low, high, _, at_half, n_boxes = reports
    p = participant[row]
    slip = lapse * ((half if at_half[row] else 0.0) + (1 - half) / n_boxes)
    by_step = slope[p] * step / noise[p]
    above = (high[row] - slope[p] * (bias[p] - ratio)) / noise[p]
    below = (low[row] - slope[p] * (bias[p] - ratio)) / noise[p]
    for v in range(out.size):
        out[v] = (1 - lapse) * (_at(_CDF, above - v * by_step) - _at(_CDF, below - v * by_step)) + slip


@compiled
def _report_gradient(shares, chance, row, people, reports, ratio, step, d_slope, d_bias, d_noise, d_slips):  # noqa: PLR0917
    """Add to the gradients what a report of probability `chance` gives; `shares` is the posterior of the log-ratio."""
    slope, bias, noise, lapse, half = people
    _, participant, low, high, _, at_half, n_boxes = reports
    p = participant[row]
    off = bias[p] - ratio
    by_step = slope[p] * step / noise[p]
    first_above, first_below = (high[row] - slope[p] * off) / noise[p], (low[row] - slope[p] * off) / noise[p]
    weights = kept = densities = moved = spread = 0.0
    for v in range(shares.size):
        weight = shares[v] / chance[v]
        above, below = first_above - v * by_step, first_below - v * by_step
        at_high, at_low = _at(_PDF, above), _at(_PDF, below)
        density = weight * (at_low - at_high)
        weights += weight
        kept += shares[v]
        densities += density
        moved += density * v
        spread += weight * (at_low * below - at_high * above)
    inside = (1 - lapse) / noise[p]
    d_slope[p] += inside * (densities * off + moved * step)
    d_bias[p] += inside * densities * slope[p]
    d_noise[p] += inside * spread
    slip = (half if at_half[row] else 0.0) + (1 - half) / n_boxes
    d_slips[0] += (slip * weights - kept) / (1 - lapse)
    d_slips[1] += lapse * ((1.0 if at_half[row] else 0.0) - 1 / n_boxes) * weights


@compiled
def _ends(shares):
    """Begin and end of the places that matter."""
    start, end = 0, shares.size
    while start < end - 1 and shares[start] < _NEGLIGIBLE:
        start += 1
    while start < end - 1 and shares[end - 1] < _NEGLIGIBLE:
        end -= 1
    return start, end


@compiled
def _likelihood(  # noqa: PLR0912, PLR0915, PLR0917
    law, target, quiet, people, words, items, reports, d_law, d_target, d_quiet, d_people, posterior, marginal, backward
):
    """Log-likelihood, and its gradients by the laws of words (bin, e) and targets (item, t), by `quiet` and people.

    `posterior` (item, lambda, t) and `marginal` (word, e), if they have rows, become the posteriors of both and of e.
    Without `backward` gradients by the law of words and by people stay 0.
    """
    d_slope, d_bias, d_noise, d_slips = d_people
    word_first, word_bin, e_first, e_size, answers, answers_first = words
    t_first, t_size, z_first, z_size, e_start, t_start, step, target_answers = items
    report_first, log_g_ratio = reports[0], reports[4]
    most, e_most, t_most, z_most = 1, e_size.max() if e_size.size else 1, t_size.max(), z_size.max()
    for q in range(t_first.size):
        most = max(most, word_first[q + 1] - word_first[q])
    chances = np.empty((most, z_most * e_most))
    product = np.empty((most, e_most + t_most))
    shifted = np.empty((most, e_most * t_most))
    inner = np.empty((most, z_most * t_most))
    d_product = np.empty(e_most + t_most)
    most_rows = 1
    for q in range(t_first.size):
        most_rows = max(most_rows, report_first[word_first[q + 1]] - report_first[word_first[q]])
    report = np.empty((most_rows, e_most + t_most))
    d_law[:] = 0.0
    d_target[:] = 0.0
    d_quiet[:] = 0.0
    posterior[:] = 0.0
    total = 0.0
    for q in range(t_first.size):
        n_t, n_z, z0, t0 = t_size[q], z_size[q], z_first[q], t_first[q]
        first, n_words = word_first[q], word_first[q + 1] - word_first[q]
        joint = np.empty((n_z, n_t))
        for z in range(n_z):
            for i in range(n_t):
                joint[z, i] = target[q, t0 + i] + target_answers[q, z0 + z, t0 + i] + quiet[q, z0 + z]
        top = joint.max()
        joint = np.exp(joint - top)
        total += top
        for k in range(n_words):
            x = first + k
            n_e, e0, a0 = e_size[x], e_first[x], answers_first[x]
            chance = chances[k, : n_z * n_e].reshape(n_z, n_e)
            for z in range(n_z):
                for j in range(n_e):
                    chance[z, j] = law[word_bin[x], e0 + j] * answers[a0 + z * n_e + j]
            f = inner[k, : n_z * n_t].reshape(n_z, n_t)
            if report_first[x + 1] == report_first[x]:
                for z in range(n_z):
                    f[z, :] = chance[z].sum()
            else:
                # place v of the product is where e is (n_e - 1 - v) steps above its window's start, t at its start
                n_v = n_e + n_t - 1
                product[k, :n_v] = 1.0
                ratio = e_start - t_start + (e0 + n_e - 1 - t0) * step
                for row in range(report_first[x], report_first[x + 1]):
                    one = report[row - report_first[first], :n_v]
                    _report(one, row, people, reports, ratio + log_g_ratio[row], step)
                    product[k, :n_v] *= one
                matrix = shifted[k, : n_e * n_t].reshape(n_e, n_t)
                for j in range(n_e):
                    matrix[j] = product[k, n_e - 1 - j : n_e - 1 - j + n_t]
                np.dot(chance, matrix, f)
            f += _LEAST
            joint *= f
            largest = joint.max()
            total += math.log(largest)
            joint /= largest
        mass = joint.sum()
        total += math.log(mass)
        joint /= mass
        for z in range(n_z):
            for i in range(n_t):
                d_target[q, t0 + i] += joint[z, i]
                d_quiet[q, z0 + z] += joint[z, i]
        if posterior.shape[0]:
            posterior[q, z0 : z0 + n_z, t0 : t0 + n_t] = joint
        for k in range(n_words if backward else 0):
            x = first + k
            n_e, e0, a0 = e_size[x], e_first[x], answers_first[x]
            chance = chances[k, : n_z * n_e].reshape(n_z, n_e)
            f = inner[k, : n_z * n_t].reshape(n_z, n_t)
            ahead = joint / f
            if report_first[x + 1] == report_first[x]:
                by_chance = np.empty((n_z, n_e))
                for z in range(n_z):
                    by_chance[z, :] = ahead[z].sum()
            else:
                matrix = shifted[k, : n_e * n_t].reshape(n_e, n_t)
                by_chance = np.dot(ahead, matrix.T)
                by_matrix = np.dot(chance.T, ahead)
                n_v = n_e + n_t - 1
                d_product[:n_v] = 0.0
                for j in range(n_e):
                    d_product[n_e - 1 - j : n_e - 1 - j + n_t] += by_matrix[j]
                ratio = e_start - t_start + (e0 + n_e - 1 - t0) * step
                shares = d_product[:n_v] * product[k, :n_v]
                start, end = _ends(shares)
                for row in range(report_first[x], report_first[x + 1]):
                    _report_gradient(
                        shares[start:end],
                        report[row - report_first[first], start:end],
                        row,
                        people,
                        reports,
                        ratio + log_g_ratio[row] - start * step,
                        step,
                        d_slope,
                        d_bias,
                        d_noise,
                        d_slips,
                    )
            for z in range(n_z):
                for j in range(n_e):
                    d_law[word_bin[x], e0 + j] += by_chance[z, j] * answers[a0 + z * n_e + j]
                    if marginal.shape[0]:
                        marginal[x, e0 + j] += by_chance[z, j] * chance[z, j]
    return total


@compiled
def _pick(weight: Any, total: float) -> int:
    u, below = np.random.random() * total, 0.0  # noqa: NPY002 - what Numba has
    for i in range(weight.size):
        below += weight[i]
        if below >= u:
            return i
    return int(weight.size - 1)


@compiled
def _draw(law, posterior, people, words, items, reports, seed, t_place, z_place, e_place):  # noqa: PLR0917
    """Draw places of t and ln lambda of every item, and of e of every word, from their posterior."""
    np.random.seed(seed)  # noqa: NPY002
    word_first, word_bin, e_first, e_size, answers, answers_first = words
    t_first, t_size, z_first, z_size, e_start, t_start, step, _ = items
    report_first, log_g_ratio = reports[0], reports[4]
    largest = e_size.max() if e_size.size else 1
    one, mass = np.empty(largest), np.empty(largest)
    for q in range(t_first.size):
        n_t, n_z = t_size[q], z_size[q]
        own = posterior[q, z_first[q] : z_first[q] + n_z, t_first[q] : t_first[q] + n_t].copy().ravel()
        place = _pick(own, own.sum())
        z, i = place // n_t, place % n_t
        t_place[q], z_place[q] = t_first[q] + i, z_first[q] + z
        for x in range(word_first[q], word_first[q + 1]):
            n_e, e0, a0 = e_size[x], e_first[x], answers_first[x] + z * e_size[x]
            for j in range(n_e):
                mass[j] = law[word_bin[x], e0 + j] * answers[a0 + j]
            ratio = e_start - t_start + (e0 + n_e - 1 - t_place[q]) * step
            for row in range(report_first[x], report_first[x + 1]):
                _report(one[:n_e], row, people, reports, ratio + log_g_ratio[row], step)
                for j in range(n_e):
                    mass[j] *= one[n_e - 1 - j]
            e_place[x] = e0 + _pick(mass[:n_e], mass[:n_e].sum())


def _parts(data: Any) -> tuple[Any, ...]:
    return tuple(getattr(data, name) for name in data.__dataclass_fields__)


class LatentWords(Op):
    """The log-likelihood as an operation, whose windows can be moved; its further outputs are the gradients."""

    def __init__(self, words: Words, items: Items, reports: Reports) -> None:
        self.words, self.items, self.reports = words, items, reports

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """Laws of words and (as logarithms) targets, ln P(nobody answered another word), people's slope, ..., half."""
        given = [pt.as_tensor(x, dtype="float64") for x in inputs]
        return Apply(self, given, [pt.dscalar(), *[x.type() for x in given[:6]], pt.dvector()])

    def values(
        self,
        law: Any,
        target: Any,
        quiet: Any,
        *people: Any,
        posterior: FloatArray | None = None,
        marginal: FloatArray | None = None,
        backward: bool = True,
    ) -> tuple[Any, ...]:
        """Log-likelihood and gradients by law, target, quiet, slope, bias, noise, (lapse, half)."""
        given = [np.ascontiguousarray(x) for x in (law, target, quiet)]
        d_given: Any = [np.empty_like(x) for x in given]
        d_people = (*(np.zeros(np.shape(x)) for x in people[:3]), np.zeros(2))
        total = _likelihood(  # type: ignore[call-arg]
            *given,
            _plain(people),
            _parts(self.words),
            _parts(self.items),
            _parts(self.reports),
            *d_given,
            d_people,
            np.empty((0, 0, 0)) if posterior is None else posterior,
            np.empty((0, 0)) if marginal is None else marginal,
            backward,
        )
        return total, *d_given, *d_people

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:  # noqa: ARG002
        """Compute."""
        for cell, value in zip(output_storage, self.values(*inputs), strict=True):
            cell[0] = np.asarray(value, dtype=float)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable[Any, Any]]:  # noqa: ARG002
        """Give the gradients of the first output."""
        by = cotangents[0]
        return [*(by * out for out in outputs[1:7]), by * outputs[7][0], by * outputs[7][1]]

    L_op = pullback  # type: ignore[assignment]


def _plain(people: Any) -> tuple[Any, ...]:
    slope, bias, noise, lapse, half = people
    return *(np.ascontiguousarray(x, dtype=float) for x in (slope, bias, noise)), float(lapse), float(half)


def draw_words(op: LatentWords, inputs: list[Any], seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Draw the grid places of every item's t and ln lambda and of every word's e, given what all share."""
    n_items = op.items.t_first.size
    t, z, e = (np.empty(n, dtype=np.intp) for n in (n_items, n_items, op.words.bin.size))
    posterior = np.empty(op.items.answers.shape)
    op.values(*inputs, posterior=posterior, backward=False)
    parts = (_parts(op.words), _parts(op.items), _parts(op.reports))
    _draw(np.ascontiguousarray(inputs[0]), posterior, _plain(inputs[3:]), *parts, seed, t, z, e)
    return t, z, e
