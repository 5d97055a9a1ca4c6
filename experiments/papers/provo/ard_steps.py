"""scikit-learn's regression step by step, from that of appendix B to one on other people's answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import norm

from experiments.cloze.ard.settings import RelevanceSettings, design_columns
from experiments.harness.bayes import convergence_columns
from inference.cloze.ard import sklearn_ard
from models.cloze.ard_columns import ArdColumns

__all__ = ["PUBLISHED", "Step", "clean_steps", "paper_steps", "step_rows"]

Floats = NDArray[np.float64]

PUBLISHED: Mapping[str, float] = MappingProxyType(
    {"human_entropy": 0.053, "model_entropy": 0.095, "oracle_tvd": 0.117, "context_length": 0.0}
)
"""Coefficients in table 3 of the paper, on all contexts and with terms for the part of speech."""


@dataclass(frozen=True, eq=False)
class Step:
    """One regression; coefficients of scikit-learn's fit.

    Attributes
    ----------
    name : str
    predictors : tuple of str
    coefficient, sd, bar : ndarray, shape (predictor,)
        Per standard deviation of the predictor where `standardised`; `bar` is 2 / lambda.
    intercept : float
    standardised : bool
    n_rows : int
    is_published : bool
        The paper gives coefficients for this model and design (:data:`PUBLISHED`).
    """

    name: str
    predictors: tuple[str, ...]
    coefficient: Floats
    sd: Floats
    bar: Floats
    intercept: float
    standardised: bool
    n_rows: int
    is_published: bool = False


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
    fit = sklearn_ard(x, columns.target)
    return Step(
        name=name,
        predictors=tuple(columns.predictors),
        coefficient=fit.coefficient,
        sd=fit.sd,
        bar=fit.two_over_precision,
        intercept=fit.intercept,
        standardised=standardised,
        n_rows=columns.target.size,
    )


def step_rows(steps: list[Step], tail: float) -> list[dict[str, Any]]:
    """Rows of a table like that of ``ard``: one a step and predictor."""
    reach = float(norm.isf(tail))
    rows = []
    for step in steps:
        for k, name in enumerate(step.predictors):
            value, sd = float(step.coefficient[k]), float(step.sd[k])
            ends = {"": value, "_lower": value - reach * sd, "_upper": value + reach * sd}
            rows.append(
                {
                    "fit": step.name,
                    "engine": "scikit-learn",
                    "predictor": name,
                    "unit": "TVD per sd" if step.standardised else "TVD per unit",
                    "coefficient": value,
                    "sd": sd,
                    "lower": ends["_lower"],
                    "upper": ends["_upper"],
                    **({f"effect_tvd{end}": at for end, at in ends.items()} if step.standardised else {}),
                    "published": PUBLISHED.get(name, np.nan) if step.is_published else np.nan,
                    "published_bar": float(step.bar[k]),
                    "n_rows": step.n_rows,
                    **convergence_columns(None),
                }
            )
    return rows
