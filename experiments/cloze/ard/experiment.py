"""``+exp=ard``: what a model's distance to people depends on, as the paper computed it and as one would today."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf

from estimators.errors import InputError
from experiments.cloze.ard.figures import checks, coefficients, conclusion, legacy_bars, predictors
from experiments.cloze.ard.settings import PUBLISHED, LadderStep, Variant, design_columns, ladder, names_of, variants
from experiments.cloze.ard.summary import legacy_summary, summary
from experiments.cloze.settings import chosen_models, mode_of, whole
from experiments.harness.bayes import (
    CONVERGENCE_COLUMNS,
    check_bayesian,
    convergence_columns,
    gate,
    require_bayes,
    sample_model,
)
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import rng_for, tail_probability
from inference.posterior.arviz_adapter import add_groups, from_groups, group

if TYPE_CHECKING:
    from inference.posterior.convergence import Convergence
    from inference.posterior.model_comparison import LooByGroup
    from models.cloze.ard_columns import ArdColumns
    from models.cloze.ard_data import ArdData

__all__ = ["ARD_COLUMNS", "run"]

Floats = NDArray[np.float64]

ARD_COLUMNS = (
    "fit",
    "engine",
    "predictor",
    "unit",
    "coefficient",
    "sd",
    "lower",
    "upper",
    "scale",
    "scale_lower",
    "scale_upper",
    "effect_tvd",
    "effect_tvd_lower",
    "effect_tvd_upper",
    "p_positive",
    "p_largest",
    "published",
    "published_bar",
    "n_rows",
    "elpd_difference_nats",
    "elpd_difference_se_nats",
    *CONVERGENCE_COLUMNS,
)
"""Columns of the table: a row for each fit and predictor.

``coefficient`` is the median (of scikit-learn the mean); ``unit`` what it is per; ``published_bar`` 2 / lambda, which
the paper draws; ``elpd_difference_nats`` to the best Bayesian fit.
"""

_GRID = 61


@dataclass(frozen=True, eq=False)
class _Fit:
    variant: Variant
    data: ArdData
    posterior: xr.Dataset
    convergence: Convergence
    effects: Floats
    loo: LooByGroup


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Regress the TVD between a model and people on properties of the context."""
    tail = tail_probability(cfg)
    if mode_of(cfg) == "legacy":
        return _legacy(cfg, study, tail)
    require_bayes()
    from models.cloze.ard import ArdPriors  # noqa: PLC0415 - seconds of imports that only a fit should cost

    check_bayesian(cfg, {"priors": ArdPriors})
    n_predictive = whole(cfg, "n_predictive")
    wanted = variants(cfg)
    columns = design_columns(cfg, study)
    data = _data(cfg, columns)
    steps = ladder(cfg, study)
    fits = [_fitted(cfg, variant, data, n_predictive) for variant in wanted]
    return _result(cfg, columns, fits, steps, tail)


def _data(cfg: DictConfig, columns: ArdColumns) -> ArdData:
    from models.cloze.ard_columns import measured_error  # noqa: PLC0415
    from models.cloze.ard_data import ard_data  # noqa: PLC0415

    return ard_data(
        columns.target,
        columns.predictors,
        text=columns.text,
        item=columns.item,
        player=columns.player,
        measured=measured_error(columns, names_of(cfg, "measured", empty=True)),
    )


def _fitted(cfg: DictConfig, variant: Variant, data: ArdData, n_predictive: int) -> _Fit:
    from inference.cloze.ard import average_effects, loo_of_targets  # noqa: PLC0415
    from models.cloze.ard import ArdPriors, ard_model  # noqa: PLC0415

    own = data if variant.error else data.without_error()
    own = own if variant.groups else own.without_groups()
    priors = ArdPriors(**OmegaConf.to_container(cfg.experiment.priors))  # type: ignore[arg-type]
    model = ard_model(own, prior=variant.prior, likelihood=variant.likelihood, priors=priors)
    settings = cfg.copy()
    if variant.prior == "horseshoe":
        # its scales make a funnel; shorter steps get into it
        settings.sampler.target_accept = max(0.99, float(cfg.sampler.target_accept))
    idata = sample_model(settings, model, f"ard {variant.name}")
    posterior = group(idata, "posterior")
    # the linear predictors follow from the parameters, which are all judged
    judged = add_groups(idata, {"posterior": posterior.drop_vars("eta")})
    return _Fit(
        variant=variant,
        data=own,
        posterior=posterior,
        convergence=gate(cfg, judged),
        effects=average_effects(posterior, variant.likelihood, n_draws=n_predictive),
        loo=loo_of_targets(posterior, own, variant.likelihood),
    )


def _result(
    cfg: DictConfig, columns: ArdColumns, fits: list[_Fit], steps: list[LadderStep], tail: float
) -> ExperimentResult:
    from inference.cloze.ard import comparable, draw_targets, predictive_checks, small_posterior  # noqa: PLC0415
    from inference.posterior.model_comparison import comparison_table  # noqa: PLC0415

    main = fits[0]
    named = {fit.variant.name: fit for fit in fits}
    kept = comparable({name: fit.variant.likelihood for name, fit in named.items()}, main.data.target)
    compared = comparison_table({name: named[name].loo for name in kept})
    table = pd.DataFrame(
        [*_step_rows(steps, tail), *(row for fit in fits for row in _fit_rows(fit, compared, tail))],
        columns=list(ARD_COLUMNS),
    )
    drawn = draw_targets(
        main.posterior,
        main.variant.likelihood,
        target=main.data.target,
        n_draws=int(cfg.experiment.n_predictive),
        rng=rng_for(cfg, "ard predictive"),
    )
    checked = predictive_checks(drawn, main.data, tail=tail)
    dataset = _dataset(columns, fits, drawn, checked, compared, tail)
    failed = [
        f"{name}: {'; '.join(fit.convergence.reasons)}" for name, fit in named.items() if not fit.convergence.passed
    ]
    warnings = [f"the posterior did not converge, do not use it: {text}" for text in failed]
    warnings += [f"{name}: {fit.loo.warning}" for name, fit in named.items() if fit.loo.warning]
    if len(kept) < len(named):
        left = ", ".join(sorted(set(named) - set(kept)))
        warnings.append(
            f"{left}: a Gaussian density cannot be compared where targets are exactly 0 or 1; left out of LOO"
        )
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "coefficients": coefficients(table, cfg),
            "predictors": predictors(dataset, cfg),
            "conclusion": conclusion(table, steps, cfg),
            "checks": checks(dataset, cfg),
        },
        summary=summary(table, dataset, compared, checked, steps, columns.notes, cfg),
        warnings=tuple(warnings),
        gate_failed=bool(failed) and not cfg.experiment.allow_unconverged,
        posteriors={name: from_groups({"posterior": small_posterior(fit.posterior)}) for name, fit in named.items()},
    )


def _fit_rows(fit: _Fit, compared: pd.DataFrame, tail: float) -> list[dict[str, Any]]:
    from inference.cloze.ard import largest_probability  # noqa: PLC0415

    draws = _flat(fit.posterior["coefficient"])
    scale = _flat(fit.posterior["scale"]) if "scale" in fit.posterior else np.full_like(draws, np.nan)
    largest = largest_probability(draws)
    found = compared[compared["model"] == fit.variant.name]
    unit = "TVD per sd" if fit.variant.likelihood == "gaussian" else "log-odds per sd"
    rows = []
    for k, name in enumerate(fit.data.predictor):
        rows.append(
            {
                "fit": fit.variant.name,
                "engine": "PyMC",
                "predictor": name,
                "unit": unit,
                "sd": float(draws[:, k].std()),
                **_quantiles("coefficient", ("lower", "upper"), draws[:, k], tail),
                **_quantiles("scale", ("scale_lower", "scale_upper"), scale[:, k], tail),
                **_quantiles("effect_tvd", ("effect_tvd_lower", "effect_tvd_upper"), fit.effects[:, k], tail),
                "p_positive": float((draws[:, k] > 0).mean()),
                "p_largest": float(largest[k]),
                "n_rows": fit.data.target.size,
                "elpd_difference_nats": float(found["difference_nats"].iloc[0]) if len(found) else np.nan,
                "elpd_difference_se_nats": float(found["difference_se_nats"].iloc[0]) if len(found) else np.nan,
                **convergence_columns(fit.convergence),
            }
        )
    return rows


def _step_rows(steps: list[LadderStep], tail: float) -> list[dict[str, Any]]:
    from scipy.stats import norm  # noqa: PLC0415

    reach = float(norm.isf(tail))
    rows = []
    for step in steps:
        for k, name in enumerate(step.predictors):
            value, sd = float(step.coefficient[k]), float(step.sd[k])
            rows.append(
                {
                    "fit": step.name,
                    "engine": "scikit-learn",
                    "predictor": name,
                    "unit": "TVD per sd" if step.standardised else "TVD per unit",
                    "coefficient": value,
                    "sd": sd,
                    "lower": value - reach * sd,
                    "upper": value + reach * sd,
                    **(
                        dict(
                            zip(
                                ("effect_tvd", "effect_tvd_lower", "effect_tvd_upper"),
                                _around(value, reach * sd),
                                strict=True,
                            )
                        )
                        if step.standardised
                        else {}
                    ),
                    "published": PUBLISHED.get(name, np.nan) if step.is_published else np.nan,
                    "published_bar": float(step.bar[k]),
                    "n_rows": step.n_rows,
                    **convergence_columns(None),
                }
            )
    return rows


def _around(value: float, reach: float) -> tuple[float, float, float]:
    return value, value - reach, value + reach


def _quantiles(name: str, ends: tuple[str, str], draws: Floats, tail: float) -> dict[str, float]:
    if np.isnan(draws).all():
        return dict.fromkeys((name, *ends), np.nan)
    middle, low, high = np.quantile(draws, [0.5, tail, 1 - tail])
    return {name: float(middle), ends[0]: float(low), ends[1]: float(high)}


def _flat(values: xr.DataArray) -> Floats:
    array = values.transpose("chain", "draw", ...).to_numpy()
    flat: Floats = array.reshape(-1, *array.shape[2:])
    return flat


def _dataset(  # noqa: PLR0917 - all that the figures need
    columns: ArdColumns,
    fits: list[_Fit],
    drawn: Floats,
    checked: pd.DataFrame,
    compared: pd.DataFrame,
    tail: float,
) -> xr.Dataset:
    """Rows, curves of each predictor with the others at their mean, predictive quantiles, checks, LOO."""
    from inference.cloze.ard import expected_target  # noqa: PLC0415
    from inference.posterior.predictive import thinned  # noqa: PLC0415

    main = fits[0]
    data = main.data
    taken = thinned(main.posterior, 1000)
    coefficient, intercept = _flat(taken["coefficient"]), _flat(taken["intercept"])
    levels = [tail, 0.5, 1 - tail]
    grid = np.stack([np.linspace(column.min(), column.max(), _GRID) for column in data.x.T])
    curves = [
        np.quantile(
            expected_target(intercept[:, None] + coefficient[:, k, None] * grid[k], taken, main.variant.likelihood),
            levels,
            axis=0,
        )
        for k in range(len(data.predictor))
    ]
    text_mean = np.bincount(data.text_of_row, weights=data.target) / np.bincount(data.text_of_row)
    n_text = np.bincount(data.text_of_row)
    text_drawn = np.stack([np.bincount(data.text_of_row, weights=row) / n_text for row in drawn])
    edges = np.linspace(0, 1, 21)
    shares = np.stack([np.histogram(row, bins=edges)[0] / row.size for row in np.clip(drawn, 0, 1)])
    draws = np.stack([_flat(fit.posterior["coefficient"])[:: max(1, len(coefficient) // 1000)] for fit in fits])
    return xr.Dataset(
        {
            "target": ("row", data.target),
            "predictor_value": (("row", "predictor"), data.x * data.scale + data.centre),
            "predictor_centre": ("predictor", data.centre),
            "predictor_sd": ("predictor", data.scale),
            "curve_at": (("predictor", "grid"), grid * data.scale[:, None] + data.centre[:, None]),
            "curve_tvd": (("predictor", "quantile", "grid"), np.stack(curves)),
            "predicted_tvd": (("quantile", "row"), np.quantile(drawn, levels, axis=0)),
            "observed_share": ("bin", np.histogram(data.target, bins=edges)[0] / data.target.size),
            "predicted_share": (("quantile", "bin"), np.quantile(shares, levels, axis=0)),
            "text_mean": ("text", text_mean),
            "predicted_text_mean": (("quantile", "text"), np.quantile(text_drawn, levels, axis=0)),
            "error_sd": (
                ("item", "noisy"),
                np.sqrt(np.diagonal(data.error_covariance, axis1=1, axis2=2)).reshape(data.item.size, -1),
            ),
            "coefficient_draw": (("fit", "sample", "predictor"), draws),
            **{
                f"check_{name}": ("property", checked[name].to_numpy().astype(float))
                for name in checked.columns
                if name != "property"
            },
            **{
                f"loo_{name}": ("compared", compared[name].to_numpy().astype(float))
                for name in compared.columns
                if name not in ("model", "warning")
            },
        },
        coords={
            "predictor": list(data.predictor),
            "noisy": np.array(data.noisy, dtype=object),
            "item": data.item.astype(object),
            "item_of_row": ("row", data.item[data.item_of_row].astype(object)),
            "player_of_row": ("row", data.player[data.player_of_row].astype(object)),
            "text": data.text.astype(object),
            "quantile": levels,
            "bin": (edges[1:] + edges[:-1]) / 2,
            "property": checked["property"].to_numpy(dtype=object),
            "compared": compared["model"].to_numpy(dtype=object),
            "fit": np.array([fit.variant.name for fit in fits], dtype=object),
        },
        attrs={
            "groups": ", ".join(data.groups),
            "text_spread": float(np.median(main.posterior["text_spread"])) if "text" in data.groups else np.nan,
            "n_left_out": sum(number for text, number in columns.notes if text.startswith("contexts")),
        },
    )


def _legacy(cfg: DictConfig, study: xr.Dataset, tail: float) -> ExperimentResult:
    from models.cloze.ard_columns import legacy_columns  # noqa: PLC0415

    models = chosen_models(cfg, study)
    if len(models) != 1:
        raise InputError(f"is {models}; mode=legacy is about one model: players=[gpt2]", field="players")
    steps = ladder(cfg, study)
    if not steps:
        raise InputError(
            f"{models[0]!r} has contexts without any word or answer, and the paper's code cannot take them",
            field="players",
        )
    columns = legacy_columns(study, models[0], names_of(cfg, "predictors"), seed=int(cfg.experiment.legacy_seed))
    values = np.stack(list(columns.predictors.values()), axis=1)
    table = pd.DataFrame(_step_rows(steps, tail))[[*ARD_COLUMNS[:8], "published", "published_bar", "n_rows"]]
    dataset = xr.Dataset(
        {
            "target": ("row", columns.target),
            "predictor_value": (("row", "predictor"), values),
            "intercept": ("step", np.array([step.intercept for step in steps])),
            "coefficient": (("step", "predictor"), np.stack([step.coefficient for step in steps])),
            "sd": (("step", "predictor"), np.stack([step.sd for step in steps])),
        },
        coords={
            "predictor": list(columns.predictors),
            "step": np.array([step.name for step in steps], dtype=object),
            "item_of_row": ("row", columns.item.astype(object)),
        },
    )
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={"coefficients": legacy_bars(table, cfg), "predictors": predictors(dataset, cfg)},
        summary=legacy_summary(table),
        warnings=(
            "legacy: oracle 1 is part of the target and of a predictor; predictors keep their units, so that the size "
            "of a coefficient is no relevance; 2 / lambda is no interval",
        ),
    )
