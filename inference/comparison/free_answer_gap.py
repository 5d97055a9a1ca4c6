r"""The loss gap where free answers are sharper or flatter than belief, and the scale that outcomes want.

The model of free answers takes an answer for a draw of the belief. Where it is one of :math:`h^\tau` instead, what the
model finds is :math:`f \propto h^\tau`, and the belief is :math:`h \propto f^{\,c}` with :math:`c = 1/\tau`. Answers
and reports alone cannot tell :math:`\tau`: the reports are :math:`k_0 \tau` times the log-odds of h. The outcomes can,
if people's beliefs are calibrated: which of the tokens shown came from the text, and which from the generator, is
known, and they fit best at one temperature c. That it is 1 is the agreement of the two anchors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from estimators.errors import InputError
from inference.comparison.participant_gap import ShownTokens, best_temperature, rank_slope
from inference.posterior.item_draws import flat_draws, log_sum_by_item
from models.comparison.free_answers import NODE, WEIGHT, bent, line_of, spread_of

if TYPE_CHECKING:
    import xarray as xr

    from models.comparison.free_answer_data import FreeAnswerData

__all__ = ["answered_temperature", "tempered_gap"]

FloatArray = NDArray[np.float64]

_SOURCE = "posterior of free answers"
_LAW = ("g_slope", "rare_g_slope", "narrow", "upper", "lower", "spread_slope")
_OF_ITEM = ("item_gap_nats", "item_level", "divergence")
_MAX_CELLS = 20_000_000


def answered_temperature(posterior: xr.Dataset, data: FreeAnswerData, item_weight: ArrayLike) -> FloatArray:
    r"""Find the temperature of the belief at which the outcomes fit best, 1 being that of the free answers.

    As :func:`~inference.comparison.participant_gap.outcome_temperature` with the objective ``rank``: one of the target
    and the generator's draws of an item is from the text. People's answers are no draws of the generator and take no
    part.

    Parameters
    ----------
    posterior : xarray.Dataset
        Draws of :func:`models.free_answer_model`.
    data : FreeAnswerData
        To which it was fitted.
    item_weight : array_like, shape (draw, item) or (item,)
        Not negative; draws of a Bayesian bootstrap carry the uncertainty from which items were asked.

    Returns
    -------
    ndarray, shape (draw,)
        c, between .001 and 30.

    Raises
    ------
    InputError
        If the posterior is of other items, or no token was drawn from the generator but the target.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import designed_study
    >>> data = models.free_answer_data(designed_study())
    >>> posterior = inference.stand_in_posterior(models.free_answer_model(data)).posterior
    >>> inference.answered_temperature(posterior, data, [1.0] * 8).shape
    (16,)
    """
    drawn = np.flatnonzero(data.token_drawn > 0)
    if not drawn.size:
        raise InputError("has no draws of the generator but the targets", source=data.study, field="candidate_source")
    draws = flat_draws(posterior, ("item_gap_nats", "token_log_ratio"), data.item, source=_SOURCE)
    item = data.token_item[drawn]
    shift = data.token_log_g[drawn] - data.target_log_g[item]
    ratio = draws["token_log_ratio"][:, drawn] + draws["item_gap_nats"][:, item] + shift
    weight = np.broadcast_to(np.asarray(item_weight, dtype=float), draws["item_gap_nats"].shape)
    start = np.flatnonzero(np.diff(item, prepend=-1))
    asked = item[start]
    shown = ShownTokens(shift, np.log(data.token_drawn[drawn]), start, np.log1p(data.target_drawn[asked]))
    return best_temperature(lambda c: rank_slope(c, ratio, shown, weight[:, asked]), len(ratio))


def tempered_gap(posterior: xr.Dataset, data: FreeAnswerData, temperature: ArrayLike) -> FloatArray:
    r"""Compute the loss gap of the belief :math:`h \propto f^{\,c}`, with f what free answers are draws of.

    .. math:: R_q(c) = \ln g(y) - c \ln f(y) + S(c) - S(1), \qquad S(c) = \ln \sum_x f(x)^c

    Tokens outside the pool enter S with their expectation under the law of the model, in bins of ln g.

    Parameters
    ----------
    posterior : xarray.Dataset
        Draws of :func:`models.free_answer_model`.
    data : FreeAnswerData
        To which it was fitted.
    temperature : array_like, scalar or shape (draw,)
        c; :math:`1/\tau` for answers with the exponent :math:`\tau`.

    Returns
    -------
    ndarray, shape (draw, item)
        Nats; at 1 it is ``item_gap_nats``.

    Raises
    ------
    InputError
        If the posterior is of other items, or a temperature is not positive.

    Examples
    --------
    >>> import inference, models
    >>> from estimators.comparison.examples import designed_study
    >>> data = models.free_answer_data(designed_study())
    >>> posterior = inference.stand_in_posterior(models.free_answer_model(data)).posterior
    >>> inference.tempered_gap(posterior, data, 0.5).shape
    (16, 8)
    """
    draws = flat_draws(posterior, (*_OF_ITEM, "token_log_ratio"), data.item, source=_SOURCE)
    law = flat_draws(posterior, _LAW, data.item, source=_SOURCE)
    n_draws = len(draws["item_gap_nats"])
    every = np.asarray(temperature, dtype=float)
    if not (np.isfinite(every).all() and (every > 0).all()):
        raise InputError("should be positive numbers", field="temperature")
    c = np.broadcast_to(every, n_draws)[:, None]
    log_target = data.target_log_g - draws["item_gap_nats"]
    log_token = data.token_log_g + draws["token_log_ratio"]
    gap = np.empty_like(log_target)
    step = max(1, _MAX_CELLS // (data.bin_log_g.size * NODE.size))
    for first in range(0, n_draws, step):
        rows = slice(first, first + step)
        place = {name: values[rows] for name, values in draws.items()}
        scale = {name: values[rows] for name, values in law.items()}
        total = [
            _log_total(data, log_target[rows], log_token[rows], _log_rest(data, place, scale, at), at)
            for at in (c[rows], np.ones((len(place["divergence"]), 1)))
        ]
        gap[rows] = data.target_log_g - c[rows] * log_target[rows] + total[0] - total[1]
    return gap


def _log_total(
    data: FreeAnswerData, log_target: FloatArray, log_token: FloatArray, log_rest: FloatArray, c: FloatArray
) -> FloatArray:
    """S(c), (draw, item)."""
    terms = np.concatenate([c * log_target, log_rest, c * log_token], axis=1)
    items = np.arange(data.item.size)
    return log_sum_by_item(terms, np.concatenate([items, items, data.token_item]), data.item.size)


def _log_rest(
    data: FreeAnswerData, draws: dict[str, FloatArray], law: dict[str, FloatArray], c: FloatArray
) -> FloatArray:
    """Log of the expected sum of f(x)^c over the tokens outside the pool, (draw, item)."""
    log_g = data.bin_log_g
    of_draw = {name: values[:, :, None] for name, values in law.items()}
    power = c[:, :, None]
    middle = draws["item_level"][:, :, None] + line_of(log_g, of_draw["g_slope"], of_draw["rare_g_slope"])
    scale = draws["divergence"][:, :, None] * spread_of(log_g, of_draw["spread_slope"])
    of_bin = data.bin_log_mass + power * middle + (power - 1) * log_g
    terms = [
        of_bin + power * scale * bent(node, *(of_draw[name] for name in ("narrow", "upper", "lower"))) + np.log(weight)
        for node, weight in zip(NODE, WEIGHT, strict=True)
    ]
    total: FloatArray = logsumexp(np.logaddexp.reduce(terms, axis=0), axis=2)
    return total
