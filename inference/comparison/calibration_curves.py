"""What the posteriors of the calibration models say: reliability curves and predicted reports."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.errors import InputError
from shannon_game.inference.posterior.arviz_adapter import InferenceData, from_groups
from shannon_game.inference.posterior.item_draws import flat
from shannon_game.models.comparison.calibration import Family, curve_features
from shannon_game.models.comparison.calibration_data import OutcomeData, ReportData
from shannon_game.models.comparison.report_process import draw_reports

_COEFFICIENTS = {"llo": ("bias", "slope"), "beta": ("bias", "slope_low", "slope_high")}


def reliability_curves(posterior: xr.Dataset, family: Family | str, report: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Probability of the event given a report, for the typical participant and for each, draw by draw.

    The typical participant has the means of all coefficients; offsets are left out.

    Parameters
    ----------
    posterior : xarray.Dataset
        Of :func:`shannon_game.models.calibration_model`, which has the `family`.
    report : array_like of float, shape (report,)
        Strictly between 0 and 1.

    Returns
    -------
    typical : ndarray, shape (draw, report)
    participants : ndarray, shape (draw, participant, report)

    Raises
    ------
    InputError
        For an unknown family, or a posterior of another one.

    Examples
    --------
    >>> from shannon_game import inference, models
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> model = models.calibration_model(models.favoured_outcomes(comparison_study()))
    >>> posterior = inference.stand_in_posterior(model).posterior
    >>> typical, participants = inference.reliability_curves(posterior, "llo", [0.6, 0.9])
    >>> typical.shape, participants.shape[::2]
    ((16, 2), (16, 2))
    """
    features = curve_features(report, family)
    names = _COEFFICIENTS[family]
    missing = [name for name in names if f"{name}_mean" not in posterior]
    if missing:
        raise InputError(f"lacks {', '.join(missing)}, is not of family {family!r}", source="posterior of calibration")
    means = np.stack([flat(posterior, f"{name}_mean") for name in names], axis=-1)
    own = np.stack([flat(posterior, name) for name in names], axis=-1)
    return expit(means @ features), expit(own @ features)


def outcome_log_likelihood(posterior: xr.Dataset, data: OutcomeData, family: Family | str) -> InferenceData:
    """Add the log-probability of every outcome, weighted as in the model, to a posterior of it."""
    features = curve_features(data.report, family)
    logit = np.zeros((posterior.sizes["chain"], posterior.sizes["draw"], data.row.size))
    for name, feature in zip(_COEFFICIENTS[family], features, strict=True):
        logit += posterior[name].transpose("chain", "draw", "participant").values[..., data.person] * feature
    values = -data.weight * np.logaddexp(0, -(2 * data.outcome - 1) * logit)
    found = xr.Dataset({"outcome": (("chain", "draw", "response"), values)}, coords={"response": data.row})
    return from_groups({"posterior": posterior, "log_likelihood": found})


def predicted_reports(
    posterior: xr.Dataset, data: ReportData, rng: np.random.Generator, *, n_draws: int = 400
) -> NDArray[np.float64] | NDArray[np.int64]:
    """Reports of the same participants on the same rows, from a posterior of :func:`shannon_game.models.report_model`.

    Returns
    -------
    ndarray, shape (n_draws, response)
        Positions of boxes, or log-odds; of evenly spaced posterior draws, or of all if there are fewer.

    Raises
    ------
    InputError
        If the posterior is of other participants, or of another number of shared questions.

    Examples
    --------
    >>> from shannon_game import inference, models
    >>> import numpy as np
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> data = models.reports_on_truth(comparison_study(), "interface")
    >>> posterior = inference.stand_in_posterior(models.report_model(data)).posterior
    >>> inference.predicted_reports(posterior, data, np.random.default_rng(0), n_draws=5).shape == (5, data.row.size)
    True
    """
    same = np.array_equal(posterior["participant"].values.astype(str), data.participant)
    n_questions = posterior.sizes.get("question", 0)
    if not same or n_questions != data.n_questions:
        raise InputError("is not of these rows", source="posterior of the reports")
    every = np.unique(np.linspace(0, posterior.sizes["chain"] * posterior.sizes["draw"] - 1, n_draws).astype(int))
    strength = flat(posterior, "strength")[every, None]
    bias, slope, noise, lapse = (
        flat(posterior, name)[every][:, data.person] for name in ("bias", "slope", "noise", "lapse")
    )
    is_alone = data.question < 0
    evidence = data.direction * strength**2 / 2
    if n_questions:
        unit = flat(posterior, "evidence_unit")[every][:, np.maximum(data.question, 0)]
        evidence = evidence + strength * np.where(is_alone, 0.0, unit)
    return draw_reports(
        data.edges,
        mean=bias + slope * evidence,
        sd=np.sqrt(noise**2 + (slope * strength * is_alone) ** 2),
        lapse=lapse,
        half_share=flat(posterior, "half_share")[every, None],
        rng=rng,
    )


def report_shares(report: ArrayLike, edges: FloatArray) -> FloatArray:
    """Share of the reports in each box, shape (..., box), from positions of boxes or log-odds, shape (..., response).

    `edges` are the log-odds between the boxes, infinite ends among them.

    Examples
    --------
    >>> from shannon_game import inference
    >>> import numpy as np
    >>> inference.report_shares([0, 1, 1, 2], np.array([-np.inf, -1.0, 1.0, np.inf])).tolist()
    [0.25, 0.5, 0.25]
    """
    values = np.asarray(report)
    box = values if values.dtype.kind in "iu" else np.searchsorted(edges[1:-1], values, side="left")
    return np.stack([(box == position).mean(axis=-1) for position in range(edges.size - 1)], axis=-1)
