"""``+exp=reproduce experiment.of=ard``: the regression of appendix B, step by step up to a clean one.

Steps: with the paper's settings (``legacy``), ``standardised``, with ``parts_of_speech`` where the study has them, and
on clean words: with the same split on both sides (``shared``), over all splits of the same people (``resplit``), with
other people on each side (``disjoint``).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from pydantic import Field
from scipy.stats import norm

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.ard.figures import ard_predictors_figure, predictor_label
from shannon_game.experiments.cloze.ard.settings import RelevanceSettings, design_columns
from shannon_game.experiments.cloze.figures import about
from shannon_game.experiments.cloze.settings import chosen_models
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.papers.provo.quirks import legacy_columns
from shannon_game.inference.cloze.sklearn_ard import SklearnArd, sklearn_ard
from shannon_game.inference.settings import Names, Probability
from shannon_game.models.cloze.ard_columns import ArdColumns

_TAGGED = "parts_of_speech"
_PER_UNIT = ("legacy", _TAGGED)
_PUBLISHED = {"human_entropy": 0.053, "model_entropy": 0.095, "oracle_tvd": 0.117, "context_length": 0.0}


class ArdLegacySettings(RelevanceSettings):
    players: Names | None = ("gpt2",)
    """The model that is compared with people."""
    interval: Probability = 0.9
    """Probability inside the posterior intervals (equal tails)."""
    legacy_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the paper's oracles."""


class ArdLegacyRow(column.Row):
    """One predictor in one step."""

    fit: str = column.key("step from the paper's settings to clean ones")
    predictor: str = column.key("property of the context", words=predictor_label)
    unit: str = column.context("what the coefficient is per")
    coefficient: float = column.headline("coefficient", se="sd", interval="{}")
    published: float = column.beside("coefficient", "as printed")
    published_bar: float = column.detail("2 / lambda, the paper's bar")
    n_rows: int = column.context("contexts")


@experiment(ArdLegacySettings, row=ArdLegacyRow)
def ard_legacy(study: xr.Dataset, settings: ArdLegacySettings) -> ExperimentResult:
    """Regress the TVD between one model and people on properties of the context, as the paper's code does."""
    models = chosen_models(settings, study)
    if len(models) != 1:
        raise InputError(f"is {models}; the paper's regression is about one model: players: [gpt2]", field="players")
    columns = legacy_columns(study, models[0], settings.predictors, seed=settings.legacy_seed)
    tags = [str(name) for name in study.data_vars if str(name).startswith("tag_")]
    if not np.isfinite(_matrix(columns)).all():
        raise InputError(
            f"{models[0]!r} has contexts without any word or answer, and the paper's code cannot take them",
            field="players",
        )
    of = {"legacy": columns, "standardised": columns}
    if tags:
        settings = settings.model_copy(update={"predictors": tuple(dict.fromkeys([*settings.predictors, *tags]))})
        of[_TAGGED] = legacy_columns(study, models[0], settings.predictors, seed=settings.legacy_seed)
    of |= {name: design_columns(study, settings, name) for name in ("shared", "resplit", "disjoint")}
    fits = {name: _fit(its, standardised=name not in _PER_UNIT) for name, its in of.items()}
    table = pd.concat([_rows(name, its, fits[name], settings.interval) for name, its in of.items()], ignore_index=True)
    known = table["fit"].isin(_PER_UNIT) & (models[0] == "gpt2") & (study.attrs.get("name") == "provo")
    table.insert(7, "published", table["predictor"].map(_PUBLISHED).where(known))
    dataset = _dataset(columns, fits["legacy"])
    shown: dict[str, Any] = {"interval": settings.interval, "about": about(study, settings.players)}
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "predictors": ard_predictors_figure(dataset, line="scikit-learn's line", **shown),
        },
        text=_summary(table, columns),
        warnings=(
            "legacy: oracle 1 is part of the target and of a predictor; predictors keep their units, so that the size "
            "of a coefficient is no relevance; 2 / lambda is no interval",
        ),
    )


def _matrix(columns: ArdColumns) -> NDArray[np.float64]:
    return np.stack(list(columns.predictors.values()), axis=1)


def _fit(columns: ArdColumns, *, standardised: bool) -> SklearnArd:
    x = _matrix(columns)
    if standardised:
        x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    return sklearn_ard(x, columns.target)


def _rows(name: str, columns: ArdColumns, fit: SklearnArd, interval: float) -> pd.DataFrame:
    reach = float(norm.ppf((1 + interval) / 2)) * fit.sd
    return pd.DataFrame(
        {
            "fit": name,
            "predictor": list(columns.predictors),
            "unit": "TVD per unit" if name in _PER_UNIT else "TVD per sd",
            "coefficient": fit.coefficient,
            "sd": fit.sd,
            "lower": fit.coefficient - reach,
            "upper": fit.coefficient + reach,
            "published_bar": fit.two_over_precision,
            "n_rows": columns.target.size,
        }
    )


def _dataset(columns: ArdColumns, first: SklearnArd) -> xr.Dataset:
    """Contexts, the first step's line for each predictor with the others at their means, and coefficients."""
    values = _matrix(columns)
    ends = np.stack([values.min(axis=0), values.max(axis=0)], axis=1)
    means = values.mean(axis=0)
    slope = first.coefficient[:, None]
    others = float(means @ first.coefficient) - means[:, None] * slope
    return xr.Dataset(
        {
            "target": ("row", columns.target),
            "predictor_value": (("row", "predictor"), values),
            "curve_at": (("predictor", "grid"), ends),
            "curve_tvd": (("predictor", "quantile", "grid"), (first.intercept + others + slope * ends)[:, None]),
            "intercept": first.intercept,
            "coefficient": ("predictor", first.coefficient),
            "sd": ("predictor", first.sd),
        },
        coords={
            "predictor": list(columns.predictors),
            "item_of_row": ("row", columns.item.astype(object)),
        },
    )


def _summary(table: pd.DataFrame, columns: ArdColumns) -> str:
    by_step = table.pivot_table("coefficient", "predictor", "fit", sort=False)
    largest = by_step.abs().idxmax().map(str)
    n = int(table["n_rows"].iloc[0])
    unit, sd = (f"{predictor_label(largest[fit])} ({by_step[fit][largest[fit]]:.3f})" for fit in _STEPS)
    said = f"**Per unit, {unit} has the largest coefficient; per standard deviation, {sd}**, in {n} contexts."
    if "oracle_tvd" in by_step.index:
        ours = ", ".join(f"{name} {value:.3f}" for name, value in by_step.loc["oracle_tvd"].items())
        said += f" The coefficient of the TVD between oracles is, step by step: {ours}."
        near = columns.predictors["oracle_tvd"] < 0.15
        if near.any() and not near.all():
            said += (
                f" Where it is below 0.15 ({near.sum()} contexts) the model is {columns.target[near].mean():.3f} from "
                f"the oracle on average, elsewhere {columns.target[~near].mean():.3f}."
            )
    return said + (
        " The paper draws 2 / lambda around each coefficient, twice the variance of a prior "
        "(`published_bar`), not the posterior standard deviation (`sd`)."
    )


_STEPS = ("legacy", "standardised")
