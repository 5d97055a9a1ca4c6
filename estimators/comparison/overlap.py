r"""Do draws and answers overlap enough for a bridge? What its verdict rests on.

The bridge's standard error is that of an item where as many draws as the effective ones,
:math:`\frac{n_g n_h}{n} O`, came from both sides; where they are few, ln Z is interpolated and not measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimators.comparison.bridge import BridgeMeans
from estimators.comparison.diagnostics import Verdict, WeightDiagnostics
from estimators.comparison.study_sources import TARGET_POSITION

__all__ = ["OverlapDiagnostics", "diagnose_overlap", "overlap_verdict"]

_SE_STARVED_NATS = 1.0
"""An item whose standard error is larger is starved: its draws and answers hardly overlap."""


@dataclass(frozen=True, repr=False)
class OverlapDiagnostics(WeightDiagnostics):
    """What draws and answers say about the bridge between them.

    Attributes
    ----------
    pareto_k : float
        NaN: no weight of a bridge is unbounded.
    kl_nats : float
        KL(h || g): mean over items of the mean of ln h - ln g over their answers.
    n_required : float
        Draws and answers together that 90% of the items need for a standard error of one nat.
    share_starved : float
        Share of items that have a larger one.
    verdict : {"enough draws", "doubtful", "too few"}
        See :func:`overlap_verdict`.
    overlap : float
        Mean over items of :class:`~estimators.comparison.bridge.BridgeMeans`'s.
    effective_draws : float
        Median over items of n O: the draws and answers that could have come from either side.
    share_without_overlap : float
        Share of items with fewer than one such draw.
    share_unknown_answers : float
        Share of the answers that were left out because no report says how probable they are.
    n_one_sided : int
        Items left out, which have draws or answers only.
    noise_bias : float
        Bias of the gap that small independent noise of the log-ratios makes, in nats for a variance of one square nat:
        one half with draws alone (importance sampling), zero for a bridge in balance, minus one half with answers
        alone.

    Examples
    --------
    >>> from estimators import comparison
    >>> means = comparison.bridge_log_means([0.3, -0.2, 0.9, 0.1], [0] * 4, [False, False, True, True])
    >>> found = comparison.diagnose_overlap(means, [0.3, -0.2, 0.9, 0.1], [False, False, True, True])
    >>> round(found.overlap, 2), found.verdict
    (0.96, 'enough draws')
    """

    overlap: float
    effective_draws: float
    share_without_overlap: float
    share_unknown_answers: float
    n_one_sided: int
    noise_bias: float


def diagnose_overlap(
    means: BridgeMeans,
    log_weight: ArrayLike,
    answered: ArrayLike,
    *,
    token: ArrayLike | None = None,
    share_unknown_answers: float = 0.0,
) -> OverlapDiagnostics:
    """Describe the overlap of draws and answers; see :class:`OverlapDiagnostics`.

    Parameters
    ----------
    means : BridgeMeans
    log_weight, answered : array_like, shape (draw,)
        What they were made of (:func:`~estimators.comparison.bridge.bridge_log_means`).
    token : array_like of int, shape (draw,), optional
        Code of the token within its item, -1 for the target, whose log-ratio has no noise: draws of one token share
        theirs. By default every draw has its own.
    share_unknown_answers : float, optional
        Answers left out beforehand.

    Returns
    -------
    OverlapDiagnostics

    Examples
    --------
    >>> from estimators import comparison
    >>> u, answered = [0.0, 9.0, 0.0, 9.0], [False, False, True, True]
    >>> means = comparison.bridge_log_means(u, [0, 0, 1, 1], [False, True, False, True])
    >>> comparison.diagnose_overlap(means, u, [False, True, False, True]).verdict
    'too few'
    """
    BridgeMeans.require(means=means)
    used = means.item >= 0
    item, u = means.item[used], np.asarray(log_weight, dtype=float)[used]
    is_answer, chance = np.asarray(answered, dtype=bool)[used], means.p_answer[used]
    n_items = means.label.size
    n = means.n_drawn + means.n_answered
    kl = np.bincount(item[is_answer], (u - means.value[item])[is_answer], minlength=n_items) / means.n_answered
    code = np.arange(item.size) if token is None else np.asarray(token)[used]
    with np.errstate(divide="ignore", invalid="ignore"):
        required = np.maximum(1 / means.overlap - 1, 0.0) * n**2 / (means.n_drawn * means.n_answered)
    effective = n * means.overlap
    starved = float(np.mean(~(means.se <= _SE_STARVED_NATS)))
    return OverlapDiagnostics(
        pareto_k=float("nan"),
        kl_nats=float(kl.mean()),
        n_required=float(np.quantile(required, 0.9)),
        share_starved=starved,
        verdict=overlap_verdict(starved, share_unknown_answers, means.n_one_sided / (means.n_one_sided + n_items)),
        overlap=float(means.overlap.mean()),
        effective_draws=float(np.median(effective)),
        share_without_overlap=float(np.mean(effective < 1)),
        share_unknown_answers=share_unknown_answers,
        n_one_sided=means.n_one_sided,
        noise_bias=_noise_bias(chance, item, code, n_items),
    )


def overlap_verdict(share_starved: float, share_unknown_answers: float, share_one_sided: float) -> Verdict:
    """Whether draws and answers are enough for a bridge, with the limits of importance sampling's verdict.

    ``too few`` if over a tenth of the items are starved or left out, or over a tenth of the answers; ``doubtful`` if
    over a hundredth are; ``enough draws`` otherwise. What is left out is not left out at random: answers that nobody
    was asked about are those that are improbable under the generator.

    Parameters
    ----------
    share_starved, share_unknown_answers : float
        As in :class:`OverlapDiagnostics`.
    share_one_sided : float
        Share of the items that have draws or answers only.

    Returns
    -------
    {"enough draws", "doubtful", "too few"}

    Examples
    --------
    >>> from estimators import comparison
    >>> comparison.overlap_verdict(0.0, 0.05, 0.0)
    'doubtful'
    """
    worst = max(share_starved, share_unknown_answers, share_one_sided)
    return "too few" if worst > 0.1 else "doubtful" if worst > 0.01 else "enough draws"


def _noise_bias(chance: NDArray[np.float64], item: NDArray[np.intp], token: NDArray[np.intp], n_items: int) -> float:
    r"""Half the sum over tokens of the second derivative of ln Z by their log-ratio, mean over items.

    With :math:`a = P_h (1 - P_h)`, :math:`b = a (1 - 2 P_h)`, both over the item's sum of a, and sums :math:`a_x, b_x`
    over the draws of a token, it is :math:`b_x - 2 a_x b_x + a_x^2 \sum b`.
    """
    slope = chance * (1 - chance)
    total = np.bincount(item, slope, minlength=n_items)[item]
    fine = total > 0
    if not fine.any():
        return float("nan")
    a, b = slope[fine] / total[fine], slope[fine] * (1 - 2 * chance[fine]) / total[fine]
    item, token = item[fine], token[fine]
    cells, cell = np.unique(np.stack([item, token]), axis=1, return_inverse=True)
    cell = cell.ravel()
    of_a, of_b = np.bincount(cell, a), np.bincount(cell, b)
    of_item = np.bincount(item, b, minlength=n_items)[cells[0]]
    noisy = cells[1] != TARGET_POSITION
    curvature = (of_b - 2 * of_a * of_b + of_a**2 * of_item)[noisy]
    return float(curvature.sum() / 2 / np.unique(item).size)
