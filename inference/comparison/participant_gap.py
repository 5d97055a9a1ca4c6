r"""The belief that participants share, draw by draw, and what follows from it: gaps, tails, which token is the mode.

At the temperature c log-ratios :math:`D_x = \ln h(x)/h(y)` are multiplied by c, and the gap of an item is

.. math:: R_q(c) = \ln \frac{g(y)}{h_c(y)} = \ln g(y) + \ln \sum_x e^{c D_x}

over the whole vocabulary: the target, the tokens compared or answered (at their posterior), and all others, of which
the law gives the mean and the variance of their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from shannon_game.estimators.arrays import FloatArray, IntArray
from shannon_game.estimators.display import Result
from shannon_game.estimators.errors import unknown_choice
from shannon_game.models.comparison.participant_data import ParticipantData

OBJECTIVES = ("rank", "pair")
"""How the outcomes fix the temperature: the target among all tokens shown with it, or against one at a time."""

_BY_DRAW = ("target", "token", "law", "lambda_place", "noise")
_TEMPERATURES = (1e-3, 30.0)
_HALVINGS = 45


@dataclass(frozen=True, eq=False, repr=False)
class SharedBelief(Result):
    """Posterior draws of the log-ratios e of the belief to the generator, before normalisation.

    `target` (draw, item) and `token` (draw, token), of those compared or answered, are e in nats; `law` (draw, bin, e)
    its probabilities on the grid `e` by bins of ln g, of which `rest_bin` has that of each other token. `silence` (bin,
    lambda, e) is the probability that nobody answers with a token, `lambda_place` (draw, item) a position on the grid
    of ln lambda. `noise` (draw, item, 2) says where in its distribution the sum over other tokens is, drawn ones and
    tokens never drawn.
    """

    data: ParticipantData
    target: FloatArray
    token: FloatArray
    law: NDArray[np.floating]
    e: FloatArray
    rest_bin: IntArray
    silence: FloatArray
    lambda_place: IntArray
    noise: FloatArray

    @property
    def n_draws(self) -> int:
        """Posterior draws."""
        return len(self.target)

    @cached_property
    def token_log_ratio(self) -> FloatArray:
        """D of the tokens compared or answered, (draw, token)."""
        item = self.data.token_item
        return self.token - self.target[:, item] + self.data.token_log_g - self.data.target_log_g[item]

    def at(self, draws: IntArray) -> SharedBelief:
        """These draws."""
        return replace(self, **{name: getattr(self, name)[draws] for name in _BY_DRAW})

    def joined(self, later: SharedBelief, n_chains: int) -> SharedBelief:
        """Draws of chains, one chain after the other, each with its later draws behind its own."""

        def both(name: str) -> Any:
            its = [getattr(one, name) for one in (self, later)]
            joined = np.concatenate([one.reshape(n_chains, -1, *one.shape[1:]) for one in its], axis=1)
            return joined.reshape(-1, *joined.shape[2:])

        return replace(self, **{name: both(name) for name in _BY_DRAW})

    def parts(self, temperature: ArrayLike = 1.0) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Sums of :math:`e^{c D}`, (draw, item): target and tokens asked, others drawn, others never drawn."""
        c = np.broadcast_to(np.asarray(temperature, dtype=float), self.n_draws)
        data, n_items = self.data, self.data.item.size
        asked = np.ones((self.n_draws, n_items))
        np.add.at(asked.T, data.token_item, np.exp(c[:, None] * self.token_log_ratio).T)
        drawn, never = np.exp(self._log_rest(c) - c[:, None] * (data.target_log_g + self.target))
        return asked, drawn, never

    def _log_rest(self, c: FloatArray) -> FloatArray:
        """Log of the sums over other tokens of (g e^e)^c, (part, draw, item): a log-normal with the law's moments."""
        counts = [self._counts(kept) for kept in (self.data.rest_drawn, ~self.data.rest_drawn)]
        found = np.empty((2, *self.target.shape))
        item = np.arange(self.target.shape[1])
        with np.errstate(divide="ignore"):
            log_law = np.log(self.law.sum(axis=1))
        for at, power in enumerate(c.tolist()):
            # powers of what the sum is mostly made of are 1: at a large c they are beyond all floats
            e_most = self.e[np.argmax(log_law[at] + power * self.e)]
            powers = np.exp(np.minimum(power * np.multiply.outer(self.e - e_most, np.arange(3)), 700))
            moment = (self.law[at][:, None] * self.silence) @ powers
            first, second = moment[..., 1] / moment[..., 0], moment[..., 2] / moment[..., 0]
            for which, (count, mass, log_g, largest) in enumerate(counts):
                # at c = 1 the mass of an item's bin is exact, else that of its mean token
                each = np.exp(power * log_g)
                weight = mass * np.exp(-largest) if power == 1 else count * each
                m = (weight @ first)[item, self.lambda_place[at]]
                v = ((weight * each) @ np.maximum(second - first**2, 0))[item, self.lambda_place[at]]
                spread = np.sqrt(np.log1p(v / np.maximum(m, 1e-100) ** 2))
                with np.errstate(divide="ignore"):
                    sums = np.log(m) + spread * self.noise[at, :, which] - spread**2 / 2
                found[which, at] = sums + power * (largest + e_most)
        return found

    def _counts(self, kept: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Tokens and their mass, (item, bin), the log of a bin's mean probability less the largest, and that one."""
        data, shape = self.data, (self.data.item.size, self.law.shape[1])
        place = (data.rest_item[kept], self.rest_bin[kept])
        count, mass, log_g = np.zeros(shape), np.zeros(shape), np.zeros(shape[1])
        np.add.at(count, place, data.rest_count[kept])
        np.add.at(mass, place, (data.rest_count * np.exp(data.rest_log_g))[kept])
        there = count.any(axis=0)
        if not there.any():
            return count, mass, log_g, 0.0
        mean = np.log(mass.sum(axis=0)[there] / count.sum(axis=0)[there])
        log_g[there] = mean - mean.max()
        return count, mass, log_g, float(mean.max())


def loss_gap(belief: SharedBelief, temperature: ArrayLike = 1.0, tail_factor: ArrayLike = 1.0) -> FloatArray:
    """Compute :math:`R_q(c)` of every draw at the temperatures c, shape (draw, item); nats.

    The belief on tokens never drawn nor answered is multiplied by `tail_factor`, () or (draw,).
    """
    asked, drawn, never = belief.parts(temperature)
    total: FloatArray = asked + drawn + np.reshape(np.asarray(tail_factor, dtype=float), (-1, 1)) * never
    return belief.data.target_log_g + np.log(total)


def outcome_temperature(belief: SharedBelief, item_weight: ArrayLike, *, objective: str = "rank") -> FloatArray:
    r"""Find the temperature at which the shared belief best fits which of the tokens was the true one, (draw,).

    One token of each pair is from the text and the others are draws of the known generator, so that a belief that is
    right has :math:`\mathrm{logit}\, P(y \text{ is the true one}) = -c D_x + \ln g(x)/g(y)`. ``rank`` takes all draws
    shown on an item together: it minimises
    :math:`\sum_q w_q \ln (1 + n_{\mathrm{same}} + \sum_x n_x e^{c D_x - \ln g(x)/g(y)})`, with :math:`n_x` how often x
    was drawn and shown, :math:`n_{\mathrm{same}}` how often the target was; ``pair`` maximises
    :math:`\sum_q w_q \sum_x n_x \ln \sigma(-c D_x + \ln g(x)/g(y))`. Both have one optimum, sought between .001 and 30.
    The weights w_q, (draw, item) or (item,), are not negative; draws of a Bayesian bootstrap carry the uncertainty from
    which items were asked.
    """
    if objective not in OBJECTIVES:
        raise unknown_choice("objective of the outcome anchor", objective, OBJECTIVES)
    data = belief.data
    shown = np.flatnonzero(data.token_shown > 0)
    item, times, ratio = data.token_item[shown], data.token_shown[shown], belief.token_log_ratio[:, shown]
    shift = data.token_log_g[shown] - data.target_log_g[item]
    weight = np.broadcast_to(np.asarray(item_weight, dtype=float), belief.target.shape)
    start = np.flatnonzero(np.diff(item, prepend=-1))
    own = np.log1p(data.target_shown[item[start]])
    group = np.repeat(np.arange(start.size), np.diff(np.append(start, shown.size)))

    def slope(c: FloatArray) -> FloatArray:
        """Derivative of the objective, which grows with c."""
        if objective == "pair":
            by_pair: FloatArray = (weight[:, item] * times * ratio * expit(c[:, None] * ratio - shift)).sum(axis=1)
            return by_pair
        term = c[:, None] * ratio - shift + np.log(times)
        top = np.maximum(np.maximum.reduceat(term, start, axis=1), own)
        part = np.exp(term - top[:, group])
        total = np.add.reduceat(part, start, axis=1) + np.exp(own - top)
        by_item: FloatArray = np.add.reduceat(part * ratio, start, axis=1) / total
        found: FloatArray = (weight[:, item[start]] * by_item).sum(axis=1)
        return found

    return _root(slope, belief.n_draws) if shown.size else np.ones(belief.n_draws)


def _root(slope: Callable[[FloatArray], FloatArray], n_draws: int) -> FloatArray:
    """Where a function that grows with c is 0, draw by draw."""
    low, high = (np.full(n_draws, end) for end in _TEMPERATURES)
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        too_low = slope(middle) < 0
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    temperature: FloatArray = np.sqrt(low * high)
    return temperature


def top1_rate(belief: SharedBelief, rng: np.random.Generator) -> FloatArray:
    """Share of the items whose target is the most probable token of the shared belief, (draw,).

    It does not depend on the temperature, so that it checks the shape of the belief whatever the anchor.
    """
    data = belief.data
    beaten = np.zeros(belief.target.shape, dtype=bool)
    np.logical_or.at(beaten.T, data.token_item, (belief.token_log_ratio > 0).T)
    # of other tokens, the chance that none is above the target: e is below what the target has
    survival = np.cumsum(belief.law[:, :, ::-1], axis=2)[:, :, ::-1]
    reach = (data.target_log_g + belief.target)[:, data.rest_item] - data.rest_log_g
    place = np.clip(np.searchsorted(belief.e, reach), 0, belief.e.size - 1)
    above = survival[np.arange(belief.n_draws)[:, None], belief.rest_bin, place].astype(float)
    above = np.where(reach > belief.e[-1], 0.0, np.clip(above, 0, 1 - 1e-12))
    log_none = np.zeros(belief.target.shape)
    np.add.at(log_none.T, data.rest_item, (data.rest_count * np.log1p(-above)).T)
    beaten |= rng.random(beaten.shape) >= np.exp(log_none)
    rate: FloatArray = 1 - beaten.mean(axis=1)
    return rate
