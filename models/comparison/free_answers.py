r"""Free answers and reports of one shared belief: the answers say how large the log-odds of the reports are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.stats import poisson

from models.comparison.free_answer_data import FreeAnswerData
from models.comparison.participants import FAR, ParticipantPriors, participant_parameters, random_box
from models.comparison.two_piece_tensor import normal_box_probability
from models.priors import check_priors

__all__ = [
    "NODE",
    "WEIGHT",
    "FreeAnswerPriors",
    "bent",
    "draw_pool_answers",
    "draws_missed",
    "free_answer_model",
    "hinge",
    "pool_table",
    "two_slopes",
]

_CENTRE = 4.0
"""The regressions on ln g are centred at -4."""
_RARE = 7.0
NO_ANSWERS = -60.0
"""Log of a number that counts for nothing."""
_TINY = 1e-12
_MOST = 10.0  # of ln of an expected number of answers

NODE, _weight = hermegauss(9)
"""Where, of a standard normal, residuals are summed instead of integrated over."""
WEIGHT = _weight / _weight.sum()
"""How much every node counts."""


@dataclass(frozen=True)
class FreeAnswerPriors:
    """Scales of the priors of :func:`free_answer_model`, weak by default; nats or per nat.

    Attributes
    ----------
    log_k0 : float
        Standard deviation of ln k0.
    level, slope, rare_slope : float
        Standard deviations of normals around zero: how far the belief's mass is off that of its law, and the slopes of
        ln h/g on ln g, for all tokens and in addition for those below -7.
    level_spread : float
        Scale of the half-normal for the items' own levels.
    divergence_spread : float
        Scale of the half-normal for the spread over items of ln divergence.
    spread_median, log_spread : float
        Median of the spread of the residuals' middle, and standard deviation of its logarithm.
    tail : float
        Scale of the half-normals of how much broader either tail is.
    spread_slope : float
        Standard deviation of the slope of ln spread on -ln g.
    target_level, target_slope : float
        Standard deviations of how far the target lies from its item's law, and of its slope on ln g.
    log_target_spread : float
        Standard deviation of the logarithm of the spread of the targets' residuals, up and down.
    generator_weight : float
        Standard deviation of the weight of the generator in what is reported, where it is estimated.
    people : ParticipantPriors
        Of the participants; those of its fields that concern the belief are not used.
    """

    log_k0: float = 1.0
    level: float = 0.5
    slope: float = 0.5
    rare_slope: float = 0.3
    level_spread: float = 1.0
    divergence_spread: float = 0.5
    spread_median: float = 0.6
    log_spread: float = 0.7
    tail: float = 2.0
    spread_slope: float = 0.2
    target_level: float = 1.0
    target_slope: float = 0.3
    log_target_spread: float = 1.0
    generator_weight: float = 0.5
    people: ParticipantPriors = field(default_factory=ParticipantPriors)

    def __post_init__(self) -> None:
        check_priors(self, "free answer priors")


def free_answer_model(
    data: FreeAnswerData, priors: FreeAnswerPriors | None = None, *, equation_6: bool = False
) -> pm.Model:
    r"""Build the model of free answers and reports.

    What is wanted is :math:`w_{qy} = \ln h(y)/g(y)` of every target: the item's loss gap is its negative. For a token
    *x* of an item, with :math:`\ell = \ln g(x) + 4`,

    .. math::

        w_{qx} = a_q + v_{qx}, \qquad v_{qx} = b\,\ell + b_2 \max(-\ell - 3, 0) + \delta_q r_{qx}, \qquad
        a_q = b_0 + \tau z_q - \ln \sum_x g(x)\, e^{v_{qx}}

    where the sum runs over the whole vocabulary, so that the belief sums to one up to :math:`b_0` and the item's own
    level. Tokens outside the pool enter with their expectation, in bins of ln g. The residual of a token is a bent
    normal number (:func:`hinge`), broader or narrower for rare tokens:

    .. math::

        r = e^{-c \ell'}\, (s z + s_+ H(z) - s_- H(-z)), \qquad z \sim N(0, 1),\;
        \ell' = \min(\max(\ln g, -12), 0) + 4

    The divergence :math:`\delta_q` (log-normal) says how far belief and generator differ in the item. Differences of
    two language models look like that: most tokens agree, some are far off, on either side, and contexts differ in how
    many. The target has a residual of its own (:func:`two_slopes`), and a place of its own.

    **Answers.** People answer with draws of h. A token of the pool was answered :math:`c_{qx}` times,

    .. math::

        p(c_{qx} \mid x \in \mathrm{pool}) =
          \frac{\mathrm{Poisson}(c_{qx}; n_q h(x))}
               {1 - (1 - g(x))^{m_q}\, E\!\left[e^{-n'_q h(x)}\right]}

    with :math:`n_q` answers, :math:`n'_q` of them before the pool was closed, and :math:`m_q` draws of the generator:
    a token is in the pool because the generator drew it, or because somebody answered it, and then it is there
    because h is high. The denominator, an expectation over the residual, takes that selection out. It is 1 for the
    target and for tokens that are candidates in any case. Expectations over residuals are Gauss-Hermite sums
    (:data:`NODE`).

    **Reports.** Of two tokens *x* and *x'* a participant reports the log-odds
    :math:`k_u(\ln h(x')/h(x) + \mathrm{bias}_u) + \mathrm{noise}_u`, of which the box of the scale is seen; the bias
    is for the target alone. Lapses, and how participants differ, are as in
    :func:`~models.comparison.participants.participant_model`; but k0, the geometric mean of the slopes, is a
    parameter, and the biases of the participants at hand need not cancel: only in the population is their mean 0.
    The reports carry :math:`k_0 D` and the answers carry :math:`D`, so that together they say what k0 is.

    Who is paid by a plain logarithmic score and knows the generator does best to report which of two tokens is of the
    text, :math:`\ln h(x')/h(x) - \ln g(x')/g(x)` (equation 6 of Shlegeris et al. 2022). With `equation_6` the second
    term has a weight that is estimated: 0 for those who report their belief, 1 for those who play like that.

    Parameters
    ----------
    data : FreeAnswerData
    priors : FreeAnswerPriors, optional
    equation_6 : bool
        Whether reports may lean against the generator.

    Returns
    -------
    pymc.Model
        Dims ``item``, ``token``, ``participant`` and ``row``; observed variables ``box``, ``answers`` and
        ``target_answers``; ``item_gap_nats`` and ``k0`` are what is asked for.

    Notes
    -----
    A free answer is taken for a draw of the belief (tau = 1). Where people rather answer with what is most probable,
    what is found is the loss of that sharper distribution. The Poisson stands for the multinomial. A study may hold
    answers that did not become candidates; they count in :math:`n_q` only.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import designed_study
    >>> model = models.free_answer_model(models.free_answer_data(designed_study()))
    >>> [variable.name for variable in model.observed_RVs]
    ['answers', 'target_answers', 'box']
    >>> model.named_vars_to_dims["item_gap_nats"]
    ('item',)
    """
    p = priors or FreeAnswerPriors()
    coords = {
        "item": data.item,
        "token": np.arange(data.token_item.size),
        "participant": data.participant,
        "row": np.arange(data.row_box.size),
    }
    with pm.Model(coords=coords) as model:
        k0 = pm.Deterministic("k0", pt.exp(pm.Normal("log_k0", 0, p.log_k0)))
        target, token = _belief(data, p)
        pm.Deterministic("item_gap_nats", -target, dims="item")
        weight = pm.Normal("generator_weight", 0, p.generator_weight) if equation_6 else 0.0
        _reports(data, p.people, k0, pt.concatenate([target, token]) + (1.0 - weight) * data.log_g)  # type: ignore[no-untyped-call]
    return model


def _belief(data: FreeAnswerData, p: FreeAnswerPriors) -> tuple[Any, Any]:
    """Log h/g of the targets and of the tokens, with what people answered."""
    level, slope = pm.Normal("level", 0, p.level), pm.Normal("g_slope", 0, p.slope)
    rare_slope = pm.Normal("rare_g_slope", 0, p.rare_slope)
    narrow = pm.LogNormal("narrow", np.log(p.spread_median), p.log_spread)
    upper, lower = pm.HalfNormal("upper", p.tail), pm.HalfNormal("lower", p.tail)
    spread_slope = pm.Normal("spread_slope", 0, p.spread_slope)
    level_spread = pm.HalfNormal("level_spread", p.level_spread)
    level_unit = pm.Normal("level_unit", 0, 1, dims="item")
    divergence_spread = pm.HalfNormal("divergence_spread", p.divergence_spread)
    unit = pm.Normal("divergence_unit", 0, 1, dims="item")
    divergence = pm.Deterministic("divergence", pt.exp(divergence_spread * unit), dims="item")

    def line(log_g: NDArray[np.float64]) -> Any:
        return line_of(log_g, slope, rare_slope)

    scale = divergence[data.token_item] * spread_of(data.token_log_g, spread_slope)
    residual = scale * bent(pm.Normal("residual_unit", 0, 1, dims="token"), narrow, upper, lower)
    off = pm.Normal("target_level", 0, p.target_level)
    off += pm.Normal("target_slope", 0, p.target_slope) * (data.target_log_g + _CENTRE)
    sides = (
        pm.LogNormal(f"target_{side}", np.log(p.spread_median), p.log_target_spread) for side in ("upper", "lower")
    )
    own = divergence * two_slopes(pm.Normal("target_unit", 0, 1, dims="item"), *sides)
    # of the pool what its tokens have, of the rest of the vocabulary what is expected
    shape = bent(NODE, narrow, upper, lower)
    of_rest = (divergence[:, None] * spread_of(data.bin_log_g, spread_slope))[:, :, None] * shape + np.log(WEIGHT)
    mean_exp = pt.logsumexp(of_rest, axis=2)  # type: ignore[no-untyped-call]
    rest = pt.logsumexp(data.bin_log_mass + line(data.bin_log_g) + mean_exp, axis=1)  # type: ignore[no-untyped-call]
    target = line(data.target_log_g) + off + own
    token = line(data.token_log_g) + residual
    table = pool_table(data)
    pool = pt.concatenate([target + data.target_log_g, token + data.token_log_g, [NO_ANSWERS]])[table]  # type: ignore[no-untyped-call]
    total = pt.logaddexp(rest, pt.logsumexp(pool, axis=1))  # type: ignore[no-untyped-call]
    item_level = pm.Deterministic("item_level", level + level_spread * level_unit - total, dims="item")
    target += item_level
    place = item_level[data.token_item] + line(data.token_log_g)
    token = pm.Deterministic("token_log_ratio", place + residual, dims="token")
    _answers(data, place, scale[:, None] * shape, target, token)
    return target, token


def line_of(log_g: NDArray[np.float64], slope: Any, rare_slope: Any) -> Any:
    """Regression of ln h/g on ln g, steeper or flatter for rare tokens; tensors or arrays that broadcast."""
    return slope * (log_g + _CENTRE) + rare_slope * np.maximum(-log_g - _RARE, 0)


def spread_of(log_g: NDArray[np.float64], slope: Any) -> Any:
    """Spread of the residuals by ln g, 1 at -4; tensors or arrays that broadcast."""
    exponent = -slope * (np.clip(log_g, -12.0, 0.0) + _CENTRE)
    return np.exp(exponent) if isinstance(exponent, np.ndarray) else pt.exp(exponent)


def hinge(z: Any) -> Any:
    r"""Smooth version of max(z - 1, 0), :math:`(z - 1 + \sqrt{(z - 1)^2 + 1/4}) / 2`; tensor or array."""
    return (z - 1 + ((z - 1) ** 2 + 0.25) ** 0.5) / 2


def bent(z: Any, narrow: Any, upper: Any, lower: Any) -> Any:
    """Residual of a standard normal z: `narrow` steep in the middle, and steeper by `upper` and `lower` outside."""
    return narrow * z + upper * hinge(z) - lower * hinge(-z)


def two_slopes(z: Any, upper: Any, lower: Any) -> Any:
    r"""Residual of a standard normal z that is `upper` steep far up and `lower` far down.

    .. math:: r = \frac{s_+ + s_-}{2} z + \frac{s_+ - s_-}{2} \left(\sqrt{1 + z^2} - 1\right)
    """
    return (upper + lower) / 2 * z + (upper - lower) / 2 * ((1 + z**2) ** 0.5 - 1)


def _answers(data: FreeAnswerData, place: Any, residual: Any, target: Any, token: Any) -> None:
    """Free answers: how often each token of a pool, and each target, was answered; residuals of (token, node)."""
    n, entry = (values[data.token_item] for values in (data.n_answers, data.n_entry))
    log_entry = np.where(entry > 0, np.log(np.maximum(entry, 1)), NO_ANSWERS)
    log_rate = (log_entry + data.token_log_g + place)[:, None] + residual
    answered = -pt.expm1(-pt.exp(pt.minimum(log_rate, _MOST))) @ WEIGHT
    not_drawn = draws_missed(data)
    log_in_pool = pt.log(pt.maximum(1.0 - not_drawn + not_drawn * answered, _TINY))
    in_any_case = np.zeros(data.item.size)
    token_count = pm.Data("token_count", data.token_answers, dims="token")
    target_count = pm.Data("target_count", data.target_answers, dims="item")
    log_target = np.log(data.n_answers) + data.target_log_g + target
    for name, log_rate, selection, dim, counts in (
        ("answers", np.log(n) + data.token_log_g + token, (log_in_pool, not_drawn), "token", token_count),
        ("target_answers", log_target, (in_any_case, in_any_case), "item", target_count),
    ):
        pm.CustomDist(
            name,
            log_rate,
            *selection,
            logp=_log_answers,
            random=_random_answers,
            observed=counts,
            dims=dim,
            dtype="int64",
        )


def draws_missed(data: FreeAnswerData) -> NDArray[np.float64]:
    """Probability that the generator drew a token not once, 0 for candidates in any case; shape (token,)."""
    drawn = data.n_drawn[data.token_item]
    # a token that is certain, but for rounding, was drawn
    log_other = np.log1p(-np.minimum(np.exp(data.token_log_g), 1 - 1e-9))
    return np.where(data.token_given, 0.0, np.exp(drawn * log_other))


def _log_answers(value: Any, log_rate: Any, log_in_pool: Any, _not_drawn: Any) -> Any:
    """Log-probability of a Poisson count of a token that is in the pool."""
    return value * log_rate - pt.exp(pt.minimum(log_rate, _MOST)) - pt.gammaln(value + 1) - log_in_pool


def _random_answers(
    log_rate: NDArray[np.float64],
    _log_in_pool: NDArray[np.float64],
    not_drawn: NDArray[np.float64],
    rng: np.random.Generator,
    size: tuple[int, ...] | None = None,
) -> NDArray[np.int64]:
    """Counts of tokens that are in the pool: drawn by the generator, or answered at least once."""
    shape = np.broadcast_shapes(log_rate.shape, not_drawn.shape) if size is None else size
    rate = np.broadcast_to(np.exp(np.minimum(log_rate, 10.0)), shape)
    return draw_pool_answers(rate, not_drawn, rng)


def draw_pool_answers(
    rate: NDArray[np.float64], not_drawn: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw Poisson counts of tokens that are in the pool: drawn by the generator, or answered at least once.

    Parameters
    ----------
    rate : ndarray
        Expected numbers of answers.
    not_drawn : ndarray, broadcastable
        Probability that the generator did not draw it; 0 for one that is in the pool in any case.
    rng : numpy.random.Generator
    """
    unanswered = np.exp(-rate)
    # P(no answer | in the pool): it was drawn, then
    none = unanswered * (1 - not_drawn) / np.maximum(1 - unanswered * not_drawn, _TINY)
    above = np.minimum(unanswered + (1 - unanswered) * rng.random(rate.shape), np.nextafter(1.0, 0.0))
    count = np.where(rng.random(rate.shape) < none, 0, np.maximum(poisson.ppf(above, rate), 1))
    return count.astype(np.int64)


def _reports(data: FreeAnswerData, p: ParticipantPriors, k0: Any, evidence: Any) -> None:
    """Participants and their comparisons, given what they go by for every token, up to a constant an item."""
    everybody = np.ones(data.participant.size)
    slope, bias, noise, lapse, half = participant_parameters(p, k0, everybody, mean_bias=True)
    person = data.row_participant
    against_target = data.row_reference < data.item.size
    log_odds = evidence[data.row_reference] - evidence[data.row_token]
    edges = np.clip(data.box_edges, -FAR, FAR)
    pm.CustomDist(
        "box",
        slope[person] * (log_odds + bias[person] * against_target),
        noise[person],
        lapse[person],
        half,
        logp=partial(_log_box, edges=edges, half_box=data.half_box),
        random=partial(_random_box, edges=edges, half_box=data.half_box),
        observed=pm.Data("row_box", data.row_box, dims="row"),
        dims="row",
        dtype="int64",
    )


def _log_box(value: Any, *parameters: Any, edges: NDArray[np.float64], half_box: int) -> Any:
    """Log-probability of a box, of normal noise."""
    centre, noise, lapse, half = parameters
    low, high = ((pt.as_tensor(edges[:, side])[value] - centre) / noise for side in (0, 1))
    inside = normal_box_probability(low, high)
    slip = half * pt.eq(value, half_box) + (1 - half) / len(edges)
    return pt.log((1 - lapse) * inside + lapse * slip + _TINY)


def _random_box(
    centre: NDArray[np.float64], noise: NDArray[np.float64], *others: NDArray[np.float64], **settings: Any
) -> NDArray[np.int64]:
    return random_box(centre, noise, noise, *others, **settings)


def pool_table(data: FreeAnswerData) -> NDArray[np.intp]:
    """Places of every item's pool along (targets, tokens), (item, largest pool); a place after the last fills up."""
    n_items, n_tokens = data.item.size, data.token_item.size
    size = np.bincount(data.token_item, minlength=n_items)
    table = np.full((n_items, 1 + int(size.max(initial=0))), n_items + n_tokens, dtype=np.intp)
    table[:, 0] = np.arange(n_items)
    rank = np.arange(n_tokens) - np.repeat(np.cumsum(size) - size, size)
    table[data.token_item, 1 + rank] = n_items + np.arange(n_tokens)
    return table
