r"""Free answers and reports of one shared belief: the answers say how large the log-odds of the reports are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from scipy.stats import poisson

from models.comparison.free_answer_data import FreeAnswerData
from models.comparison.participants import FAR, ParticipantPriors, participant_parameters, random_box
from models.comparison.two_piece_tensor import normal_box_probability
from models.priors import check_priors

__all__ = ["FreeAnswerPriors", "answered_share", "draw_pool_answers", "free_answer_model", "pool_table"]

Parts = tuple[tuple[Any, Any, Any], ...]
"""Log share, place and spread of the parts of a mixture of normals."""

_CENTRE = 4.0
"""The regressions on ln g are centred at -4."""
_RARE = 7.0
NO_ANSWERS = -60.0
"""Log of a number that counts for nothing."""
_TINY = 1e-12
_ROOT_2 = np.sqrt(2.0)


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
        Median of the spread of the narrow part of the residuals, and standard deviation of its logarithm.
    broad : float
        Scale of the half-normal of how much broader the broad part is.
    shift : float
        Standard deviation of how far down the broad part lies.
    share, share_slope : float
        Standard deviations of the logit of the broad part's share and of its slope on ln g.
    target_level, target_slope : float
        Standard deviations of how far the target lies from its item's law, and of its slope on ln g.
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
    broad: float = 3.0
    shift: float = 3.0
    share: float = 1.5
    share_slope: float = 0.3
    target_level: float = 1.0
    target_slope: float = 0.3
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
    level. Tokens outside the pool enter with their expectation, in bins of ln g. The residual *r* is a mixture of two
    normals, a narrow one at 0 and a broad one that lies elsewhere; the broad one's share depends on ln g. The
    divergence :math:`\delta_q` (log-normal) says how far belief and generator differ in the item. Differences of two
    language models look like that: most tokens agree, some are far off, mostly downwards, and contexts differ in how
    many. The target has a mixture of its own.

    **Answers.** People answer with draws of h. A token of the pool was answered :math:`c_{qx}` times,

    .. math::

        p(c_{qx} \mid x \in \mathrm{pool}) =
          \frac{\mathrm{Poisson}(c_{qx}; n_q h(x))}
               {1 - e^{-m_q g(x)}\, E\!\left[e^{-n'_q h(x)}\right]}

    with :math:`n_q` answers, :math:`n'_q` of them before the pool was closed, and :math:`m_q` draws of the generator:
    a token is in the pool because the generator drew it, or because somebody answered it, and then it is there
    because h is high. The denominator, an expectation over the residual, takes that selection out. It is 1 for the
    target and for tokens that are candidates in any case.

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
    broad = narrow + pm.HalfNormal("broad", p.broad)
    shift = pm.Normal("shift", 0, p.shift)
    share, share_slope = pm.Normal("share", 0, p.share), pm.Normal("share_slope", 0, p.share_slope)
    level_spread = pm.HalfNormal("level_spread", p.level_spread)
    level_unit = pm.Normal("level_unit", 0, 1, dims="item")
    divergence_spread = pm.HalfNormal("divergence_spread", p.divergence_spread)
    unit = pm.Normal("divergence_unit", 0, 1, dims="item")
    divergence = pm.Deterministic("divergence", pt.exp(divergence_spread * unit), dims="item")

    def line(log_g: NDArray[np.float64]) -> Any:
        return line_of(log_g, slope, rare_slope)

    def parts(log_g: NDArray[np.float64], scale: Any) -> Parts:
        """Log share, place and spread of the two parts."""
        logit = logit_of(log_g, share, share_slope)
        zero = pt.zeros_like(logit)  # type: ignore[no-untyped-call]
        return (
            (-pt.softplus(logit), zero, narrow * scale + zero),
            (-pt.softplus(-logit), zero - shift * scale, broad * scale + zero),
        )

    law = parts(data.token_log_g, divergence[data.token_item])
    residual = _mixture("residual", law, "token")
    target_narrow = pm.LogNormal("target_narrow", np.log(p.spread_median), p.log_spread)
    target_broad = target_narrow + pm.HalfNormal("target_broad", p.broad)
    target_shift, target_share = pm.Normal("target_shift", 0, p.shift), pm.Normal("target_share", 0, p.share)
    off = pm.Normal("target_level", 0, p.target_level)
    off += pm.Normal("target_slope", 0, p.target_slope) * (data.target_log_g + _CENTRE)
    zero = pt.zeros(data.item.size)
    own = _mixture(
        "target_residual",
        (
            (-pt.softplus(target_share) + zero, zero, target_narrow * divergence),
            (-pt.softplus(-target_share) + zero, -target_shift * divergence, target_broad * divergence),
        ),
        "item",
    )
    # of the pool what its tokens have, of the rest of the vocabulary what is expected
    of_rest = parts(data.bin_log_g, divergence[:, None])
    mean_exp = pt.logaddexp(*(log_share + place + spread**2 / 2 for log_share, place, spread in of_rest))  # type: ignore[no-untyped-call]
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
    _answers(data, place, law, target, token)
    return target, token


def line_of(log_g: NDArray[np.float64], slope: Any, rare_slope: Any) -> Any:
    """Regression of ln h/g on ln g, steeper or flatter for rare tokens; tensors or arrays that broadcast."""
    return slope * (log_g + _CENTRE) + rare_slope * np.maximum(-log_g - _RARE, 0)


def logit_of(log_g: NDArray[np.float64], share: Any, slope: Any) -> Any:
    """Logit of the share of the broad part of the residuals; tensors or arrays that broadcast."""
    return share + slope * (log_g + _CENTRE)


def _answers(data: FreeAnswerData, place: Any, law: Parts, target: Any, token: Any) -> None:
    """Free answers: how often each token of a pool, and each target, was answered."""
    n, entry = (values[data.token_item] for values in (data.n_answers, data.n_entry))
    log_entry = np.where(entry > 0, np.log(np.maximum(entry, 1)), NO_ANSWERS)
    missed = 1.0 - sum(
        pt.exp(log_share) * answered_share(log_entry + data.token_log_g + place + shift, spread)
        for log_share, shift, spread in law
    )
    not_drawn = draws_missed(data)
    log_in_pool = pt.log(pt.clip(1.0 - not_drawn * missed, _TINY, 1.0))
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
    return np.where(data.token_given, 0.0, np.exp(-drawn * np.exp(data.token_log_g)))


def _log_answers(value: Any, log_rate: Any, log_in_pool: Any, _not_drawn: Any) -> Any:
    """Log-probability of a Poisson count of a token that is in the pool."""
    return value * log_rate - pt.exp(pt.minimum(log_rate, 10.0)) - pt.gammaln(value + 1) - log_in_pool


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


def answered_share(log_rate: Any, spread: Any) -> Any:
    r"""Probability that a token is answered at least once, :math:`E[1 - \exp(-e^{t + s Z})]` with normal Z.

    :math:`1 - \exp(-e^v)` is taken as :math:`e^v \Phi((c_1 - v)/d_1) + a \Phi((v - c_2)/d_2) + (1-a) \Phi((v -
    c_3)/d_3)`, whose mean over a normal v is known. It is off by at most .3% of itself (fitted by least squares on
    v from -9 to 5).

    Parameters
    ----------
    log_rate : tensor
        t, ln of the expected number of answers where Z is 0.
    spread : tensor
        s, positive.

    Returns
    -------
    tensor
        Between 0 and 1.
    """
    variance = spread**2
    rare = pt.exp(pt.minimum(log_rate + variance / 2, 30.0)) * _normal_cdf(
        (-0.35862572 - log_rate - variance) / pt.sqrt(0.8429561**2 + variance)
    )
    first = 1.05828992 * _normal_cdf((log_rate - 0.37115652) / pt.sqrt(0.77588575**2 + variance))
    second = -0.05828992 * _normal_cdf((log_rate + 0.42919064) / pt.sqrt(1.27215753**2 + variance))
    return pt.clip(rare + first + second, _TINY, 1.0)


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


def _mixture(name: str, law: Parts, dim: str) -> Any:
    """Residuals that are a mixture of normals."""
    share, place, spread = (pt.stack([part[at] for part in law], axis=1) for at in range(3))
    return pm.NormalMixture(name, w=pt.exp(share), mu=place, sigma=spread, dims=dim)


def pool_table(data: FreeAnswerData) -> NDArray[np.intp]:
    """Places of every item's pool along (targets, tokens), (item, largest pool); a place after the last fills up."""
    n_items, n_tokens = data.item.size, data.token_item.size
    size = np.bincount(data.token_item, minlength=n_items)
    table = np.full((n_items, 1 + int(size.max(initial=0))), n_items + n_tokens, dtype=np.intp)
    table[:, 0] = np.arange(n_items)
    rank = np.arange(n_tokens) - np.repeat(np.cumsum(size) - size, size)
    table[data.token_item, 1 + rank] = n_items + np.arange(n_tokens)
    return table


def _normal_cdf(value: Any) -> Any:
    return pt.erfc(-value / _ROOT_2) / 2
