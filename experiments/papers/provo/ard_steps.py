"""scikit-learn's regression step by step, from that of appendix B to one on other people's answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import norm

from shannon_game.experiments.cloze.ard.settings import RelevanceSettings, design_columns
from shannon_game.experiments.harness.bayes import convergence_columns
from shannon_game.inference.cloze.ard import SklearnArd, sklearn_ard
from shannon_game.models.cloze.ard_columns import ArdColumns

__all__ = ["PUBLISHED", "Step", "clean_steps", "paper_steps", "step_rows"]

Floats = NDArray[np.float64]

PUBLISHED: Mapping[str, float] = MappingProxyType(
    {"human_entropy": 0.053, "model_entropy": 0.095, "oracle_tvd": 0.117, "context_length": 0.0}
)
"""Coefficients in table 3 of the paper, on all contexts and with terms for the part of speech."""


@dataclass(frozen=True, eq=False)
class Step:
    """One regression by scikit-learn, per standard deviation of the predictors where `standardised`."""

    name: str
    predictors: tuple[str, ...]
    fit: SklearnArd
    standardised: bool
    n_rows: int
    is_published: bool = False
    """The paper gives coefficients for this model and design (:data:`PUBLISHED`)."""


def paper_steps(study: xr.Dataset, model: str, columns: ArdColumns) -> list[Step]:
    """Regressions on the paper's rows: with its settings ("legacy"), and "standardised".

    None where a context has no word or no answer, which the paper's code cannot take.
    """
    if not np.isfinite(_matrix(columns)).all():
        return []
    is_published = model == "gpt2" and study.attrs.get("name") == "provo"
    legacy = replace(_step("legacy", columns, standardised=False), is_published=is_published)
    return [legacy, _step("standardised", columns, standardised=True)]


def clean_steps(study: xr.Dataset, settings: RelevanceSettings) -> list[Step]:
    """Regressions on clean words, changing one thing at a time.

    "shared": one generator for the splits; oracle 1 on both sides. "resplit": oracle TVD averaged over all splits; the
    same people on both sides. "disjoint": other people behind the predictors than behind the target.
    """
    designs = ("shared", "resplit", "disjoint")
    return [_step(design, design_columns(study, settings, design), standardised=True) for design in designs]


def _matrix(columns: ArdColumns) -> Floats:
    return np.stack(list(columns.predictors.values()), axis=1)


def _step(name: str, columns: ArdColumns, *, standardised: bool) -> Step:
    x = _matrix(columns)
    if standardised:
        x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    return Step(name, tuple(columns.predictors), sklearn_ard(x, columns.target), standardised, columns.target.size)


def step_rows(steps: list[Step], tail: float) -> list[dict[str, Any]]:
    """Rows of a table like that of ``ard``: one a step and predictor."""
    reach = float(norm.isf(tail))
    tables = []
    for step in steps:
        value, sd = step.fit.coefficient, step.fit.sd
        table = pd.DataFrame(
            {
                "fit": step.name,
                "engine": "scikit-learn",
                "predictor": step.predictors,
                "unit": "TVD per sd" if step.standardised else "TVD per unit",
                "coefficient": value,
                "sd": sd,
                "lower": value - reach * sd,
                "upper": value + reach * sd,
                "published": [PUBLISHED.get(name, np.nan) if step.is_published else np.nan for name in step.predictors],
                "published_bar": step.fit.two_over_precision,
                "n_rows": step.n_rows,
            }
        ).assign(**convergence_columns(None))
        if step.standardised:
            effect = {"": "coefficient", "_lower": "lower", "_upper": "upper"}
            table = table.assign(**{f"effect_tvd{end}": table[column] for end, column in effect.items()})
        tables.append(table)
    return [{str(key): value for key, value in row.items()} for table in tables for row in table.to_dict("records")]
