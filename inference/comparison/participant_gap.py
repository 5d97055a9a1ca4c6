r"""The loss gap of the belief that participants share, draw by draw of the participant model's posterior.

The model's log-ratios :math:`D_x = \ln h(x)/h(y)` are known up to one positive factor *c*, the temperature of the
belief. For every c the item's gap is

.. math:: R_q(c) = \ln \frac{g(y)}{h_c(y)} = \ln g(y) + \ln \sum_x e^{c D_x}

over the whole vocabulary: the target (D = 0), the tokens asked about (at their posterior), the stored candidates that
were not asked (from the posterior predictive), and the mass of tokens never drawn, which
:mod:`models.comparison.tokens` represents by a tail. About the tail no answer says anything: all of it shares one
discrepancy :math:`\sigma \delta`, as in :mod:`inference.comparison.belief_gap`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_ndtr, ndtr, ndtri

from estimators.display import Result, interval_rows
from estimators.errors import unknown_choice
from inference.comparison.token_kernels import (
    add_residuals,
    add_terms,
    log_none_above,
    log_sums,
    note_above,
    predicted,
    start_sums,
)
from inference.posterior.item_draws import flat_draws
from models.comparison import two_piece
from models.comparison.participant_data import ParticipantData
from models.comparison.participants import FAR, added_noise

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["OBJECTIVES", "SharedBelief", "loss_gap", "outcome_temperature", "shared_belief", "tail_share", "top1_rate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

OBJECTIVES = ("rank", "pair")
"""How the outcomes fix the temperature: the target among all tokens shown with it, or against one at a time."""

_OF_BELIEF = ("A", "s", "zeta", "b", "b2", "t_b", "ga", "sigma", "delta", "e_unit")
_NEEDED = (*_OF_BELIEF, "slope", "bias", "noise", "lapse", "half")
_TEMPERATURES = (1e-3, 30.0)
_HALVINGS = 45
_CELLS = 20_000_000
"""Draws times tokens whose random numbers are held at once."""


@dataclass(frozen=True, eq=False, repr=False)
class SharedBelief(Result):
    r"""Posterior draws of :math:`D_x = \ln h(x)/h(y)`, at the scale at which the model was fitted.

    Attributes
    ----------
    data : ParticipantData
    pair_log_ratio : ndarray, shape (draw, pair)
        Chains one after the other. Pairs that nobody answered (any more) are predicted.
    rest_log_ratio : ndarray, shape (draw, rest)
        One predicted value a draw.
    tail_log_ratio : ndarray, shape (draw, tail)
        Mean of the prediction, the discrepancy of tokens never drawn included.
    item_left, item_right : ndarray, shape (draw, item)
        Scales of its two-piece normal.
    """

    data: ParticipantData
    pair_log_ratio: FloatArray
    rest_log_ratio: FloatArray
    tail_log_ratio: FloatArray
    item_left: FloatArray
    item_right: FloatArray

    @property
    def n_draws(self) -> int:
        """Posterior draws."""
        return len(self.item_left)

    def headline(self) -> str:
        """Say its sizes."""
        return f"{self.n_draws} draws of {self.data.item.size} items, {self.data.pair_item.size} pairs asked"

    def summary(self) -> pd.DataFrame:
        """Median and 90% interval of each item's gap at the fitted scale, nats."""
        gap = loss_gap(self)
        return interval_rows({str(label): gap[:, at] for at, label in enumerate(self.data.item)})


def shared_belief(posterior: xr.Dataset, data: ParticipantData, rng: np.random.Generator) -> SharedBelief:
    """Complete posterior draws: residuals that were integrated out, and tokens that nobody was asked about.

    Parameters
    ----------
    posterior : xarray.Dataset
        Of :func:`models.comparison.participants.participant_model`; dims ``chain`` and ``draw``.
    data : ParticipantData
        What it was fitted to.
    rng : numpy.random.Generator

    Returns
    -------
    SharedBelief

    Raises
    ------
    InputError
        If the posterior lacks a variable or is of other items.

    Examples
    --------
    >>> import inference
    >>> import numpy as np
    >>> from inference.comparison.examples import participant_posterior
    >>> inference.shared_belief(*participant_posterior(), np.random.default_rng(0))
    SharedBelief(16 draws of 6 items, 16 pairs asked)
    """
    draws = flat_draws(posterior, _NEEDED, data.item, source="posterior of the participant model")

    place, slope = np.ascontiguousarray(draws["A"]), draws["b"] + draws["t_b"] * draws["zeta"]
    none, b2 = np.zeros_like(place), np.ascontiguousarray(draws["b2"][:, 0])

    def mean(item: IntArray, log_g: FloatArray) -> FloatArray:
        token = np.stack([log_g + 5, np.maximum(-log_g - 7, 0), np.zeros(item.size), log_g - data.target_log_g[item]])
        return predicted(place, slope, none, b2, item, token)

    left, right = draws["s"] * np.exp(draws["ga"]), draws["s"] * np.exp(-draws["ga"])
    pair = mean(data.pair_item, data.pair_log_g)
    pair[:, : data.n_shared] += draws["s"][:, data.pair_item[: data.n_shared]] * draws["e_unit"]
    n_answers = np.bincount(data.row_pair, minlength=data.pair_item.size)
    silent = np.flatnonzero((np.arange(n_answers.size) >= data.n_shared) & (n_answers == 0))
    silent_item = data.pair_item[silent]
    pair[:, silent] += two_piece.draw(left[:, silent_item], right[:, silent_item], rng)
    single = np.flatnonzero(data.row_pair >= data.n_shared)
    answered = data.row_pair[single]
    scales = left[:, data.pair_item[answered]], right[:, data.pair_item[answered]]
    pair[:, answered] += _residuals(draws, data, (pair[:, answered], *scales), single, rng)

    rest = mean(data.rest_item, data.rest_log_g)
    # what residuals are drawn from takes twice the room of the tokens
    step = max(1, _CELLS // max(1, data.rest_item.size))
    for first in range(0, len(rest), step):
        part = slice(first, first + step)
        normal, uniform = rng.standard_normal(rest[part].shape), rng.random(rest[part].shape)
        add_residuals(rest[part], left[part], right[part], data.rest_item, normal, uniform)
    tail = mean(data.tail_item, data.tail_log_g) + draws["sigma"] * draws["delta"]
    return SharedBelief(data, pair, rest, tail, left, right)


def _residuals(
    draws: dict[str, FloatArray],
    data: ParticipantData,
    prior: tuple[FloatArray, FloatArray, FloatArray],
    row: IntArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw the residual of D of pairs with one answer, (draw, row), from its distribution given the answer.

    `prior` has the mean of D and the two scales of the residual.
    """
    mean, left, right = prior
    person, box = data.row_participant[row], data.row_box[row]
    k, noise = draws["slope"][:, person], draws["noise"][:, person]
    centre = k * (draws["bias"][:, person] - mean)
    low, high = (np.clip(data.box_edges, -FAR, FAR)[box, side] - centre for side in (0, 1))
    # what the report is off by has the sign of -e, so that left and right change places
    report_scales = added_noise(k * right, k * left, noise)
    inside = two_piece.probability_inside(*report_scales, low, high)
    slip = draws["half"] * (box == data.half_box) + (1 - draws["half"]) / len(data.box_edges)
    lapse = draws["lapse"][:, person]
    slipped = rng.random(mean.shape) * (lapse * slip + (1 - lapse) * inside) < lapse * slip
    off = two_piece.draw_inside(*report_scales, low, high, rng)
    # e given off = -k e + noise: on each side of its mode a normal, cut off there
    mode = two_piece.mode(left, right)
    pieces, log_mass = [], []
    for scale, sign in ((left, -1.0), (right, 1.0)):
        variance = 1 / (1 / scale**2 + (k / noise) ** 2)
        place = variance * (mode / scale**2 - k * off / noise**2)
        sd = np.sqrt(variance)
        reach = sign * (place - mode) / sd
        log_mass.append(np.log(sd) + log_ndtr(reach) + (place**2 / variance - mode**2 / scale**2) / 2)
        # distance from the mode on this side, by inversion in the lower tail
        u = np.clip(rng.random(mean.shape) * ndtr(reach), 1e-300, 1.0)
        pieces.append(mode + sign * np.maximum(sd * (reach - ndtri(u)), 0.0))
    is_left = rng.random(mean.shape) < expit(log_mass[0] - log_mass[1])
    e = np.where(is_left, pieces[0], pieces[1])
    residual: FloatArray = np.where(slipped, two_piece.draw(left, right, rng), e)
    return residual


def outcome_temperature(belief: SharedBelief, item_weight: ArrayLike, *, objective: str = "rank") -> FloatArray:
    r"""Find the temperature at which the shared belief best fits which of the tokens was the true one.

    One token of each pair is from the text and one from the known generator, so that a belief that is right has

    .. math:: \mathrm{logit}\, P(y \text{ is the true one}) = -c D_x + \ln \frac{g(x)}{g(y)} .

    ``rank`` takes all tokens shown on an item together, so that the target counts once: it minimises
    :math:`\sum_q w_q \ln (1 + n_{\mathrm{same}} + \sum_x n_x e^{c D_x - \ln g(x)/g(y)})`, with :math:`n_x` how often x
    was shown. ``pair`` maximises :math:`\sum_q w_q \sum_x n_x \ln \sigma(-c D_x + \ln g(x)/g(y))`. Both have one
    optimum.
    Candidates are those that somebody answered, counted as often as they were shown, automatic answers on them
    included. Tokens on which nobody but the site answered are left out: nothing is reported about them. As a token can
    be shown twice, ``rank`` is not exactly a likelihood of the labels.

    Parameters
    ----------
    belief : SharedBelief
    item_weight : array_like, shape (draw, item) or (item,)
        w_q, not negative; draws of a Bayesian bootstrap carry the uncertainty from which items were asked.
    objective : str
        One of :data:`OBJECTIVES`.

    Returns
    -------
    ndarray, shape (draw,)
        c, between .001 and 30.

    Raises
    ------
    InputError
        For an unknown objective.

    Examples
    --------
    >>> import inference
    >>> from inference.comparison.examples import people_belief
    >>> inference.outcome_temperature(people_belief(), [1.0] * 6).shape
    (16,)
    """
    if objective not in OBJECTIVES:
        raise unknown_choice("objective of the outcome anchor", objective, OBJECTIVES)
    data = belief.data
    shown = np.flatnonzero(data.pair_n_shown > 0)
    shown = shown[np.argsort(data.pair_item[shown], kind="stable")]
    item, times = data.pair_item[shown], data.pair_n_shown[shown]
    ratio, shift = belief.pair_log_ratio[:, shown], data.pair_log_g_ratio[shown]
    weight = np.broadcast_to(np.asarray(item_weight, dtype=float), belief.item_left.shape)
    start = np.flatnonzero(np.diff(item, prepend=-1))
    asked = item[start]

    shown_tokens = ShownTokens(shift, np.log(times), start, np.log1p(data.n_same[asked]))

    def slope(c: FloatArray) -> FloatArray:
        """Derivative of the objective, which grows with c."""
        if objective == "rank":
            return rank_slope(c, ratio, shown_tokens, weight[:, asked])
        by_pair: FloatArray = (weight[:, item] * times * ratio * expit(c[:, None] * ratio - shift)).sum(axis=1)
        return by_pair

    return best_temperature(slope, belief.n_draws)


@dataclass(frozen=True, eq=False)
class ShownTokens:
    """What the generator drew, the tokens of one item together.

    Attributes
    ----------
    shift, log_times : ndarray, shape (token,)
        ln g(x)/g(y), and ln of how often x was shown.
    start : ndarray of int, shape (item,)
        First token of every item that has one.
    own : ndarray, shape (item,)
        ln of how often the target was shown, once more than it was drawn.
    """

    shift: FloatArray
    log_times: FloatArray
    start: IntArray
    own: FloatArray


def rank_slope(c: FloatArray, ratio: FloatArray, shown: ShownTokens, weight: FloatArray) -> FloatArray:
    """Derivative by c of the objective ``rank`` of :func:`outcome_temperature`, (draw,)."""
    start, own = shown.start, shown.own
    group = np.repeat(np.arange(start.size), np.diff(np.append(start, shown.shift.size)))
    term = c[:, None] * ratio - shown.shift + shown.log_times
    top = np.maximum(np.maximum.reduceat(term, start, axis=1), own)
    part = np.exp(term - top[:, group])
    total = np.add.reduceat(part, start, axis=1) + np.exp(own - top)
    by_item = np.add.reduceat(part * ratio, start, axis=1) / total
    slope: FloatArray = (weight * by_item).sum(axis=1)
    return slope


def best_temperature(slope: Callable[[FloatArray], FloatArray], n_draws: int) -> FloatArray:
    """Find where a function that grows with c is 0, draw by draw, between .001 and 30."""
    low, high = (np.full(n_draws, end) for end in _TEMPERATURES)
    for _ in range(_HALVINGS):
        middle = np.sqrt(low * high)
        too_low = slope(middle) < 0
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    temperature: FloatArray = np.sqrt(low * high)
    return temperature


def loss_gap(belief: SharedBelief, temperature: ArrayLike = 1.0) -> FloatArray:
    r"""Compute :math:`R_q(c)` for every draw.

    Parameters
    ----------
    belief : SharedBelief
    temperature : array_like, scalar or shape (draw,)
        c.

    Returns
    -------
    ndarray, shape (draw, item)
        Nats; its mean over items is the loss gap to the generator.

    Examples
    --------
    >>> import inference
    >>> from inference.comparison.examples import people_belief
    >>> inference.loss_gap(people_belief(), 0.8).shape
    (16, 6)
    """
    return _log_sum(belief, temperature)


def tail_share(belief: SharedBelief, temperature: ArrayLike = 1.0) -> FloatArray:
    """Share of the belief that lies on tokens which the study never drew, and knows only through the prediction.

    Parameters
    ----------
    belief, temperature
        See :func:`loss_gap`.

    Returns
    -------
    ndarray, shape (draw, item)

    Examples
    --------
    >>> import inference
    >>> from inference.comparison.examples import people_belief
    >>> share = inference.tail_share(people_belief())
    >>> bool(((0 <= share) & (share <= 1)).all())
    True
    """
    sums = _sums(belief, temperature, with_tail=False)
    drawn = log_sums(sums)
    _add_tail(sums, belief, np.array(np.broadcast_to(np.asarray(temperature, dtype=float), belief.n_draws)))
    return -np.expm1(drawn - log_sums(sums))


def _log_sum(belief: SharedBelief, temperature: ArrayLike, *, with_tail: bool = True) -> FloatArray:
    """Log of the sum of R_q over all tokens, or over those that were drawn, (draw, item)."""
    return log_sums(_sums(belief, temperature, with_tail=with_tail))


def _sums(belief: SharedBelief, temperature: ArrayLike, *, with_tail: bool) -> FloatArray:
    data, log_g_y = belief.data, belief.data.target_log_g
    c = np.array(np.broadcast_to(np.asarray(temperature, dtype=float), belief.n_draws))
    # the target itself, tokens asked, tokens not asked, tail
    sums = start_sums(log_g_y, belief.n_draws)
    add_terms(sums, c, belief.pair_log_ratio, log_g_y[data.pair_item], data.pair_item)
    add_terms(sums, c, belief.rest_log_ratio, log_g_y[data.rest_item], data.rest_item)
    if with_tail:
        _add_tail(sums, belief, c)
    return sums


def _add_tail(sums: FloatArray, belief: SharedBelief, c: FloatArray) -> None:
    data = belief.data
    of_token = data.target_log_g[data.tail_item] + np.log(data.tail_mass) - data.tail_log_g
    # the mean of the residuals is one number an item, which the sum over its tokens takes as a factor
    of_item = two_piece.log_mean_exp(c[:, None] * belief.item_left, c[:, None] * belief.item_right)
    sums[0] -= of_item
    add_terms(sums, c, belief.tail_log_ratio, of_token, data.tail_item)
    sums[0] += of_item


def top1_rate(belief: SharedBelief, rng: np.random.Generator) -> FloatArray:
    """Share of the items whose target is the most probable token of the shared belief.

    It does not depend on the temperature, so that it checks the shape of the belief whatever the anchor.
    """
    data = belief.data
    beaten = np.zeros((belief.n_draws, data.item.size), dtype=np.bool_)
    note_above(beaten, belief.pair_log_ratio, data.pair_item)
    note_above(beaten, belief.rest_log_ratio, data.rest_item)
    n_tokens = np.maximum(data.tail_mass / np.exp(data.tail_log_g), 1)
    log_none = log_none_above(belief.tail_log_ratio, belief.item_left, belief.item_right, data.tail_item, n_tokens)
    beaten |= rng.random(beaten.shape) >= np.exp(log_none)
    rate: FloatArray = 1 - beaten.mean(axis=1)
    return rate
