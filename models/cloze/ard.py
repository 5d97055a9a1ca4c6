r"""Regression with automatic relevance determination of a distance in [0, 1] on properties of its context."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.models.cloze.ard_data import LINK_SCALE, ArdData, check_likelihood
from shannon_game.models.cloze.ard_likelihood import add_likelihood
from shannon_game.models.cloze.ard_priors import ArdPriors

CoefficientPrior = Literal["ard", "horseshoe", "normal"]
COEFFICIENT_PRIORS: tuple[str, ...] = get_args(CoefficientPrior)


def ard_model(
    data: ArdData, *, prior: CoefficientPrior | str = "ard", likelihood: str = "beta", priors: ArdPriors | None = None
) -> pm.Model:
    r"""Build the regression; docs/mathematics/cloze.md has its equations.

    Predictors are standardised, with normal effects of texts, items and players where the data have such groups
    (:attr:`~shannon_game.models.cloze.ard_data.ArdData.groups`). The target is beta ("beta", with point masses at 0 and
    1) or logit-normal ("logit_normal", likewise) with :math:`\mathrm{logit}^{-1}\eta` as mean or median, or normal
    around :math:`\eta` ("gaussian"). "ard" gives every coefficient a precision of its own (MacKay 1994; Neal 1996;
    Tipping 2001), "horseshoe" is the regularised horseshoe (Piironen and Vehtari 2017), "normal" gives all the same
    wide prior.

    Predictors of ``data.noisy`` are estimates with known errors. Their true values depend on the predictors without
    error, as coefficients would be attenuated, or given to the wrong predictor, without it (Carroll and others 2006;
    Richardson and Gilks 1993). In the program x comes first, from its marginal, and then the true values from their
    normal conditional distribution, by unit normals that the target says little about: the same joint distribution
    without a funnel.

    Parameters
    ----------
    prior : {"ard", "horseshoe", "normal"}
    likelihood : {"beta", "logit_normal", "gaussian"}

    Returns
    -------
    pymc.Model
        Dims ``predictor``, ``row``, ``item``, ``text``, ``player``, ``noisy``, ``exact``. Observed: ``target`` and
        ``measured_NAME`` for each noisy predictor. ``intercept``; ``coefficient``, ``scale`` (predictor);
        ``text_effect``, ``text_spread`` and the like; ``concentration`` or ``noise``; ``latent_mean``,
        ``latent_spread``, ``latent_slope``, ``latent_cross``; ``latent_unit`` (noisy, item). ``eta`` (row).

    Examples
    --------
    >>> data = models.ard_data([0.2, 0.5, 0.9], {"entropy": [1.0, 2.0, 3.0]}, text=["a", "b", "b"])
    >>> model = models.ard_model(data, likelihood="logit_normal")
    >>> model.named_vars_to_dims["coefficient"], model.named_vars_to_dims["target"]
    (('predictor',), ('row',))
    """
    if prior not in COEFFICIENT_PRIORS:
        raise unknown_choice("prior", prior, COEFFICIENT_PRIORS, source="ard model")
    check_likelihood(likelihood)
    p = priors or ArdPriors()
    unit = LINK_SCALE[likelihood]
    exact = [name for name in data.predictor if name not in data.noisy]
    coords = {
        "predictor": list(data.predictor),
        "noisy": list(data.noisy),
        "exact": exact,
        "item": data.item,
        "text": data.text,
        "player": data.player,
        "row": np.arange(data.target.size),
    }
    with pm.Model(coords=coords) as model:
        # kept with the posterior; the program has the values as constants
        pm.Data("x", data.x, dims=("row", "predictor"))
        middle = 0.5 if likelihood == "gaussian" else 0.0
        intercept = pm.Normal("intercept", middle, p.intercept * unit)
        coefficient = _coefficients(data, prior, likelihood, p, unit)
        eta: Any = intercept
        truth = _true_predictors(data, p) if data.noisy else {}
        for at, name in enumerate(data.predictor):
            value = truth[name][data.item_of_row] if name in truth else data.x[:, at]
            eta = eta + coefficient[at] * value
        for group, spread, of_row in (
            ("text", p.text_spread, data.text_of_row),
            ("item", p.item_spread, data.item_of_row),
            ("player", p.player_spread, data.player_of_row),
        ):
            if group in data.groups:
                sd = pm.HalfNormal(f"{group}_spread", spread * unit)
                deviate = pm.Normal(f"{group}_unit", 0, 1, dims=group)
                eta = eta + pm.Deterministic(f"{group}_effect", sd * deviate, dims=group)[of_row]
        eta = pm.Deterministic("eta", eta, dims="row")
        add_likelihood(data, eta, likelihood, p)
    return model


def _coefficients(data: ArdData, prior: str, likelihood: str, p: ArdPriors, unit: float) -> Any:
    size = p.coefficient * unit
    if prior == "normal":
        return pm.Normal("coefficient", 0, size, dims="predictor")
    if prior == "ard":
        precision = pm.Gamma(
            "relevance_precision", p.coefficient_shape, beta=p.coefficient_shape * size**2, dims="predictor"
        )
        scale = pm.Deterministic("scale", precision**-0.5, dims="predictor")
        # centred: nearly every row speaks of every coefficient
        return pm.Normal("coefficient", 0, scale, dims="predictor")
    n_predictors = len(data.predictor)
    if p.n_relevant >= n_predictors:
        raise InputError(
            f"is {p.n_relevant:g}, should be below the number of predictors ({n_predictors})",
            source="ard priors",
            field="n_relevant",
        )
    global_0 = (
        p.n_relevant / (n_predictors - p.n_relevant) * _pseudo_noise(data, likelihood) / np.sqrt(data.target.size)
    )
    global_scale = pm.HalfCauchy("global_scale", global_0)
    local = pm.HalfStudentT("local_scale", p.local_df, 1, dims="predictor")
    slab = pm.InverseGamma("slab_variance", p.slab_df / 2, p.slab_df / 2 * (p.slab * unit) ** 2)
    scale = pm.Deterministic(
        "scale", global_scale * local * pt.sqrt(slab / (slab + (global_scale * local) ** 2)), dims="predictor"
    )
    # a coefficient that the rows know well, times a scale that they do not, is a thin ridge; one near zero that they
    # do not know is a funnel. In units of the smaller of the scale and what the rows tell roughly it is neither
    known = _rough_errors(data, likelihood)
    unit_of = 1 / pt.sqrt(1 / scale**2 + 1 / known**2)
    turned = pm.Normal("coefficient_turned", 0, scale / unit_of, dims="predictor")
    return pm.Deterministic("coefficient", turned * unit_of, dims="predictor")


def _rough_errors(data: ArdData, likelihood: str) -> NDArray[np.float64]:
    """Standard errors of coefficients by least squares, without groups and errors of measurement."""
    n_predictors = data.x.shape[1]
    precision = data.x.T @ data.x + np.eye(n_predictors)
    errors: NDArray[np.float64] = _pseudo_noise(data, likelihood) * np.sqrt(np.diag(np.linalg.inv(precision)))
    return errors


def _pseudo_noise(data: ArdData, likelihood: str) -> float:
    if likelihood == "gaussian":
        return float(data.target.std())
    inside = np.clip(data.target, 0.01, 0.99)
    return float((np.log(inside) - np.log1p(-inside)).std())


def _true_predictors(data: ArdData, p: ArdPriors) -> dict[str, Any]:
    """True values of the measured predictors, (item,) each; see :func:`ard_model`."""
    k = len(data.noisy)
    exact = [at for at, name in enumerate(data.predictor) if name not in data.noisy]
    centre = pm.Normal("latent_mean", 0, 0.5, dims="noisy")
    spread = pm.HalfNormal("latent_spread", p.latent_spread, dims="noisy")
    mean: list[Any] = [centre[i] for i in range(k)]
    if exact:
        slope = pm.Normal("latent_slope", 0, p.latent_slope, dims=("noisy", "exact"))
        others = data.x_of_item[:, exact]
        mean = [mean[i] + (slope[i] * others).sum(axis=1) for i in range(k)]
    else:
        mean = [mean[i] + np.zeros(data.item.size) for i in range(k)]
    # each true predictor given those before it; factor[i][j] are rows of the triangular root of Omega
    factor: list[list[Any]] = [[0.0] * k for _ in range(k)]
    if k > 1:
        cross = pm.Normal("latent_cross", 0, p.latent_slope, shape=k * (k - 1) // 2)
    for i in range(k):
        factor[i][i] = spread[i]
        for j in range(i):
            weight = cross[i * (i - 1) // 2 + j]
            mean[i] = mean[i] + weight * mean[j]
            for m in range(j + 1):
                factor[i][m] = factor[i][m] + weight * factor[j][m]
    omega = [[sum(factor[i][m] * factor[j][m] for m in range(min(i, j) + 1)) for j in range(k)] for i in range(k)]
    error = data.error_covariance
    root = _cholesky([[omega[i][j] + error[:, i, j] for j in range(k)] for i in range(k)])
    surprise: list[Any] = []
    for i, name in enumerate(data.noisy):
        expected = mean[i] + sum(root[i][j] * surprise[j] for j in range(i))
        seen = pm.Normal(
            f"measured_{name}",
            expected,
            root[i][i],
            observed=data.x_of_item[:, data.predictor.index(name)],
            dims="item",
        )
        surprise.append((seen - expected) / root[i][i])
    # what the measurement says of the truth: solve root @ gain = omega, for all items at once
    gain: list[list[Any]] = [[0.0] * k for _ in range(k)]
    for i in range(k):
        for j in range(k):
            gain[i][j] = (omega[i][j] - sum(root[i][m] * gain[m][j] for m in range(i))) / root[i][i]
    rest = _cholesky(
        [[omega[i][j] - sum(gain[m][i] * gain[m][j] for m in range(k)) for j in range(k)] for i in range(k)]
    )
    unit = pm.Normal("latent_unit", 0, 1, dims=("noisy", "item"))
    return {
        name: mean[i]
        + sum(gain[m][i] * surprise[m] for m in range(k))
        + sum(rest[i][m] * unit[m] for m in range(i + 1))
        for i, name in enumerate(data.noisy)
    }


def _cholesky(matrix: list[list[Any]]) -> list[list[Any]]:
    """Triangular root of many small matrices, element by element, each element an array over items."""
    size = len(matrix)
    root: list[list[Any]] = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[i][j] - sum(root[i][m] * root[j][m] for m in range(j))
            root[i][j] = pt.sqrt(rest) if i == j else rest / root[j][j]
    return root
