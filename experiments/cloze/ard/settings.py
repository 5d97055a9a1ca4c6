"""Settings of ``+exp=ard`` and the rows that it takes from a study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

import xarray as xr
from pydantic import AfterValidator, Field

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.cloze.settings import ClozeSettings, chosen_models
from shannon_game.experiments.harness.bayes import PosteriorSettings, SamplerSettings
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.inference.settings import Count, Names, numbers_of
from shannon_game.models.cloze.ard_columns import ArdColumns, clean_columns, measured_error
from shannon_game.models.cloze.ard_data import ArdData, ard_data
from shannon_game.models.cloze.ard_priors import ArdPriors


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise InputError(f"is {list(names)}, should be a list of names, each once")
    return names


UniqueNames = Annotated[Names, AfterValidator(_each_once)]
AtLeastTwo = Annotated[int, Field(ge=2)]


class RelevanceSettings(ClozeSettings, Seeded):
    """The regression and its rows, which ``ard`` fits and ``ard_coverage`` draws."""

    predictors: Annotated[UniqueNames, Field(min_length=1)] = (
        *("human_entropy", "model_entropy"),
        *("oracle_tvd", "context_length"),
    )
    """human_entropy, model_entropy, oracle_tvd, context_length, or any numeric variable of the study by item, such as
    word_num."""
    measured: UniqueNames = ("human_entropy", "oracle_tvd")
    """Those of human_entropy and oracle_tvd that are entered with their errors of measurement."""
    target_answers: AtLeastTwo = 18
    """Answers of each context behind the target."""
    oracle_answers: AtLeastTwo = 9
    """Answers in each of the two groups behind the human predictors: other people."""
    prior: Literal["ard", "horseshoe", "normal"] = "ard"
    """Prior of the coefficients."""
    likelihood: Literal["beta", "logit_normal", "gaussian"] = "beta"
    """Distribution of the target around its regression."""
    priors: Annotated[ArdPriors, numbers_of(ArdPriors)] = ArdPriors()
    """Scales of the priors (shannon_game.models.cloze.ard_priors.ArdPriors); only those to change."""


_Change = Literal["ard", "horseshoe", "normal", "beta", "logit_normal", "gaussian", "no_error", "no_groups"]


class ArdSettings(RelevanceSettings, PosteriorSettings):
    players: Names | None = ("gpt2",)
    """Models to compare with people, with an effect of each; null takes all of the study."""
    sampler: SamplerSettings = SamplerSettings(draws=2000, tune=1000)
    """What draws from the posterior."""
    variants: tuple[_Change, ...] = ("horseshoe", "logit_normal", "gaussian", "no_error")
    """Other fits to compare the main one with, each with one thing changed: the prior, the likelihood, no_error
    (measured values taken for the true ones), no_groups (no effects of texts, items, models)."""
    n_predictive: Count = 1000
    """Posterior draws behind the checks and the effects."""


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


def variants(settings: ArdSettings) -> list[Variant]:
    """The main analysis and the others, which differ from it; one that is the same is left out."""
    found = [Variant("main", settings.prior, settings.likelihood)]
    for name in settings.variants:
        other = replace(found[0], name=name, **VARIANTS[name])
        if all(other != replace(one, name=name) for one in found):
            found.append(other)
    return found


def design_columns(study: xr.Dataset, settings: RelevanceSettings, design: str = "disjoint") -> ArdColumns:
    """Rows of a design, drawn with the run's seed."""
    return clean_columns(
        study,
        chosen_models(settings, study),
        settings.predictors,
        rng=rng_for(settings.seed, f"ard {design}"),
        target_answers=settings.target_answers,
        oracle_answers=settings.oracle_answers,
        design=design,
        rules=settings.words.of(study),
    )


def data_of(columns: ArdColumns, settings: RelevanceSettings) -> ArdData:
    """What the model is fitted to."""
    return ard_data(
        columns.target,
        columns.predictors,
        text=columns.text,
        item=columns.item,
        player=columns.player,
        measured=measured_error(columns, settings.measured),
    )
