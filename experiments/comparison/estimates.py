"""Perplexity of players: the settings that all questions to a comparison study share, and the rows of their tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from pydantic import model_validator

from shannon_game.estimators.comparison import (
    ESTIMATORS,
    HUMAN,
    ItemTerms,
    LogMeans,
    PerplexityEstimate,
    RoundingScheme,
    estimate_perplexity,
    rounding_scheme,
    subsample_responses,
)
from shannon_game.estimators.comparison.rounding import SCHEMES
from shannon_game.estimators.comparison.terms import control_model, player_names
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Set, word
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import player_colours, player_label
from shannon_game.experiments.harness.registry import own_function
from shannon_game.experiments.harness.settings import Seeded, rng_for, rows_of
from shannon_game.inference.settings import Count, Group, Names, Probability

XLABEL = "perplexity per token"
R = TypeVar("R", bound="EstimateRow")

_ROUNDINGS = {"none": "as given", "interface": "rounded to 11 values"}


class EstimatorSettings(Group):
    """How the mean likelihood ratio is estimated, and what the bars cover."""

    name: str = "importance"
    """importance (equations 4 and 5), naive (equation 3), jackknife, delta, psis, rao_blackwell, or the name of your
    own, by default that of its function."""
    log_mean: str | None = None
    """Dotted name of a log-mean of your own: takes the terms by item, gives their log-means. In Python the function
    itself can stand for the estimator."""
    uncertainty: Literal["items", "samples"] = "items"
    """What the bars cover: the spread over items, or that over the responses of an item."""
    interval: Probability = 0.9
    """Probability inside the bars, which are normal: 0.954 for two standard errors, as in the paper."""
    reference: Literal["reference", "asked"] = "reference"
    """Items over which L_G is averaged: the study's reference items, or those of the estimate."""

    @property
    def function(self) -> str | Callable[[ItemTerms], LogMeans]:
        """Name of a log-mean of the toolkit, or the user's own."""
        if self.log_mean is None:
            return self.name
        return own_function(self.log_mean, "LogMeans", field=Set("estimator.log_mean"))

    @model_validator(mode="before")
    @classmethod
    def _of_your_own(cls, given: Any) -> Any:
        if callable(given):
            given = {"log_mean": f"{given.__module__}.{given.__qualname__}"}
        if not isinstance(given, dict) or not isinstance(given.get("log_mean"), str):
            return given
        # what is not one of ours must not bear its name
        unnamed = given.get("name", "importance") in ESTIMATORS
        return {**given, "name": given["log_mean"].rpartition(".")[2]} if unnamed else given

    @model_validator(mode="after")
    def _exists(self) -> EstimatorSettings:
        if isinstance(self.function, str) and self.name not in ESTIMATORS:
            raise unknown_choice("estimator", self.name, ESTIMATORS)
        return self


class RoundingSettings(Group):
    """The grid to which reports are rounded."""

    name: str = "interface"
    """A named scheme (none, interface, coarse, coarser, ...), or custom."""
    values: tuple[float, ...] | None = None
    """With custom: the allowed probabilities, such as [0.05, 0.5, 0.95]."""
    space: Literal["probability", "log_odds"] = "probability"
    """With custom: the scale on which the nearest value is sought."""
    tie: Literal["even", "lower", "upper"] = "even"
    """With custom: where a report goes that is halfway between two values."""

    @property
    def scheme(self) -> RoundingScheme:
        """The scheme that these settings describe."""
        if self.name != "custom":
            if (self.values, self.space, self.tie) != (None, "probability", "even"):
                problem = (
                    f"is {self.name!r}, which has values, space and tie of its own; set {Set('rounding', 'custom')}"
                )
                raise InputError(problem, field=Set("rounding"))
            return rounding_scheme(self.name)
        if not self.values:
            given = word(None) if self.values is None else "[]"
            raise InputError(
                f"is {given}, should be a list of probabilities: [0.05, 0.5, 0.95]", field=Set("rounding.values")
            )
        return RoundingScheme("custom", self.values, space=self.space, tie=self.tie)

    @model_validator(mode="after")
    def _exists(self) -> RoundingSettings:
        _ = self.scheme
        return self


class GeneratorSettings(Group):
    """The model that drew the candidates, and controls the estimator."""

    name: str | None = None
    """A model of the study; null is the study's own generator."""
    control_only: bool = False
    """Use the named model as a control only, the candidates staying those of the model that drew them."""

    @model_validator(mode="before")
    @classmethod
    def _a_live_model_by_its_name(cls, given: Any) -> Any:
        # the candidates of a study that was read are drawn: of a model that could run, the name is what counts
        live = isinstance(given, dict) and "source" in given
        return {key: given[key] for key in ("name", "control_only") if key in given} if live else given


class PlayerSettings(Seeded):
    """Which players, and how their reports are rounded."""

    players: Names | None = None
    """Players to show, such as [human, gpt2-small]; null takes all."""
    rounding: RoundingSettings = RoundingSettings()
    """The grid to which reports are rounded."""


class EstimateSettings(PlayerSettings):
    """How the players' perplexities are estimated."""

    estimator: EstimatorSettings = EstimatorSettings()
    """How the mean likelihood ratio is estimated."""
    generator: GeneratorSettings = GeneratorSettings()
    """The model that drew the candidates."""


class ResponseSettings(Seeded):
    """Which responses are taken."""

    n: Count | None = None
    """Responses per item, drawn at random; null takes all."""


class ComparisonSettings(EstimateSettings, ResponseSettings):
    """What most questions to a comparison study take."""


def rounding_label(name: str) -> str:
    """Say what a rounding does, for a reader who does not know its name."""
    if name in _ROUNDINGS:
        return _ROUNDINGS[name]
    return f"rounded to {len(SCHEMES[name].values)} values ({name})" if name in SCHEMES else f"rounded: {name}"


class EstimateRow(column.Row):
    """One player under one rounding: what every perplexity-like table has; a question may add columns of its own."""

    player: str = column.key("participant or model", players=True)
    rounding: str = column.key(
        "grid to which probability judgements are rounded", usual="none", setting="rounding", words=rounding_label
    )
    estimator: str = column.setting("log-mean of the likelihood ratio", setting="estimator")
    generator: str = column.setting("model that drew the candidates, or controls the estimator", setting="generator")
    n_items: int = column.context("items asked")
    n_responses: int = column.context("responses")
    gap_nats: float = column.estimate("loss minus the generator's", unit="nats")
    se_items_nats: float = column.se("gap_nats", "standard error over items (source i)", unit="nats")
    se_samples_nats: float = column.se(
        "gap_nats", "standard error of a finite number of responses (source ii)", unit="nats"
    )
    reference_loss_nats: float = column.context("L_G, the generator's loss over the reference items", unit="nats")
    perplexity: float = column.headline("exp(gap + L_G)", label=XLABEL, scale="log")
    perplexity_lower: float = column.lower("perplexity")
    perplexity_upper: float = column.upper("perplexity")
    true_loss_nats: float = column.detail("true loss over the reference items", unit="nats")
    true_perplexity: float = column.detail("true perplexity over the reference items")
    true_gap_nats: float = column.truth("gap_nats", unit="nats")
    true_perplexity_asked: float = column.truth(
        "perplexity", "exp(true gap on the items asked + L_G): what it should be"
    )
    error_nats: float = column.error("perplexity", "gap minus the true gap on the same items", unit="nats")
    pareto_k: float = column.detail(
        "tail of the leave-one-out weights: under 0.5 fine, over 0.7 hopeless; none: no tail to fit"
    )
    kl_nats: float = column.detail("KL(player, generator) by self-normalised weights", unit="nats")
    n_required: float = column.detail("responses per item that the KL needs")
    share_starved: float = column.detail("share of items with fewer than two effective responses")
    verdict: str = column.flag("whether the responses per item are enough", bad={"too few": "‡", "doubtful": "†"})


def chosen_players(study: xr.Dataset, players: Sequence[str] | None) -> list[str]:
    """Players to show: those named, by default all of the study."""
    valid = player_names(study)
    if players is None:
        return valid
    for name in players:
        if name not in valid:
            raise unknown_choice("player", name, valid, source=f"players, study {study.attrs['name']!r}")
    if not players or len(set(players)) < len(players):
        raise InputError(
            f"is {list(players)}; name each player once, or leave it {word(None)} for all", field="players"
        )
    return list(players)


def chosen_models(study: xr.Dataset, players: Sequence[str] | None, why: str) -> list[str]:
    """Language models among the players: those named, by default all of the study."""
    chosen = chosen_players(study, players)
    if players is not None and HUMAN in chosen:
        raise InputError(f"names {HUMAN!r}, {why}", field="players")
    return [player for player in chosen if player != HUMAN]


def asked_for(study: xr.Dataset, settings: ComparisonSettings) -> tuple[xr.Dataset, str]:
    """Give the study with as many responses as are asked for, and the model that controls the estimator."""
    control = control_model(study, settings.generator.name, control_only=settings.generator.control_only)
    return with_n_responses(study, settings.n, settings.seed), control


def with_n_responses(study: xr.Dataset, n: int | None, seed: int) -> xr.Dataset:
    """Return the study, with only `n` random responses per item where `n` is given."""
    return study if n is None else subsample_responses(study, n, rng_for(seed, "responses"))


def compared_schemes(rounding: RoundingSettings) -> list[RoundingScheme]:
    """No rounding and the one of the settings, which may be the same."""
    return list(dict.fromkeys([rounding_scheme("none"), rounding.scheme]))


def estimate(settings: EstimateSettings, study: xr.Dataset, player: str, scheme: RoundingScheme) -> PerplexityEstimate:
    """Perplexity of one player under one rounding, with the estimator and generator of the settings."""
    return estimate_perplexity(
        study,
        player,
        rounding=scheme,
        estimator=settings.estimator.function,
        generator=settings.generator.name,
        control_only=settings.generator.control_only,
        uncertainty=settings.estimator.uncertainty,
        interval=settings.estimator.interval,
        reference=settings.estimator.reference,
    )


def estimate_row(result: PerplexityEstimate, generator: str, kind: type[R], **own: Any) -> R:
    """One row of a perplexity-like table; `own` are the columns that the question adds."""
    return kind.of(
        result,
        result.gap,
        result.gap.diagnostics,
        generator=generator,
        true_perplexity=float(np.exp(result.true_loss_nats)),
        true_perplexity_asked=float(np.exp(result.reference_loss_nats + result.true_gap_nats)),
        error_nats=result.gap.gap_nats - result.true_gap_nats,
        **own,
    )


def player_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Give the rows of a perplexity-like table what :func:`~shannon_game.experiments.harness.figures.forest` needs."""
    rounded = table["rounding"] != "none"
    labels = [
        rounding_label(row.rounding) if row.rounding != "none" else player_label(row.player) for row in rows_of(table)
    ]
    return table.assign(
        label=labels,
        colour=table["player"].map(player_colours(list(dict.fromkeys(table["player"])))),
        hollow=rounded,
        group=table["player"],
    )


def grey_roundings(axes: Axes) -> None:
    """Make the labels of rounded reports paler than those of the players."""
    for label in axes.get_yticklabels():
        if label.get_text().startswith("rounded"):
            label.set(color="0.4")


def bars_label(estimator: EstimatorSettings | None, what: str = "estimate") -> str:
    """Say in a legend what the bars of an estimate cover."""
    estimator = estimator or EstimatorSettings()
    return f"{what}, {estimator.interval:.0%} interval over {estimator.uncertainty}"
