"""``+exp=ard``: what a model's distance to people depends on (appendix B), with other people on each side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.arrays import FloatArray
from shannon_game.experiments.cloze.ard.figures import (
    FIT_LABELS,
    ard_coefficients_figure,
    ard_predictors_figure,
    predictor_label,
)
from shannon_game.experiments.cloze.ard.settings import ArdSettings, Variant, data_of, design_columns, variants
from shannon_game.experiments.cloze.figures import about
from shannon_game.experiments.cloze.settings import words_of
from shannon_game.experiments.harness import bayes
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.questions import records
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.experiments.studies.cloze.answers import answer_warnings
from shannon_game.inference.cloze import ard as inferred
from shannon_game.inference.posterior.arviz_adapter import InferenceData, add_groups, from_groups, group
from shannon_game.inference.posterior.convergence import Convergence, check_convergence
from shannon_game.inference.posterior.item_draws import flat, thinned
from shannon_game.inference.posterior.model_comparison import LooByGroup, comparison_table
from shannon_game.inference.progress import advance
from shannon_game.models.cloze.ard import ard_model
from shannon_game.models.cloze.ard_columns import ArdColumns
from shannon_game.models.cloze.ard_data import ArdData

if TYPE_CHECKING:
    import pymc as pm

_GRID = 61


class ArdRow(column.Row, last=bayes.ConvergenceRow):
    """One predictor in one fit."""

    fit: str = column.key("which prior, likelihood and errors", usual="main")
    predictor: str = column.key("property of the context", words=predictor_label)
    unit: str = column.context("what the coefficient is per")
    coefficient: float = column.estimate("median of the coefficient", se="sd", interval="{}")
    scale: float = column.estimate("expected size of the coefficient", interval="scale_{}")
    effect_tvd: float = column.headline("change of the TVD for one standard deviation", interval="effect_tvd_{}")
    p_positive: float = column.detail("probability that the coefficient is above 0")
    p_largest: float = column.beside("effect_tvd", "probability that it is the largest of all")
    n_rows: int = column.context("contexts and models")
    elpd_difference_nats: float = column.detail("elpd minus that of the best fit", unit="nats")
    elpd_difference_se_nats: float = column.se("elpd_difference_nats", unit="nats")


@dataclass(frozen=True, eq=False)
class _Fit:
    variant: Variant
    data: ArdData
    model: pm.Model
    idata: InferenceData
    posterior: xr.Dataset
    convergence: Convergence
    effects: FloatArray
    loo: LooByGroup


@experiment(ArdSettings, row=ArdRow)
def ard(study: xr.Dataset, settings: ArdSettings) -> ExperimentResult:
    """Regress the distance between models and people on properties of the context, with the relevance of each.

    One row per fit and predictor. Its ``tables`` have the fits compared by leave-one-out (``fits``) and the posterior
    predictive checks (``checks``).
    """
    columns = design_columns(study, settings)
    data = data_of(columns, settings)
    wanted = variants(settings)
    with bayes.several_fits(len(wanted), settings.sampler):
        fits = [_fitted(settings, variant, data) for variant in wanted]
    return _result(study, settings, columns, fits)


def _fitted(settings: ArdSettings, variant: Variant, data: ArdData) -> _Fit:
    own = data if variant.error else data.without_error()
    own = own if variant.groups else own.without_groups()
    model = ard_model(own, prior=variant.prior, likelihood=variant.likelihood, priors=settings.priors)
    times_draws = 1
    if variant.prior == "horseshoe":
        # its scales make a funnel; shorter steps get into it. Collinear predictors take turns in it, slowly
        accept, times_draws = max(0.99, settings.sampler.target_accept), 3
        settings = settings.changed(sampler=settings.sampler.changed(target_accept=accept))
    idata = bayes.draw_posterior(settings, model, f"ard {variant.name}", times_draws=times_draws)
    advance(bayes.FITS)
    posterior = group(idata, "posterior")
    # the linear predictors follow from the parameters, which are all judged
    judged = add_groups(idata, {"posterior": posterior.drop_vars("eta")})
    return _Fit(
        variant=variant,
        data=own,
        model=model,
        idata=idata,
        posterior=posterior,
        convergence=check_convergence(judged, settings.gate),
        effects=inferred.average_effects(posterior, variant.likelihood, n_draws=settings.n_predictive),
        loo=inferred.loo_of_targets(posterior, own, variant.likelihood),
    )


def _posteriors(settings: ArdSettings, fits: list[_Fit]) -> dict[str, InferenceData]:
    """The main fit with all groups, the others' draws; without what is there for every row."""
    if not settings.save_posterior:
        return {}
    found = {fit.variant.name: from_groups({"posterior": inferred.small_posterior(fit.posterior)}) for fit in fits}
    whole = bayes.with_all_groups(fits[0].idata, fits[0].model, settings.seed, "ard main")
    return found | {fits[0].variant.name: add_groups(whole, {"posterior": inferred.small_posterior(fits[0].posterior)})}


def _result(study: xr.Dataset, settings: ArdSettings, columns: ArdColumns, fits: list[_Fit]) -> ExperimentResult:
    tail, main = settings.tail, fits[0]
    named = {fit.variant.name: fit for fit in fits}
    kept = inferred.comparable({name: fit.variant.likelihood for name, fit in named.items()}, main.data.target)
    compared = comparison_table({name: named[name].loo for name in kept})
    table = pd.DataFrame([row for fit in fits for row in _fit_rows(fit, compared, tail)])
    drawn = inferred.draw_targets(
        main.posterior,
        main.variant.likelihood,
        target=main.data.target,
        n_draws=settings.n_predictive,
        rng=rng_for(settings.seed, "ard predictive"),
    )
    checked = inferred.predictive_checks(drawn, main.data, tail=tail)
    dataset = _dataset(main, tail)
    verdicts = {name: fit.convergence for name, fit in named.items()}
    warnings = [*answer_warnings(words_of(settings, study, [])), *bayes.unconverged(verdicts)]
    warnings += [f"{name}: {fit.loo.warning}" for name, fit in named.items() if fit.loo.warning]
    warnings += [f"left out on the way: {number:,} {text}" for text, number in columns.notes]
    if left := ", ".join(sorted(set(named) - set(kept))):
        problem = "a Gaussian density cannot be compared where targets are exactly 0 or 1; left out of LOO"
        warnings.append(f"{left}: {problem}")
    shown: dict[str, Any] = {"interval": settings.interval, "about": about(study, settings.players)}
    main_label = f"main: {FIT_LABELS[settings.prior]}, {FIT_LABELS[settings.likelihood]}"
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "coefficients": ard_coefficients_figure(table, main=main_label, **shown),
            "predictors": ard_predictors_figure(dataset, **shown),
        },
        text=_summary(table, dataset, compared, checked, settings),
        tables={"fits": compared.drop(columns="warning"), "checks": checked},
        on_screen=table[table["fit"] == "main"],
        warnings=tuple(warnings),
        gate_failed=bayes.gate_failed(settings, verdicts),
        posteriors=_posteriors(settings, fits),
    )


def _fit_rows(fit: _Fit, compared: pd.DataFrame, tail: float) -> list[dict[str, Any]]:
    draws = flat(fit.posterior, "coefficient")
    scale = flat(fit.posterior, "scale") if "scale" in fit.posterior else np.full_like(draws, np.nan)
    unit = "TVD per sd" if fit.variant.likelihood == "gaussian" else "log-odds per sd"
    elpd = compared.set_index("model").reindex([fit.variant.name]).iloc[0]
    levels = [0.5, tail, 1 - tail]
    rows = pd.DataFrame({"fit": fit.variant.name, "predictor": fit.data.predictor, "unit": unit})
    rows["coefficient"], rows["lower"], rows["upper"] = np.quantile(draws, levels, axis=0)
    rows.insert(4, "sd", draws.std(axis=0))
    for name, values in (("scale", scale), ("effect_tvd", fit.effects)):
        rows[name], rows[f"{name}_lower"], rows[f"{name}_upper"] = np.quantile(values, levels, axis=0)
    rows = rows.assign(
        p_positive=(draws > 0).mean(axis=0),
        p_largest=inferred.largest_probability(draws),
        n_rows=fit.data.target.size,
        elpd_difference_nats=float(elpd["difference_nats"]),
        elpd_difference_se_nats=float(elpd["difference_se_nats"]),
        **bayes.convergence_columns(fit.convergence),
    )
    return records(rows)


def _dataset(main: _Fit, tail: float) -> xr.Dataset:
    data = main.data
    taken = thinned(main.posterior, 1000)
    coefficient, intercept = flat(taken, "coefficient"), flat(taken, "intercept")
    levels = [tail, 0.5, 1 - tail]
    grid = np.stack([np.linspace(column.min(), column.max(), _GRID) for column in data.x.T])
    linear = intercept[:, None, None] + coefficient[:, :, None] * grid
    curves = [
        np.quantile(inferred.expected_target(linear[:, k], taken, main.variant.likelihood), levels, axis=0)
        for k in range(len(data.predictor))
    ]
    return xr.Dataset(
        {
            "target": ("row", data.target),
            "predictor_value": (("row", "predictor"), data.x * data.scale + data.centre),
            "curve_at": (("predictor", "grid"), grid * data.scale[:, None] + data.centre[:, None]),
            "curve_tvd": (("predictor", "quantile", "grid"), np.stack(curves)),
        },
        coords={
            "predictor": list(data.predictor),
            "item_of_row": ("row", data.item[data.item_of_row].astype(object)),
            "player_of_row": ("row", data.player[data.player_of_row].astype(object)),
            "quantile": levels,
        },
        attrs={"groups": ", ".join(data.groups)},
    )


def _summary(
    table: pd.DataFrame, dataset: xr.Dataset, compared: pd.DataFrame, checked: pd.DataFrame, settings: ArdSettings
) -> str:
    main = table[table["fit"] == "main"].set_index("predictor")
    first = str(main["p_largest"].idxmax())
    row = main.loc[first]
    said = (
        f"**A model's TVD to people depends most on {predictor_label(first)}, with probability "
        f"{row['p_largest']:.3f}**: one standard deviation changes it by {row['effect_tvd']:+.3f} "
        f"[{row['effect_tvd_lower']:+.3f}, {row['effect_tvd_upper']:+.3f}]."
    )
    if "oracle_tvd" in main.index and len(main) > 1:
        probability = float(main["p_largest"]["oracle_tvd"])
        word = "does not hold" if probability < 0.05 else "holds" if probability > 0.95 else "is open"
        said += f' The paper\'s conclusion "TVD between oracles matters most" {word} ({probability:.3f}).'
    best = str(compared["model"].iloc[0])
    outside = ", ".join(checked.loc[~checked["inside"], "property"].astype(str)) or "none"
    return (
        f"{said} The TVD is that between the model and {settings.target_answers} people on {row['n_rows']} contexts; "
        f"predictors are of {2 * settings.oracle_answers} other people, the model and the context. Partially pooled "
        f"groups: {dataset.attrs['groups'] or 'none'}; the fit {FIT_LABELS.get(best, best)} predicts best by "
        f"leave-one-out (`fits.csv`); outside the predictive checks (`checks.csv`): {outside}."
    )
