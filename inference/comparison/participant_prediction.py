r"""What participants will report: people and questions that a fit has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from estimators.errors import InputError
from inference.comparison.participant_gap import shared_belief
from models.comparison import two_piece
from models.comparison.participant_data import ParticipantData
from models.comparison.participants import FAR, ITEM_SCALE_BOUND, SCALE_FLOOR, SLOPE_BOUND, ParticipantPriors

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["log_score", "predicted_boxes"]

FloatArray = NDArray[np.float64]


def predicted_boxes(
    posterior: xr.Dataset,
    fitted: ParticipantData,
    target: ParticipantData,
    priors: ParticipantPriors,
    rng: np.random.Generator,
) -> FloatArray:
    """Predict answers: the probability of every box of the grid, averaged over the posterior.

    Participants of `target` who have no answer in `fitted` are new: their slope, bias, noise and lapse rate are drawn
    from the population. Items of `target` that are not in `fitted` are new: their belief is drawn from what items have
    in common. Questions on items that were fitted must be pairs of `fitted`, answered or not
    (:func:`~models.comparison.participant_data.without_participants` keeps them).

    Parameters
    ----------
    posterior : xarray.Dataset
        Of :func:`models.comparison.participants.participant_model`; dims ``chain`` and ``draw``.
    fitted : ParticipantData
        What it was fitted to.
    target : ParticipantData
        Who is asked what; its answers are not used.
    priors : ParticipantPriors
        Those of the fit.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (row of `target`, box)
        Rows sum to one.

    Raises
    ------
    InputError
        If the grids differ, or an item was fitted with other pairs.

    Examples
    --------
    >>> import inference, models
    >>> import numpy as np
    >>> from inference.comparison.examples import participant_posterior
    >>> posterior, data = participant_posterior()
    >>> boxes = inference.predicted_boxes(posterior, data, data, models.ParticipantPriors(), np.random.default_rng(0))
    >>> boxes.shape[0] == data.row_box.size
    True
    """
    if not np.array_equal(fitted.box_edges, target.box_edges):
        raise InputError("is not that of the fit", source=f"study {target.study!r}", field="grid")
    n = posterior.sizes["chain"] * posterior.sizes["draw"]
    draws = {
        str(name): posterior[name].transpose("chain", "draw", ...).values.reshape(n, -1) for name in posterior.data_vars
    }
    ratio = _log_ratios(posterior, draws, (fitted, target), priors, rng)[:, target.row_pair]
    slope, bias, noise, lapse = (each[:, target.row_participant] for each in _people(draws, fitted, target, rng))

    centre = slope * (bias - ratio)
    edges = np.clip(target.box_edges, -FAR, FAR)
    inner = np.stack([ndtr((edge - centre) / noise) for edge in edges[1:, 0]])
    below = np.concatenate([np.zeros((1, *centre.shape)), inner, np.ones((1, *centre.shape))])
    inside = np.diff(below, axis=0)
    half = draws["half"]
    slip = np.broadcast_to((1 - half) / len(edges), centre.shape)
    probability = np.empty((centre.shape[1], len(edges)))
    for box in range(len(edges)):
        own = slip + half * (box == target.half_box)
        probability[:, box] = ((1 - lapse) * inside[box] + lapse * own).mean(axis=0)
    return probability


def log_score(probability: FloatArray, row_box: NDArray[np.intp]) -> float:
    """Mean log predictive probability of the answers given, nats an answer.

    Parameters
    ----------
    probability : ndarray, shape (row, box)
    row_box : ndarray of int, shape (row,)

    Returns
    -------
    float

    Examples
    --------
    >>> import inference
    >>> import numpy as np
    >>> round(inference.log_score(np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([0, 1])), 3)
    -0.434
    """
    return float(np.log(probability[np.arange(row_box.size), row_box]).mean())


def _log_ratios(
    posterior: xr.Dataset,
    draws: dict[str, FloatArray],
    data: tuple[ParticipantData, ParticipantData],
    priors: ParticipantPriors,
    rng: np.random.Generator,
) -> FloatArray:
    """D of every pair of the target, (draw, pair)."""
    fitted, target = data
    n = len(draws["half"])
    known = np.isin(target.item, fitted.item)
    # a new item: its own deviations from their prior, the rest from the posterior
    z, zeta = (rng.standard_normal((n, target.item.size)) for _ in range(2))
    unit = rng.standard_t(priors.nu, (n, target.item.size))
    own = ITEM_SCALE_BOUND * np.tanh(draws["omega"] * z / ITEM_SCALE_BOUND)
    s = np.hypot(draws["sigma"] * np.exp(own + draws["c"] * (target.surprisal - 4)), SCALE_FLOOR)
    logit = target.target_logit
    place = draws["mu"] + draws["a"] * (logit + 3) - draws["t_b"] * zeta * (logit + 5) - draws["kap"] * s**2 / 2
    intercept = place + draws["rho"] * s * unit
    item = target.pair_item
    slope = draws["b"] + draws["t_b"] * zeta[:, item]
    ratio: FloatArray = intercept[:, item] + slope * (target.pair_log_g + 5)
    ratio += draws["b2"] * np.maximum(-target.pair_log_g - 7, 0)
    left, right = s[:, item] * np.exp(draws["ga"]), s[:, item] * np.exp(-draws["ga"])
    ratio = ratio + two_piece.draw(left, right, rng) + target.pair_log_g_ratio

    if known.any():
        belief = shared_belief(posterior, fitted, rng)
        key = {
            (label, column): at
            for at, (label, column) in enumerate(
                zip(fitted.item[fitted.pair_item].tolist(), fitted.pair_column.tolist(), strict=True)
            )
        }
        for at in np.flatnonzero(known[item]).tolist():
            label = target.item[item[at]]
            found = key.get((label, int(target.pair_column[at])))
            if found is None:
                raise InputError(
                    f"{label} was fitted without the candidate at position {target.pair_column[at]}",
                    source=f"study {target.study!r}",
                    field="item",
                )
            ratio[:, at] = belief.pair_log_ratio[:, found]
    return ratio


def _people(
    draws: dict[str, FloatArray], fitted: ParticipantData, target: ParticipantData, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Slope, bias, noise and lapse rate of the target's participants, each (draw, participant)."""
    n, n_people = len(draws["half"]), target.participant.size
    present = fitted.answers
    # k0 is what the geometric mean of the slopes of those who were fitted is
    log_k0 = np.log(draws["slope"][:, present]).mean(axis=1, keepdims=True)

    def bounded(unit: FloatArray) -> FloatArray:
        deviation: FloatArray = SLOPE_BOUND * np.tanh(draws["slope_spread"] * unit / SLOPE_BOUND)
        return deviation

    # what was centred is the deviations of those fitted
    centre = bounded(draws["slope_unit"][:, present]).mean(axis=1, keepdims=True)
    slope = np.exp(log_k0 + bounded(rng.standard_normal((n, n_people))) - centre)
    centre = draws["bias_unit"][:, present].mean(axis=1, keepdims=True)
    bias = draws["bias_spread"] * (rng.standard_t(4, (n, n_people)) - centre)
    noise = np.exp(draws["log_noise"] + draws["noise_spread"] * rng.standard_normal((n, n_people)))
    lapse = expit(draws["logit_lapse"] + draws["lapse_spread"] * rng.standard_normal((n, n_people)))
    index = {name: at for at, name in enumerate(fitted.participant.tolist()) if present[at]}
    for at, name in enumerate(target.participant.tolist()):
        if name in index:
            for values, source in ((slope, "slope"), (bias, "bias"), (noise, "noise"), (lapse, "lapse")):
                values[:, at] = draws[source][:, index[name]]
    return slope, bias, noise, lapse
