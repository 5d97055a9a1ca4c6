"""Standard errors of the mean gap of a bridge: what participants have in common, and noise of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from estimators.comparison.bridge import BridgeMeans
from estimators.comparison.chains import TokenLogRatios
from estimators.comparison.study_tokens import compared_tokens
from estimators.layout import response_positions

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["clustered_se", "report_se"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def clustered_se(
    study: xr.Dataset,
    means: BridgeMeans,
    code: IntArray,
    *,
    position: IntArray,
    token: IntArray,
    who: NDArray[np.object_],
    answered: NDArray[np.bool_],
) -> float:
    r"""Standard error of the mean gap with clusters of items and of participants.

    .. math:: V = V_{items} + V_{participants} - V_{participants \times items}

    The influence of a draw or an answer on its item's ln Z is :math:`(P_h - \bar P_h) / \sum P_h (1 - P_h)`, the mean
    over draws of its own kind. It belongs to those who compared the token, in equal parts, and an answer's to who gave
    it too. Where participants have nothing in common on different items, the last two terms cancel.

    `code` (item, candidate) is from :func:`~estimators.comparison.study_tokens.candidate_tokens`; `position` and
    `token` (draw,) are the place and token of every draw and answer, `who` (answer,) gave the answers, which come last
    among the draws. At least that of items alone, nats; NaN for one item or one participant.
    """
    n_items = means.label.size
    if n_items < 2:
        return float("nan")
    influence = _influence(means, answered) / n_items
    at_response, share = _per_response(study, code, position, token, influence)
    people, names = np.unique(
        np.concatenate([study["participant"].values[at_response[1]], who]).astype(str), return_inverse=True
    )
    if people.size < 2:
        return float("nan")
    where = np.concatenate([at_response[0], position[answered]])
    value = np.concatenate([share, influence[answered]])
    _, cell_item = np.unique(where, return_inverse=True)
    size = int(cell_item.max()) + 1 if cell_item.size else 0
    cells = np.bincount(names * size + cell_item, value, minlength=people.size * size).reshape(people.size, size)
    of_items = float(np.sum((means.value - means.value.mean()) ** 2)) / n_items**2
    shared = float(np.sum(cells.sum(axis=1) ** 2) - np.sum(cells**2))
    return float(np.sqrt(of_items + max(shared, 0.0)))


def report_se(
    study: xr.Dataset, means: BridgeMeans, ratios: TokenLogRatios, position: IntArray, token: IntArray
) -> float:
    """Standard error of the mean gap from the noise of the reports; NaN where their variance is not known."""
    if not np.isfinite(ratios.variance):
        return float("nan")
    slope = means.p_answer * (1 - means.p_answer)
    used = (means.item >= 0) & (token >= 0)
    total = np.bincount(means.item[means.item >= 0], slope[means.item >= 0], minlength=means.label.size)
    derivative = np.zeros((study.sizes["item"], study.sizes["candidate"]))
    np.add.at(derivative, (position[used], token[used]), slope[used] / total[means.item[used]])
    row = {label: at for at, label in enumerate(study["item"].values.tolist())}
    labels, start = np.unique(ratios.item, return_index=True)
    variance = 0.0
    for label, first, last, covariance in zip(
        labels.tolist(), start, [*start[1:], ratios.item.size], ratios.covariance, strict=True
    ):
        there = ratios.token[first:last][ratios.connected[first:last]]
        weight = derivative[row[label], there]
        variance += float(weight @ covariance @ weight)
    return float(np.sqrt(variance) / means.label.size)


def _influence(means: BridgeMeans, answered: NDArray[np.bool_]) -> FloatArray:
    """Influence of every draw on its item's ln Z, (draw,); 0 where the item was left out."""
    used = means.item >= 0
    influence = np.zeros(used.size)
    size = means.label.size
    chance = means.p_answer[used]
    total = np.bincount(means.item[used], chance * (1 - chance), minlength=size)
    group = means.item[used] + size * answered[used]
    mean = np.bincount(group, chance, minlength=2 * size) / np.concatenate([means.n_drawn, means.n_answered])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (chance - mean[group]) / total[means.item[used]]
    # without overlap an item's ln Z has no derivative: its standard error is infinite already
    influence[used] = np.where(np.isfinite(found), found, 0.0)
    return influence


def _per_response(
    study: xr.Dataset, code: IntArray, position: IntArray, token: IntArray, influence: FloatArray
) -> tuple[tuple[IntArray, IntArray], FloatArray]:
    """Items, responses, and the parts of the tokens' influence that belong to them."""
    by_token = np.zeros(code.shape)
    np.add.at(by_token, (position[token >= 0], token[token >= 0]), influence[token >= 0])
    item = response_positions(study)
    rows, number = np.tile(item, 2), np.tile(np.arange(item.size), 2)
    compared = np.concatenate(compared_tokens(study, code))
    real = compared >= 0
    rows, compared, number = rows[real], compared[real], number[real]
    n_compared = np.zeros(code.shape)
    np.add.at(n_compared, (rows, compared), 1.0)
    return (rows, number), by_token[rows, compared] / n_compared[rows, compared]
