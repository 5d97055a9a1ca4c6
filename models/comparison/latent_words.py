r"""Log-likelihood of a comparison study given what all items share, its words' log-ratios summed out on grids.

An item's words have latent log-ratios e and its target t. Reports compare e with t, free answers say how large
:math:`g e^{e}` is beside the sum Z over the vocabulary, so that given t and a Gamma variable the words are independent:

.. math:: Z^{-n} = \frac{1}{\Gamma(n)} \int_0^\infty \lambda^{n - 1} e^{-\lambda Z} \, d\lambda, \qquad
          e^{-\lambda Z} = \prod_x e^{-\lambda g(x) e^{e_x}}

for n free answers: the multinomial is exact, every word of the vocabulary is in it, and the belief sums to one. An item
is then a sum over the grids of t and :math:`\ln \lambda` of a product over words of sums over the grid of e.

A word here is a token of :class:`~shannon_game.models.comparison.participant_data.ParticipantData`. In loops q is an
item, x a word; z, i and j are places on the grids of ln lambda, t and e. How a report comes from its log-odds is no
part of it: the probability of every report at every place of its own grid comes in, the gradient by it goes out.

The outputs have leave-one-out probabilities in them. Given what all share, :math:`1/p(r \mid \text{the rest of its
item})` of a report is the posterior mean of the inverse of its probability (a harmonic mean, here a sum over places and
exact), which is the sum of the gradient by that probability. One of n answers with the word x, likewise, has
:math:`1/p = (n - 1)\, E[1 / (\lambda g e^{e_x})]`.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.errors import InputError
from shannon_game.models.compiled import compiled

_LEAST, _LEAST_CHANCE = 1e-290, 1e-30
_SMALL = 1e-10
"""Largest probability of an item's places below which all are scaled: times the least it is still a number."""


@dataclass(frozen=True, eq=False)
class Reports:
    """Where reports are: ``first`` (word + 1,) says where a word's begin, those of one word together.

    ``log_odds`` (report,) is the belief's at the first place of each report's grid, where t is at its window's start
    and e at the window's end; each further place is a step more.
    """

    first: IntArray
    log_odds: FloatArray


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

    ``answers`` (item, lambda, t) is what free answers say of the target, as logarithms; ``inverse`` (lambda,) is
    1 / lambda, 0 where nobody answered.
    """

    t_first: IntArray
    t_size: IntArray
    z_first: IntArray
    z_size: IntArray
    e_start: float
    t_start: float
    step: float
    answers: FloatArray
    inverse: FloatArray


@compiled
def _likelihood(  # noqa: PLR0912, PLR0915, PLR0917
    law, target, quiet, chance_of, words, items, report_first, found, posterior, marginal, backward
):
    """Log-likelihood, and its gradients by the laws of words (bin, e) and targets (item, t), by `quiet` and reports.

    These, the terms of items and the posterior means of 1 / (lambda e^e) of words and 1 / (lambda e^t) of targets are
    `found`. `posterior` (item, lambda, t) and `marginal` (word, e), if they have rows, become the posteriors of both
    and of e. Without `backward` what is by word or by report stays 0.
    """
    d_law, d_target, d_quiet, d_chance, by_item, inverse, target_inverse = found
    word_first, word_bin, e_first, e_size, answers, answers_first = words
    t_first, t_size, z_first, z_size, e_start, t_start, step, target_answers, by_lambda = items
    by_e = np.exp(-(e_start + step * np.arange(law.shape[1])))
    by_t = np.exp(-(t_start + step * np.arange(target.shape[1])))
    most, e_most, t_most, z_most = 1, e_size.max() if e_size.size else 1, t_size.max(), z_size.max()
    for q in range(t_first.size):
        most = max(most, word_first[q + 1] - word_first[q])
    chances = np.empty((most, z_most * e_most))
    product = np.empty((most, e_most + t_most))
    shifted = np.empty((most, e_most * t_most))
    inner = np.empty((most, z_most * t_most))
    d_product = np.empty(e_most + t_most)
    d_law[:] = 0.0
    d_target[:] = 0.0
    d_quiet[:] = 0.0
    d_chance[:] = 0.0
    inverse[:] = 0.0
    target_inverse[:] = 0.0
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
        own = top
        for k in range(n_words):
            x = first + k
            n_e, e0, a0 = e_size[x], e_first[x], answers_first[x]
            chance = chances[k, : n_z * n_e].reshape(n_z, n_e)
            its_law = law[word_bin[x]]
            for z in range(n_z):
                for j in range(n_e):
                    chance[z, j] = its_law[e0 + j] * answers[a0 + z * n_e + j]
            f = inner[k, : n_z * n_t].reshape(n_z, n_t)
            if report_first[x + 1] == report_first[x]:
                for z in range(n_z):
                    f[z, :] = chance[z].sum()
            else:
                # place v of the product is where e is (n_e - 1 - v) steps above its window's start, t at its start
                n_v = n_e + n_t - 1
                product[k, :n_v] = 1.0
                for row in range(report_first[x], report_first[x + 1]):
                    product[k, :n_v] *= chance_of[row, :n_v]
                if n_z > 1:
                    matrix = shifted[k, : n_e * n_t].reshape(n_e, n_t)
                    for j in range(n_e):
                        matrix[j] = product[k, n_e - 1 - j : n_e - 1 - j + n_t]
                    np.dot(chance, matrix, f)
                else:  # without answers a product of matrices takes twice the time
                    its, its_f = product[k], f[0]
                    its_f[:] = 0.0
                    for j in range(n_e):
                        for i in range(n_t):
                            its_f[i] += chance[0, j] * its[n_e - 1 - j + i]
            largest = 0.0
            for z in range(n_z):
                for i in range(n_t):
                    f[z, i] += _LEAST
                    joint[z, i] *= f[z, i]
                    largest = max(largest, joint[z, i])
            if largest < _SMALL:
                own += math.log(largest)
                joint /= largest
        mass = joint.sum()
        by_item[q] = own + math.log(mass)
        total += by_item[q]
        joint /= mass
        for z in range(n_z):
            for i in range(n_t):
                d_target[q, t0 + i] += joint[z, i]
                d_quiet[q, z0 + z] += joint[z, i]
                target_inverse[q] += joint[z, i] * by_lambda[z0 + z] * by_t[t0 + i]
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
                n_v = n_e + n_t - 1
                d_product[:n_v] = 0.0
                if n_z > 1:
                    by_chance = np.dot(ahead, shifted[k, : n_e * n_t].reshape(n_e, n_t).T)
                    by_matrix = np.dot(chance.T, ahead)
                    for j in range(n_e):
                        for i in range(n_t):
                            d_product[n_e - 1 - j + i] += by_matrix[j, i]
                else:
                    by_chance, its, its_ahead = np.empty((1, n_e)), product[k], ahead[0]
                    for j in range(n_e):
                        mean = 0.0
                        for i in range(n_t):
                            mean += its_ahead[i] * its[n_e - 1 - j + i]
                            d_product[n_e - 1 - j + i] += chance[0, j] * its_ahead[i]
                        by_chance[0, j] = mean
                for row in range(report_first[x], report_first[x + 1]):
                    for v in range(n_v):
                        d_chance[row, v] = d_product[v] * product[k, v] / chance_of[row, v]
            its_law = d_law[word_bin[x]]
            for z in range(n_z):
                mean = 0.0
                for j in range(n_e):
                    its_law[e0 + j] += by_chance[z, j] * answers[a0 + z * n_e + j]
                    mean += by_chance[z, j] * chance[z, j] * by_e[e0 + j]
                inverse[x] += mean * by_lambda[z0 + z]
            if marginal.shape[0]:
                for z in range(n_z):
                    for j in range(n_e):
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
def _draw(law, posterior, chance_of, words, items, report_first, seed, t_place, z_place, e_place):  # noqa: PLR0917
    """Draw places of t and ln lambda of every item, and of e of every word, from their posterior."""
    np.random.seed(seed)  # noqa: NPY002
    word_first, word_bin, e_first, e_size, answers, answers_first = words
    t_first, t_size, z_first, z_size = items[:4]
    mass = np.empty(e_size.max() if e_size.size else 1)
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
            for row in range(report_first[x], report_first[x + 1]):
                for j in range(n_e):
                    mass[j] *= chance_of[row, n_e - 1 - j + i]
            e_place[x] = e0 + _pick(mass[:n_e], mass[:n_e].sum())


def _parts(data: Any) -> tuple[Any, ...]:
    return tuple(getattr(data, name) for name in data.__dataclass_fields__)


class LatentWords(Op):
    r"""The log-likelihood as an operation, whose windows can be moved.

    Further outputs are its gradients by the four inputs, its terms by item, and the posterior means of
    :math:`1 / (\lambda e^{e})` by word and :math:`1 / (\lambda e^{t})` by item.
    """

    def __init__(self, words: Words, items: Items, reports: Reports) -> None:
        self.words, self.items, self.reports = words, items, reports

    def make_node(self, *inputs: Any) -> Apply[Any]:
        """Laws of words and (as logarithms) targets, ln P(nobody answered another word), chances (report, place)."""
        given = [pt.as_tensor(x, dtype="float64") for x in inputs]
        return Apply(self, given, [pt.dscalar(), *(x.type() for x in given), *(pt.dvector() for _ in range(3))])

    def values(
        self,
        law: Any,
        target: Any,
        quiet: Any,
        chance: Any,
        *,
        posterior: FloatArray | None = None,
        marginal: FloatArray | None = None,
        backward: bool = True,
    ) -> tuple[Any, ...]:
        """Log-likelihood, gradients by law, target, quiet and chance, terms of items, and the two inverse means."""
        self._check(np.shape(chance))
        given = [np.ascontiguousarray(x, dtype=float) for x in (law, target, quiet, np.maximum(chance, _LEAST_CHANCE))]
        by_item, target_inverse = np.empty((2, self.items.t_first.size))
        found = (*(np.empty_like(x) for x in given), by_item, np.empty(self.words.bin.size), target_inverse)
        total = _likelihood(  # type: ignore[call-arg]
            *given,
            _parts(self.words),
            _parts(self.items),
            self.reports.first,
            found,
            np.empty((0, 0, 0)) if posterior is None else posterior,
            np.empty((0, 0)) if marginal is None else marginal,
            backward,
        )
        return total, *found

    def _check(self, shape: tuple[int, ...]) -> None:
        """Refuse what compiled loops would read beyond: a report likelihood may be anybody's."""
        n, widest = self.reports.log_odds.size, self.widest
        if len(shape) != 2 or shape[0] != n or (n and shape[1] < widest):
            problem = f"gives probabilities of shape {shape}, should give one per report and place: ({n}, {widest})"
            raise InputError(problem, source="report likelihood")

    @property
    def widest(self) -> int:
        """Places of the widest grid of a report."""
        item = np.searchsorted(self.words.first, np.arange(self.words.bin.size), side="right") - 1
        word = np.flatnonzero(np.diff(self.reports.first))
        return int((self.words.e_size + self.items.t_size[item] - 1)[word].max(initial=1))

    def perform(self, node: Apply[Any], inputs: Any, output_storage: Any) -> None:  # noqa: ARG002
        """Compute."""
        for cell, value in zip(output_storage, self.values(*inputs), strict=True):
            cell[0] = np.asarray(value, dtype=float)

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Variable[Any, Any]]:  # noqa: ARG002
        """Give the gradients of the first output."""
        return [cotangents[0] * out for out in outputs[1:5]]

    L_op = pullback  # type: ignore[assignment]


def draw_words(op: LatentWords, inputs: list[Any], seed: int) -> tuple[IntArray, IntArray, IntArray]:
    """Draw the grid places of every item's t and ln lambda and of every word's e, given what all share."""
    n_items = op.items.t_first.size
    t, z, e = (np.empty(n, dtype=np.intp) for n in (n_items, n_items, op.words.bin.size))
    posterior = np.empty(op.items.answers.shape)
    op.values(*inputs, posterior=posterior, backward=False)
    law, *_, chance = (np.ascontiguousarray(x, dtype=float) for x in inputs)
    _draw(law, posterior, chance, _parts(op.words), _parts(op.items), op.reports.first, seed, t, z, e)
    return t, z, e
