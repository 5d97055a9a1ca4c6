r"""Participants as noisy, miscalibrated, rounded views of one shared belief (level 2 of the report model)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from estimators.errors import InputError
from models.comparison.participant_data import ParticipantData, participant_data
from models.comparison.two_piece import draw
from models.comparison.two_piece_tensor import box_probability, log_density
from models.priors import check_priors

__all__ = [
    "ITEM_SCALE_BOUND",
    "SCALE_FLOOR",
    "SLOPE_BOUND",
    "ParticipantData",
    "ParticipantPriors",
    "added_noise",
    "participant_data",
    "participant_model",
    "participant_parameters",
    "random_box",
    "set_participant_data",
]

FAR = 1e4
"""Log-odds that stand for the infinite edges of the outermost boxes; a smaller one would be a cliff in the posterior of
somebody who answers 99% only, whose log-odds have no bound."""
TINY = 1e-12
"""Floor of the probability of an answer, which keeps the sampler moving where a start is far off."""

SCALE_FLOOR = 0.02
"""Smallest spread of an item, nats: players who differ from the generator nowhere have none."""
SLOPE_BOUND = 1.5
"""Largest deviation of ln slope."""
ITEM_SCALE_BOUND = 0.5
"""Largest deviation of an item's own ln spread."""


@dataclass(frozen=True)
class ParticipantPriors:
    """Scales of the priors of :func:`participant_model`, weak by default; nats or per nat.

    Attributes
    ----------
    mu, a, b, b2, c : float
        Standard deviations of normals around zero.
    ga_mean, ga : float
        Mean and standard deviation of ga. Log-ratios of two distributions over words have a longer tail to the left:
        a word can be as improbable as it likes, but not as probable.
    sigma, omega, t_b : float
        Scales of half-normals.
    kap_mean, kap : float
        Mean and standard deviation of kap.
    log_rho : float
        Standard deviation of ln rho.
    nu : float
        Degrees of freedom of the items' intercepts.
    slope_spread, bias_spread, noise_spread, lapse_spread : float
        Scales of half-normals for the spread over participants of ln slope, bias (nats), ln noise and logit lapse.
    noise_median, log_noise : float
        Median of the typical noise (nats of log-odds) and standard deviation of its logarithm.
    lapse_median, logit_lapse : float
        Median of the typical lapse rate and standard deviation of its logit.
    half_alpha, half_beta : float
        Beta prior of the share of the lapses that are "50%".
    delta : float
        Standard deviation of delta, by how many sigma the tokens never drawn may be off together; that of
        :class:`~models.comparison.belief.BeliefPriors`.
    """

    mu: float = 1.0
    a: float = 0.7
    b: float = 0.6
    b2: float = 0.3
    sigma: float = 1.5
    omega: float = 0.2
    c: float = 0.15
    t_b: float = 0.2
    kap_mean: float = 0.7
    kap: float = 0.6
    log_rho: float = 0.5
    nu: float = 5.0
    ga_mean: float = 0.1
    ga: float = 0.1
    slope_spread: float = 0.4
    bias_spread: float = 0.5
    noise_median: float = 0.9
    log_noise: float = 0.5
    noise_spread: float = 0.4
    lapse_median: float = 0.05
    logit_lapse: float = 0.7
    lapse_spread: float = 0.7
    half_alpha: float = 2.0
    half_beta: float = 2.0
    delta: float = 0.15

    def __post_init__(self) -> None:
        check_priors(self, "participant priors", any_sign=("kap_mean", "ga_mean"), shares=("lapse_median",))


def participant_model(
    data: ParticipantData, priors: ParticipantPriors | None = None, *, scale: float = 1.0
) -> pm.Model:
    r"""Build the participant model.

    The shared belief is that of :func:`models.comparison.belief.belief_model` without its term for frequent words,
    which made the loss of players with known loss worse on the questions that people were asked. With
    :math:`D_{qx} = \ln h(x)/h(y) = v_{qx} + \ln g(x)/g(y)`,

    .. math::

        s_q^2 &= (\sigma e^{\beta(\omega z_q) + c (E_q - 4)})^2 + 0.02^2 \\
        A_q &\sim \mathrm{StudentT}_5\!\left(\mu + a (L_q + 3) - t_b \zeta_q (L_q + 5)
               - \kappa s_q^2 / 2,\ \rho s_q\right) \\
        v_{qx} &= A_q + (b + t_b \zeta_q)(\ln g(x) + 5) + b_2 \max(-\ln g(x) - 7, 0) + e_{qx}

    with *e* the mean-zero two-piece normal (:mod:`models.comparison.two_piece`) of scales :math:`s_q e^{\gamma}` on the
    left and
    :math:`s_q e^{-\gamma}` on the right, and :math:`\beta(u) = \tfrac12 \tanh 2u`: what an item's own spread can be is
    bounded, because noisy reports say little of it and :math:`e^{s^2/2}` enters the loss. Participant *u* puts on the
    target the log-odds

    .. math::

        \mathrm{logit}\, r = k_u (-D_{qx} + \mathrm{bias}_u) + \mathrm{Normal}(0, \mathrm{noise}_u)

    of which only the box of the grid is seen. With probability :math:`\mathrm{lapse}_u` the answer has nothing to do
    with the belief: "50%" with probability *half*, otherwise any box. All four parameters are partially pooled over
    participants: :math:`\ln k_u`, bias (Student t with 4 degrees of freedom), ln noise and logit lapse.

    Identification. Reports alone do not say how large the log-odds D are: slopes twice as steep of a belief half as
    strong give the same answers. The geometric mean of the slopes is therefore a constant, `scale`, called k0; bias
    that all share is the items' intercept :math:`\mu`, so that the mean bias is zero. Deviations of ln k are bounded at
    1.5, since an unbounded slope drifts off where a participant answers at the ends of the grid alone. Where k0 comes
    from is for :mod:`inference.comparison.participant_fit` to decide: assumed, or from which of the tokens were true
    (the outcome anchor). It never enters here, as the likelihood of these reports is given which token is y, and would
    use the outcomes twice.

    No answer bears on :math:`\delta`, the discrepancy of tokens never drawn, as in the belief model:
    :mod:`inference.comparison.participant_gap` adds :math:`\sigma \delta` to all of theirs.

    Only pairs with several answers have a residual that is sampled; a pair with one has it integrated out. The sum of
    :math:`-k_u e` and the noise is taken as the two-piece normal with its mean, variance and third moment.

    Parameters
    ----------
    data : ParticipantData
    priors : ParticipantPriors, optional
    scale : float
        k0, the geometric mean of the slopes.

    Returns
    -------
    pymc.Model
        Dims ``item``, ``pair``, ``shared_pair``, ``participant`` and ``row``; observed variable ``box``. Answers and
        scale are data that :func:`set_participant_data` exchanges.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import comparison_study
    >>> model = models.participant_model(models.participant_data(comparison_study()))
    >>> [variable.name for variable in model.observed_RVs]
    ['box']
    >>> model.named_vars_to_dims["slope"]
    ('participant',)
    """
    p = priors or ParticipantPriors()
    coords = {
        "item": data.item,
        "participant": data.participant,
        "row": np.arange(data.row_pair.size),
        "pair": np.arange(data.pair_item.size),
        "shared_pair": np.arange(data.n_shared),
    }
    with pm.Model(coords=coords) as model:
        for name in ("pair_item", "pair_log_g", "pair_n_shown"):
            pm.Data(name, getattr(data, name), dims="pair")
        for name in ("target_log_g", "surprisal", "unseen_mass", "n_same"):
            pm.Data(name, getattr(data, name), dims="item")
        mean, s = _belief(data, p)
        ga = pm.Normal("ga", p.ga_mean, p.ga)
        # residuals of the pairs with several answers; the others' are integrated out
        e_unit = pm.CustomDist(
            "e_unit", pt.exp(ga), pt.exp(-ga), logp=_unit_density, random=_unit_draw, dims="shared_pair"
        )
        pair_s = s[data.pair_item]
        n = data.n_shared
        log_ratio = pt.join(0, mean[:n] + pair_s[:n] * e_unit, mean[n:])  # type: ignore[no-untyped-call]
        open_s = pt.join(0, pt.zeros(n), pair_s[n:])  # type: ignore[no-untyped-call]
        _reports(data, p, log_ratio + data.pair_log_g_ratio, (open_s, ga), scale)
    model.participant_grid = data.box_edges
    return model


def _belief(data: ParticipantData, p: ParticipantPriors) -> tuple[Any, Any]:
    """Mean of v for every pair, and spread of v in every item."""
    mu = pm.Normal("mu", 0, p.mu)
    a = pm.Normal("a", 0, p.a)
    b = pm.Normal("b", 0, p.b)
    b2 = pm.Normal("b2", 0, p.b2)
    sigma = pm.HalfNormal("sigma", p.sigma)
    omega = pm.HalfNormal("omega", p.omega)
    c = pm.Normal("c", 0, p.c)
    t_b = pm.HalfNormal("t_b", p.t_b)
    kap = pm.Normal("kap", p.kap_mean, p.kap)
    rho = pm.LogNormal("rho", 0, p.log_rho)
    pm.Normal("delta", 0, p.delta)
    z = pm.Normal("z", 0, 1, dims="item")
    zeta = pm.Normal("zeta", 0, 1, dims="item")
    own = ITEM_SCALE_BOUND * pt.tanh(omega * z / ITEM_SCALE_BOUND)
    variance = (sigma * pt.exp(own + c * (data.surprisal - 4))) ** 2 + SCALE_FLOOR**2
    s = pm.Deterministic("s", pt.sqrt(variance), dims="item")
    logit = data.target_logit
    place = mu + a * (logit + 3) - t_b * zeta * (logit + 5) - kap * variance / 2
    unit = pm.StudentT("A_unit", nu=p.nu, mu=0, sigma=1, dims="item")
    intercept = pm.Deterministic("A", place + rho * s * unit, dims="item")
    slope = (b + t_b * zeta)[data.pair_item]
    beyond = np.maximum(-data.pair_log_g - 7, 0)
    mean = intercept[data.pair_item] + slope * (data.pair_log_g + 5) + b2 * beyond
    return mean, s


def _reports(
    data: ParticipantData, p: ParticipantPriors, log_ratio: Any, open_residual: tuple[Any, Any], scale: float
) -> None:
    """Participants and their answers, given D of every pair, and scale and skew of what is still to be added to it."""
    row_pair = pm.Data("row_pair", data.row_pair, dims="row")
    row_participant = pm.Data("row_participant", data.row_participant, dims="row")
    row_box = pm.Data("row_box", data.row_box, dims="row")
    # participants that are left out keep their parameters, but do not count in what is centred
    present = pm.Data("present", data.answers.astype(float), dims="participant")
    k0 = pm.Data("k0", np.float64(scale))
    slope, bias, noise, lapse, half = participant_parameters(p, k0, present)
    k = slope[row_participant]
    centre = k * (bias[row_participant] - log_ratio[row_pair])
    open_s, ga = open_residual
    left, right = added_noise(
        k * open_s[row_pair] * pt.exp(-ga), k * open_s[row_pair] * pt.exp(ga), noise[row_participant]
    )
    edges = np.clip(data.box_edges, -FAR, FAR)
    pm.CustomDist(
        "box",
        centre,
        left,
        right,
        lapse[row_participant],
        half,
        logp=partial(_log_box, edges=edges, half_box=data.half_box),
        random=partial(random_box, edges=edges, half_box=data.half_box),
        observed=row_box,
        dims="row",
        dtype="int64",
    )


def participant_parameters(
    p: ParticipantPriors, k0: Any, present: Any, *, mean_bias: bool = False
) -> tuple[Any, Any, Any, Any, Any]:
    """Slope, bias, noise and lapse rate of every participant, partially pooled, and the share of lapses at "50%".

    Parameters
    ----------
    p : ParticipantPriors
    k0 : tensor
        Geometric mean of the slopes.
    present : tensor, shape (participant,)
        1 for those who count in what is centred, else 0.
    mean_bias : bool
        Whether the biases of these participants may have a mean; else it is 0, and what they share is in the belief.
    """

    def centred(values: Any) -> Any:
        return values - (present * values).sum() / present.sum()

    slope_spread = pm.HalfNormal("slope_spread", p.slope_spread)
    slope_unit = pm.Normal("slope_unit", 0, 1, dims="participant")
    deviation = SLOPE_BOUND * pt.tanh(slope_spread * slope_unit / SLOPE_BOUND)
    slope = pm.Deterministic("slope", k0 * pt.exp(centred(deviation)), dims="participant")
    bias_spread = pm.HalfNormal("bias_spread", p.bias_spread)
    bias_unit = pm.StudentT("bias_unit", nu=4, mu=0, sigma=1, dims="participant")
    biases = bias_spread * bias_unit
    bias = pm.Deterministic("bias", biases if mean_bias else centred(biases), dims="participant")
    log_noise = pm.Normal("log_noise", np.log(p.noise_median), p.log_noise)
    noise_spread = pm.HalfNormal("noise_spread", p.noise_spread)
    noise_unit = pm.Normal("noise_unit", 0, 1, dims="participant")
    noise = pm.Deterministic("noise", pt.exp(log_noise + noise_spread * noise_unit), dims="participant")
    logit_lapse = pm.Normal("logit_lapse", np.log(p.lapse_median / (1 - p.lapse_median)), p.logit_lapse)
    lapse_spread = pm.HalfNormal("lapse_spread", p.lapse_spread)
    lapse_unit = pm.Normal("lapse_unit", 0, 1, dims="participant")
    lapse = pm.Deterministic("lapse", pm.math.sigmoid(logit_lapse + lapse_spread * lapse_unit), dims="participant")
    half = pm.Beta("half", p.half_alpha, p.half_beta)
    return slope, bias, noise, lapse, half


def set_participant_data(model: pm.Model, data: ParticipantData, *, scale: float) -> None:
    """Put other answers and another scale into a model, so that it need not be compiled again.

    Parameters
    ----------
    model : pymc.Model
        From :func:`participant_model`.
    data : ParticipantData
        With the items, pairs and participants of the model, but any answers
        (:func:`~models.comparison.participant_data.with_reports`,
        :func:`~models.comparison.participant_data.without_participants`).
    scale : float
        k0.

    Raises
    ------
    InputError
        If items, pairs, participants or the grid differ, or the scale is not positive.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import comparison_study
    >>> data = models.participant_data(comparison_study())
    >>> model = models.participant_model(data)
    >>> models.set_participant_data(model, models.without_participants(data, [data.participant[0]]), scale=0.8)
    >>> float(model["k0"].get_value())
    0.8
    """
    shared_pair = np.arange(data.n_shared)
    for field, old, new in (
        ("items", model.coords["item"], data.item),
        ("participants", model.coords["participant"], data.participant),
        ("pairs", model["pair_item"].get_value(), data.pair_item),
        ("pairs", model["pair_log_g"].get_value(), data.pair_log_g),
        ("pairs with several answers", model.coords["shared_pair"], shared_pair),
        ("values of the grid", model.participant_grid, data.box_edges),
    ):
        if not np.array_equal(old, new):
            raise InputError("are not those of the model", source=f"study {data.study!r}", field=field)
    if not (np.isfinite(scale) and scale > 0):
        raise InputError(f"is {scale}, should be a positive number", field="scale")
    row = {"row": np.arange(data.row_pair.size)}
    # the dim grows or shrinks with the first of its variables, and PyMC warns of the others
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ShapeWarning)
        model.set_data("row_pair", data.row_pair, coords=row)
        model.set_data("row_participant", data.row_participant, coords=row)
        model.set_data("row_box", data.row_box, coords=row)
        model.set_data("present", data.answers.astype(float))
        model.set_data("k0", np.float64(scale))


def added_noise(left: Any, right: Any, noise: Any) -> tuple[Any, Any]:
    r"""Scales of the two-piece normal that is near to the sum of a two-piece normal and a normal.

    Mean, variance and third moment agree: with :math:`\delta = s_R - s_L` a two-piece normal has the variance
    :math:`(1 - 2/\pi) \delta^2 + s_L s_R` and the third moment
    :math:`\sqrt{2/\pi}\, \delta ((4/\pi - 1) \delta^2 + s_L s_R)`; a normal adds to the first only. The new
    :math:`\delta` solves a cubic, whose leading terms are kept: for \|ln s_R/s_L\| up to .6 the third moment is met to
    1%.

    Parameters
    ----------
    left, right, noise : array_like or tensor, one shape
        Scales of the two pieces, and standard deviation of the normal.

    Returns
    -------
    tuple
        Scales of the new pieces.
    """
    delta, product = right - left, left * right
    variance = (1 - 2 / np.pi) * delta**2 + product + noise**2
    third = delta * ((4 / np.pi - 1) * delta**2 + product)
    first = third / variance
    skew = first * (1 + (2 - 6 / np.pi) * first**2 / variance)
    rest = variance - (1 - 2 / np.pi) * skew**2
    root = (skew**2 + 4 * rest) ** 0.5
    return (root - skew) / 2, (root + skew) / 2


def _unit_density(value: Any, left: Any, right: Any) -> Any:
    return log_density(value, 0.0, left, right)


def _unit_draw(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    rng: np.random.Generator,
    size: tuple[int, ...] | None = None,
) -> NDArray[np.float64]:
    shape = np.broadcast_shapes(np.shape(left), np.shape(right)) if size is None else size
    return draw(np.broadcast_to(left, shape), np.broadcast_to(right, shape), rng)


def _log_box(value: Any, *parameters: Any, edges: NDArray[np.float64], half_box: int) -> Any:
    """Log-probability of a box."""
    centre, left, right, lapse, half = parameters
    low, high = (pt.as_tensor(edges[:, side])[value] for side in (0, 1))
    slip = half * pt.eq(value, half_box) + (1 - half) / len(edges)
    inside = box_probability(centre, left, right, low, high)
    return pt.log((1 - lapse) * inside + lapse * slip + TINY)


def random_box(
    *parameters: NDArray[np.float64],
    rng: np.random.Generator,
    size: tuple[int, ...] | None = None,
    edges: NDArray[np.float64],
    half_box: int,
) -> NDArray[np.int64]:
    """Draw boxes: of two-piece noise around a centre, or of a lapse."""
    shape = np.broadcast_shapes(*map(np.shape, parameters)) if size is None else size
    centre, left, right, lapse, half = (np.broadcast_to(x, shape) for x in parameters)
    box = np.searchsorted(edges[1:, 0], centre + draw(left, right, rng))
    slipped = np.where(rng.random(shape) < half, half_box, rng.integers(0, len(edges), shape))
    return np.where(rng.random(shape) < lapse, slipped, box).astype(np.int64)
