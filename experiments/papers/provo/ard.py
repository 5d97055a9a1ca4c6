"""``+exp=ard_legacy``: what the distance depends on, by the code of appendix B."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from pydantic import Field

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.ard.figures import ard_predictors_figure, predictor_label
from shannon_game.experiments.cloze.ard.settings import PredictorSettings
from shannon_game.experiments.cloze.figures import about
from shannon_game.experiments.cloze.settings import chosen_models
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.papers.provo.ard_figures import ard_legacy_figure
from shannon_game.experiments.papers.provo.ard_steps import paper_steps, step_rows
from shannon_game.experiments.papers.provo.quirks import legacy_columns
from shannon_game.inference.settings import Names, Probability

__all__ = ["ArdLegacySettings", "ard_legacy"]

_SHOWN = ("fit", "engine", "predictor", "unit", "coefficient", "sd", "lower", "upper")


class ArdLegacySettings(PredictorSettings):
    """Settings of :func:`ard_legacy`."""

    players: Names | None = ("gpt2",)
    """The model that is compared with people."""
    interval: Probability = 0.9
    """Probability inside the posterior intervals (equal tails)."""
    legacy_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the paper's oracles."""


@experiment(ArdLegacySettings)
def ard_legacy(study: xr.Dataset, settings: ArdLegacySettings) -> ExperimentResult:
    """Regress the TVD between one model and people on properties of the context, as the paper's code does."""
    models = chosen_models(settings, study)
    if len(models) != 1:
        raise InputError(f"is {models}; ard_legacy is about one model: players=[gpt2]", field="players")
    columns = legacy_columns(study, models[0], settings.predictors, seed=settings.legacy_seed)
    steps = paper_steps(study, models[0], columns)
    if not steps:
        raise InputError(
            f"{models[0]!r} has contexts without any word or answer, and the paper's code cannot take them",
            field="players",
        )
    values = np.stack(list(columns.predictors.values()), axis=1)
    rows = step_rows(steps, (1 - settings.interval) / 2)
    table = pd.DataFrame(rows)[[*_SHOWN, "published", "published_bar", "n_rows"]]
    # the regression's line for each predictor, the others at their means
    ends = np.stack([values.min(axis=0), values.max(axis=0)], axis=1)
    first, means = steps[0].fit, values.mean(axis=0)
    slope = first.coefficient[:, None]
    others = float(means @ first.coefficient) - means[:, None] * slope
    dataset = xr.Dataset(
        {
            "target": ("row", columns.target),
            "predictor_value": (("row", "predictor"), values),
            "curve_at": (("predictor", "grid"), ends),
            "curve_tvd": (("predictor", "quantile", "grid"), (first.intercept + others + slope * ends)[:, None]),
            "intercept": ("step", [step.fit.intercept for step in steps]),
            "coefficient": (("step", "predictor"), np.stack([step.fit.coefficient for step in steps])),
            "sd": (("step", "predictor"), np.stack([step.fit.sd for step in steps])),
        },
        coords={
            "predictor": list(columns.predictors),
            "step": np.array([step.name for step in steps], dtype=object),
            "item_of_row": ("row", columns.item.astype(object)),
        },
    )
    shown: dict[str, Any] = {"interval": settings.interval, "about": about(study, settings.players)}
    return ExperimentResult(
        table=table,
        dataset=dataset,
        figures={
            "coefficients": ard_legacy_figure(table, **shown),
            "predictors": ard_predictors_figure(dataset, line="scikit-learn's line", **shown),
        },
        text=_legacy_text(table),
        warnings=(
            "legacy: oracle 1 is part of the target and of a predictor; predictors keep their units, so that the size "
            "of a coefficient is no relevance; 2 / lambda is no interval",
        ),
    )


def _legacy_text(table: pd.DataFrame) -> str:
    """Say what the paper's regression gives, and why its sizes are no relevance."""
    raw = table[table["fit"] == "legacy"].set_index("predictor")
    standard = table[table["fit"] == "standardised"].set_index("predictor")
    given = "; ".join(
        f"{predictor_label(str(name))} {row['coefficient']:.4f}"
        + (f" (paper {row['published']:.3f})" if np.isfinite(row["published"]) else "")
        for name, row in raw.iterrows()
    )
    rescaled = "; ".join(f"{predictor_label(str(name))} {row['coefficient']:.3f}" for name, row in standard.iterrows())
    first, second = (predictor_label(str(frame["coefficient"].abs().idxmax())) for frame in (raw, standard))
    fewer = "The paper's coefficients are from all 2,687 contexts; the model's samples are public for fewer. "
    return (
        f"scikit-learn's ARDRegression with the paper's settings, on {int(raw['n_rows'].iloc[0])} contexts: {given}. "
        f"The largest is that of **{first}**. These are changes of the TVD per unit of each predictor, and units "
        f"differ. Per standard deviation they are: {rescaled}; the largest is that of **{second}**.\n\n"
        + (fewer if raw["published"].notna().any() else "")
        + "The paper's figure draws 2 / lambda around each coefficient, twice the variance of a prior "
        "(`published_bar`); `sd` is the posterior standard deviation. Oracle 1 is in the target and in the TVD between "
        "oracles: `+exp=ard` takes other people for each."
    )
