"""Settings of ``+exp=ard``, the rows it takes from a study, and its fits by scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from omegaconf import DictConfig, ListConfig

from estimators.errors import InputError, unknown_choice
from experiments.cloze.settings import chosen_models, wide_rules
from experiments.harness.settings import rng_for

if TYPE_CHECKING:
    from models.cloze.ard_columns import ArdColumns

__all__ = [
    "PUBLISHED",
    "VARIANTS",
    "LadderStep",
    "Variant",
    "design_columns",
    "ladder",
    "main_variant",
    "names_of",
    "variants",
]

Floats = NDArray[np.float64]

PUBLISHED: Mapping[str, float] = MappingProxyType(
    {"human_entropy": 0.053, "model_entropy": 0.095, "oracle_tvd": 0.117, "context_length": 0.0}
)
"""Coefficients in table 3 of the paper, on all contexts and with terms for the part of speech."""


@dataclass(frozen=True)
class Variant:
    """One Bayesian fit."""

    name: str
    prior: str
    likelihood: str
    error: bool = True
    groups: bool = True


VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        **{name: {"prior": name} for name in ("ard", "horseshoe", "normal")},
        **{name: {"likelihood": name} for name in ("beta", "logit_normal", "gaussian")},
        "no_error": {"error": False},
        "no_groups": {"groups": False},
    }
)
"""What each variant changes in the main analysis."""


@dataclass(frozen=True, eq=False)
class LadderStep:
    """One step from the paper's regression to one on other people's answers; coefficients of scikit-learn's fit.

    Attributes
    ----------
    name, text : str
    predictors : tuple of str
    coefficient, sd, bar : ndarray, shape (predictor,)
        Per standard deviation of the predictor where `standardised`; `bar` is 2 / lambda.
    standardised : bool
    n_rows : int
    is_published : bool
        The paper gives coefficients for this model and design (:data:`PUBLISHED`).
    """

    name: str
    text: str
    predictors: tuple[str, ...]
    coefficient: Floats
    sd: Floats
    bar: Floats
    intercept: float
    standardised: bool
    n_rows: int
    is_published: bool = False


def main_variant(cfg: DictConfig) -> Variant:
    """Read the main analysis, checked."""
    from models.cloze.ard import COEFFICIENT_PRIORS  # noqa: PLC0415 - seconds that only a fit should cost
    from models.cloze.ard_data import LIKELIHOODS  # noqa: PLC0415

    priors = [name for name in COEFFICIENT_PRIORS if name != "fixed"]
    for key, valid in (("prior", priors), ("likelihood", LIKELIHOODS)):
        if cfg.experiment[key] not in valid:
            raise unknown_choice(key, cfg.experiment[key], valid, source="experiment")
    return Variant("main", str(cfg.experiment.prior), str(cfg.experiment.likelihood))


def variants(cfg: DictConfig) -> list[Variant]:
    """The main analysis and the others, which differ from it; one that is the same is left out."""
    main = main_variant(cfg)
    found = [main]
    for name in names_of(cfg, "variants", empty=True):
        if name not in VARIANTS:
            raise unknown_choice("variant", name, VARIANTS, source="experiment.variants")
        other = Variant(**{**vars(main), **VARIANTS[name], "name": name})
        if any({**vars(other), "name": ""} == {**vars(one), "name": ""} for one in found):
            continue
        found.append(other)
    return found


def names_of(cfg: DictConfig, key: str, *, empty: bool = False) -> list[str]:
    """Read a list of names from ``experiment.KEY``."""
    value = cfg.experiment[key]
    names = [str(name) for name in value] if isinstance(value, ListConfig) else []
    if not isinstance(value, ListConfig) or len(set(names)) < len(names) or not (names or empty):
        raise InputError(f"is {value!r}, should be a list of names, each once", field=f"experiment.{key}")
    return names


def design_columns(cfg: DictConfig, study: xr.Dataset, design: str = "disjoint") -> ArdColumns:
    """Rows of a clean design, drawn with the run's seed."""
    from models.cloze.ard_columns import clean_columns  # noqa: PLC0415

    settings = cfg.experiment
    for key in ("target_answers", "oracle_answers"):
        if not isinstance(settings[key], int) or isinstance(settings[key], bool) or settings[key] < 2:
            raise InputError(f"is {settings[key]!r}, should be a whole number from 2", field=f"experiment.{key}")
    return clean_columns(
        study,
        chosen_models(cfg, study),
        names_of(cfg, "predictors"),
        rng=rng_for(cfg, f"ard {design}"),
        target_answers=settings.target_answers,
        oracle_answers=settings.oracle_answers,
        design=design,
        rules=wide_rules(cfg, study),
    )


def ladder(cfg: DictConfig, study: xr.Dataset) -> list[LadderStep]:
    """Fit scikit-learn's regression step by step from the paper's to the clean design."""
    from models.cloze.ard_columns import legacy_columns  # noqa: PLC0415

    models, predictors = chosen_models(cfg, study), names_of(cfg, "predictors")
    seed = cfg.experiment.legacy_seed
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"is {seed!r}, should be a whole number", field="experiment.legacy_seed")
    steps = []
    if len(models) == 1:
        legacy = legacy_columns(study, models[0], predictors, seed=seed)
        if np.isfinite(_matrix(legacy)).all():
            steps += [
                replace(
                    _step("legacy", "the paper's settings", legacy, standardised=False),
                    is_published=models == ["gpt2"] and study.attrs.get("name") == "provo",
                ),
                _step("standardised", "the same, predictors standardised", legacy, standardised=True),
            ]
    if cfg.experiment.mode == "legacy":
        return steps
    for design, text in (
        ("shared", "clean words, one generator for the splits; oracle 1 on both sides"),
        ("resplit", "oracle TVD averaged over all splits; the same people on both sides"),
        ("disjoint", "other people behind the predictors than behind the target"),
    ):
        steps.append(_step(design, text, design_columns(cfg, study, design), standardised=True))
    return steps


def _matrix(columns: ArdColumns) -> Floats:
    return np.stack(list(columns.predictors.values()), axis=1)


def _step(name: str, text: str, columns: ArdColumns, *, standardised: bool) -> LadderStep:
    from inference.cloze.ard import sklearn_ard  # noqa: PLC0415

    x = _matrix(columns)
    if standardised:
        x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)
    fit = sklearn_ard(x, columns.target)
    return LadderStep(
        name=name,
        text=text,
        predictors=tuple(columns.predictors),
        coefficient=fit.coefficient,
        sd=fit.sd,
        bar=fit.two_over_precision,
        intercept=fit.intercept,
        standardised=standardised,
        n_rows=columns.target.size,
    )
