r"""How participants come to their reports: shared evidence, then each one's bias, slope, noise and lapses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from shannon_game.models.comparison.calibration_data import ReportData, binary_reports, reports_on_truth, with_reports
from shannon_game.models.priors import check_priors

__all__ = [
    "ReportData",
    "ReportPriors",
    "binary_reports",
    "draw_reports",
    "report_model",
    "reports_on_truth",
    "with_reports",
]

_FAR = 1e3
_AT_HALF = 1e-12
# A participant who always reports the top is either very biased or of a huge slope: two modes, of which the second is
# no person (a slope 14 times the others'); nobody's slope is more than 4.5 times the typical one.
_SLOPE_BOUND = 1.5


@dataclass(frozen=True)
class ReportPriors:
    """Priors of :func:`report_model`, weak by default; log-odds in nats.

    Attributes
    ----------
    strength_median, log_strength : float
        Median of the strength d of the shared evidence and standard deviation of its logarithm. d = 1 lets an ideal
        observer be right in 69% of the questions, .5 in 60%, 2 in 84%.
    slope_median, log_slope : float
        Median of the typical slope and standard deviation of its logarithm.
    slope_spread : float
        Scale of the half-normal for the spread of ln slope over participants.
    bias : float
        Standard deviation of the mean bias; used only where the labelled option can be false.
    bias_spread_median, log_bias_spread : float
        Median of the spread of the biases and standard deviation of its logarithm.
    bias_nu : float
        Degrees of freedom of the biases: small values allow for single unusual participants.
    noise_median, log_noise, noise_spread : float
        As for the slope.
    lapse_median, logit_lapse, lapse_spread : float
        Median of the typical lapse rate, standard deviation of its logit, and scale of the half-normal for the spread.
    half_alpha, half_beta : float
        Beta prior of the share of the lapses that are "50%".
    """

    strength_median: float = 1.0
    log_strength: float = 0.5
    slope_median: float = 1.0
    log_slope: float = 0.5
    slope_spread: float = 0.4
    bias: float = 0.5
    bias_spread_median: float = 0.3
    log_bias_spread: float = 0.5
    bias_nu: float = 4.0
    noise_median: float = 1.2
    log_noise: float = 0.4
    noise_spread: float = 0.4
    lapse_median: float = 0.05
    logit_lapse: float = 0.7
    lapse_spread: float = 0.7
    half_alpha: float = 2.0
    half_beta: float = 2.0

    def __post_init__(self) -> None:
        check_priors(self, "report priors", shares=("lapse_median",))


def report_model(data: ReportData, priors: ReportPriors | None = None) -> pm.Model:
    r"""Build the model of the reports, given which option is true.

    A question carries evidence, the log-likelihood ratio :math:`x` of the labelled option being true. Evidence that is
    normal and means what it says is :math:`x \sim \mathrm N(\pm d^2/2, d)` with + where the option is true (Green and
    Swets 1966: then P(true | x) = sigmoid(x)); rows about the same question share it. The reported log-odds are

    .. math::

        L = b_u + k_u\, x + s_u\, \epsilon, \qquad \epsilon \sim \mathrm N(0, 1),

    censored to the boxes that could be reported, and with probability :math:`\pi_u` replaced by a lapse: "50%" with
    probability *half_share*, else any box alike (any probability, where reports are not rounded). Bias is
    :math:`b_u \sim \mathrm T_\nu(\bar b, \tau_b)`; :math:`\ln k_u`, :math:`\ln s_u` and :math:`\mathrm{logit}\,\pi_u`
    are normal and non-centred, but :math:`\ln k_u` stays within 1.5 of its mean. The evidence of a question that one
    row has alone is marginalised: its :math:`k_u d` adds to the noise.

    **What is identified.** A single row's L is normal given the truth, with mean :math:`b_u \pm k_u d^2/2` and
    variance :math:`k_u^2 d^2 + s_u^2`: two numbers for k, s and d. So without shared questions slope and noise cannot
    be told apart, and their split is the prior's (the width of the posterior shows it). With shared questions the
    covariance of two participants' reports is :math:`k_u k_w d^2`, and three moments give all three. Noise
    is then *everything that a participant does not share with the others*, private knowledge included. The scale of the
    evidence rests on the assumption that it is normal with variance equal to twice its mean; slopes
    relative to each other, noise, lapses and the sum of bias and mean evidence do not.

    **What the bias is.** Where the label was settled without the truth (the option on the left), it is a preference
    for it. Where the label is the truth (``data.on_truth``: the comparison game, whose sides are not stored) nobody
    could see the label, so that it cannot be a preference: a positive bias is knowledge that the others lack,
    a negative one is to be misled more. Its mean is fixed at 0 there: the population's is what the evidence measures.

    Parameters
    ----------
    data : ReportData
    priors : ReportPriors, optional

    Returns
    -------
    pymc.Model
        Dims ``participant``, ``question`` (shared ones; absent if there is none) and ``response``; observed variable
        ``report`` (box positions, or log-odds); ``bias``, ``slope``, ``noise``, ``lapse`` by participant.

    Examples
    --------
    >>> from shannon_game import models
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> model = models.report_model(models.reports_on_truth(comparison_study(), "interface"))
    >>> model.named_vars_to_dims["report"], model.named_vars_to_dims["noise"]
    (('response',), ('participant',))
    """
    p = priors or ReportPriors()
    coords: dict[str, Any] = {"participant": data.participant, "response": data.row}
    if data.n_questions:
        coords["question"] = np.arange(data.n_questions)
    with pm.Model(coords=coords) as model:
        person = pm.Data("person", data.person, dims="response")
        direction = pm.Data("direction", data.direction, dims="response")

        strength = pm.LogNormal("strength", np.log(p.strength_median), p.log_strength)
        bias_mean: Any = 0.0 if data.on_truth else pm.Normal("bias_mean", 0, p.bias)
        bias_spread = pm.LogNormal("bias_spread", np.log(p.bias_spread_median), p.log_bias_spread)
        bias = pm.StudentT("bias", nu=p.bias_nu, mu=bias_mean, sigma=bias_spread, dims="participant")
        slope = pm.Deterministic(
            "slope",
            pt.exp(_pooled("log_slope", np.log(p.slope_median), p.log_slope, p.slope_spread, bound=_SLOPE_BOUND)),
            dims="participant",
        )
        noise = pm.Deterministic(
            "noise",
            pt.exp(_pooled("log_noise", np.log(p.noise_median), p.log_noise, p.noise_spread)),
            dims="participant",
        )
        odds = np.log(p.lapse_median / (1 - p.lapse_median))
        lapse = pm.Deterministic(
            "lapse", pm.math.invlogit(_pooled("logit_lapse", odds, p.logit_lapse, p.lapse_spread)), dims="participant"
        )
        half_share = pm.Beta("half_share", p.half_alpha, p.half_beta)

        evidence: Any = direction * strength**2 / 2
        variance: Any = noise[person] ** 2
        is_alone = data.question < 0
        if data.n_questions:
            unit = pm.Normal("evidence_unit", 0, 1, dims="question")
            shared = pm.Data("shared_question", np.maximum(data.question, 0), dims="response")
            evidence = evidence + strength * unit[shared] * (~is_alone)
        variance = variance + (slope[person] * strength) ** 2 * is_alone
        mean = bias[person] + slope[person] * evidence
        _observe(data, mean, pt.sqrt(variance), lapse[person], half_share)
    return model


def _pooled(name: str, mean: float, mean_sd: float, spread_scale: float, *, bound: float | None = None) -> Any:
    """Participants' values around an unknown mean, non-centred; `bound` keeps the deviations inside softly."""
    centre = pm.Normal(f"{name}_mean", mean, mean_sd)
    spread = pm.HalfNormal(f"{name}_spread", spread_scale)
    deviation = spread * pm.Normal(f"{name}_unit", 0, 1, dims="participant")
    return centre + (deviation if bound is None else bound * pt.tanh(deviation / bound))


def _observe(data: ReportData, mean: Any, sd: Any, lapse: Any, half_share: Any) -> None:
    def random(mean: Any, sd: Any, lapse: Any, half_share: Any, rng: Any, size: Any = None) -> NDArray[Any]:  # noqa: PLR0917 - PyMC's order
        return draw_reports(data.edges, mean=mean, sd=sd, lapse=lapse, half_share=half_share, rng=rng, size=size)

    observe = partial(
        pm.CustomDist, "report", mean, sd, lapse, half_share, random=random, observed=data.report, dims="response"
    )
    if data.is_raw:
        observe(logp=_raw_log_density)
        return
    # the distances to infinite edges stay finite, so that no gradient is infinity times zero
    edges = np.clip(data.edges, -_FAR, _FAR)
    half = _half_boxes(data.edges)

    def log_probability(value: Any, mean: Any, sd: Any, lapse: Any, half_share: Any) -> Any:
        box = pt.cast(value, "int64")
        low = (pt.as_tensor(edges)[box] - mean) / sd
        high = (pt.as_tensor(edges)[box + 1] - mean) / sd
        inside = normal_box_probability(low, high)
        slip = half_share * pt.as_tensor(half)[box] + (1 - half_share) / half.size
        return pt.log((1 - lapse) * inside + lapse * slip)

    observe(logp=log_probability, dtype="int64")


def _raw_log_density(value: Any, mean: Any, sd: Any, lapse: Any, half_share: Any) -> Any:
    """Density of the log-odds; exactly 0 (a report of 50%) is an atom that only lapses reach."""
    normal = -0.5 * ((value - mean) / sd) ** 2 - pt.log(sd) - 0.5 * np.log(2 * np.pi)
    # a uniform probability is logistic log-odds
    logistic = -value - 2 * pt.softplus(-value)
    slip = pt.log(lapse) + pt.log1p(-half_share) + logistic
    spread = pt.logaddexp(pt.log1p(-lapse) + normal, slip)  # type: ignore[no-untyped-call]
    return pt.switch(pt.eq(value, 0), pt.log(lapse) + pt.log(half_share), spread)


def draw_reports(
    edges: NDArray[np.float64],
    *,
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
    lapse: NDArray[np.float64],
    half_share: NDArray[np.float64],
    rng: np.random.Generator,
    size: tuple[int, ...] | None = None,
) -> NDArray[Any]:
    """Draw reports; what the model's own prior and posterior predictions use.

    Parameters
    ----------
    edges : ndarray, shape (box + 1,)
        Log-odds between the boxes; empty where reports are not rounded.
    mean, sd, lapse, half_share : ndarray, shapes that broadcast
        Mean and standard deviation of the reported log-odds, lapse rate, share of the lapses that are "50%".
    rng : numpy.random.Generator
    size : tuple of int, optional
        Shape of the result; by default the one to which the others broadcast.

    Returns
    -------
    ndarray
        Positions of boxes (int), or log-odds (float).
    """
    parts = (mean, sd, lapse, half_share)
    shape = np.broadcast_shapes(*(np.shape(part) for part in parts), *(() if size is None else (tuple(size),)))
    latent = mean + sd * rng.standard_normal(shape)
    is_lapse = rng.random(shape) < lapse
    is_half = rng.random(shape) < half_share
    if edges.size == 0:
        return np.where(is_lapse, np.where(is_half, 0.0, rng.logistic(size=shape)), latent)
    half = _half_boxes(edges)
    slip = np.where(is_half, rng.choice(half.size, p=half, size=shape), rng.integers(0, half.size, shape))
    box = np.searchsorted(edges[1:-1], latent, side="left")
    return np.where(is_lapse, slip, box).astype(np.int64)


def _half_boxes(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of a "50%" lapse that each box gets: all to the box around one half, or half to each that meets there."""
    touches = (edges[:-1] <= _AT_HALF) & (edges[1:] >= -_AT_HALF)
    share: NDArray[np.float64] = touches / touches.sum()
    return share


def normal_box_probability(low: Any, high: Any) -> Any:
    """Probability that a standard normal lies between two edges; far ones should be finite, or there is no gradient."""
    # both tails as lower ones, where the CDF keeps its relative precision
    flip = pt.switch(low + high > 0, -1.0, 1.0)
    return pt.abs(pt.erfc(-flip * high / np.sqrt(2)) - pt.erfc(-flip * low / np.sqrt(2))) / 2
