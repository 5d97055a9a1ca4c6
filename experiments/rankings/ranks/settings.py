"""Settings of ``+exp=ranks``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.bayes import ConvergenceRow, PosteriorSettings, SamplerSettings
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.settings import Count, Counts, Probability, Settings, UserPath, numbers_of
from shannon_game.models.rankings.slope_priors import RankPriors


class RankRow(column.Row, last=ConvergenceRow):
    """One model."""

    model: str = column.key("model", players=True)
    n_tokens: int | None = column.context("tokens")
    n_windows: int = column.context("windows")
    average: float = column.estimate("mean of the linear, reciprocal and both exponential scores")
    linear: float = column.detail("linear score of the rank")
    reciprocal: float = column.detail("reciprocal rank")
    exponential_01: float | None = column.detail("exponential score, decay 0.1")
    exponential_03: float | None = column.detail("exponential score, decay 0.3")
    top_1: float = column.detail("share of tokens ranked first")
    share_censored: float = column.detail("share of tokens that are not among those ranked")
    approximate_perplexity: float | None = column.estimate("perplexity, from the lists of tokens")
    perplexity_bound: float | None = column.beside("approximate_perplexity", "what it is at least")
    expected_score_median: float | None = column.headline("expected score", interval="expected_score_{}")
    score_per_doubling_median: float | None = column.estimate(
        "its change when the context doubles", interval="score_per_doubling_{}"
    )
    log_odds_per_doubling_median: float | None = column.estimate(
        "that of log-odds", interval="log_odds_per_doubling_{}"
    )
    p_slope_positive: float | None = column.beside("score_per_doubling_median", "probability that it is above 0")
    p_best: float | None = column.beside("expected_score_median", "probability that it is the highest")
    p_steepest: float | None = column.detail("probability that the model's slope is the steepest")


def _one_endpoint(models: Any) -> Any:
    if isinstance(models, Mapping):
        live = any(isinstance(its, Mapping) and its.get("source", "api") != "api" for its in models.values())
        if live or len(models) > 1:
            raise InputError(f"names {', '.join(models)}; ranks takes one endpoint: {Set('model', ['api'])}")
    return models


class AskSettings(Settings):
    """How an endpoint is asked about a study of texts (study=texts model=[api])."""

    models: Annotated[Mapping[str, ApiSettings], BeforeValidator(_one_endpoint)] = {}
    """The one endpoint; on the command line model=[api] models.api.base_url=..."""
    tokenizer: str = ""
    """The model's own tokens: study (of a documents study that has them), tiktoken:ENCODING, file:TOKENIZER.json."""
    lengths: Counts = (32, 128, 512)
    """Tokens of context before a reference token."""
    n_windows: Count = 10
    """Places in the texts, drawn at random, the same for every length."""
    n_tokens: Count = 30
    """Reference tokens at each place."""
    window: Literal["growing", "sliding"] = "growing"
    """growing: the context grows from token to token; sliding: exactly so many tokens, which leaves reuse little."""
    store: UserPath = Path("api_answers.db")
    """SQLite file with the paid answers, to go on with and never to pay twice."""
    estimate_only: bool = False
    """Say what it will cost, and ask nothing."""


class ListSettings(Settings):
    """How tokens are found in the lists of a ranking study."""

    match: Literal["stripped", "exact", "id"] = "stripped"
    """How the reference token is found in a list: without outer blanks (the thesis), as it is, or by its number."""
    tie: Literal["listed", "best", "middle", "worst"] = "listed"
    """Place of a token among equally probable ones; listed is the thesis's."""
    top_k: Count | None = None
    """Tokens of a list to look at; null takes all."""


class ScoreSettings(Settings):
    """Which scores of a rank are compared."""

    decays: tuple[Annotated[float, Field(gt=0)], ...] = (0.1, 0.3)
    """Rates of the exponential scores."""
    weights: dict[str, Annotated[float, Field(ge=0)]] | None = None
    """Weights of scores in their average (separation.csv), as {linear: 1, reciprocal: 2}; null: the same for linear,
    reciprocal and exponential ones."""
    power: Probability = 0.8
    """Power of the test whose windows are counted."""
    level: Probability = 0.05
    """Level of that test, two-sided."""


class RanksSettings(PosteriorSettings, ListSettings, ScoreSettings, AskSettings):
    censoring: Literal["below_last", "bound", "uniform", "exact"] = "below_last"
    """Probability of a token outside the list: below_last (the thesis: the last one's, times exp(-offset_nats)),
    bound (the most that the list leaves), uniform (what is left, shared by vocab_size), exact (a whole vocabulary)."""
    offset_nats: float = 3.0
    """See below_last."""
    vocab_size: Count | None = None
    """See uniform."""
    posterior: bool = True
    """Fit the regression (extra bayes), about a minute; false: scores only, in seconds."""
    score: Literal["average", "linear", "reciprocal", "top_1"] = "average"
    """Score in which slopes and power are told; average is of linear, reciprocal and two exponential ones."""
    n_draws: Count = 400
    """Posterior draws behind predictions and power."""
    power_windows: Annotated[tuple[Annotated[int, Field(ge=3)], ...], Field(min_length=1)] = (
        *(8, 16, 32, 64, 128, 256, 512),
        1024,
    )
    """Windows of a new study, in all, spread evenly over the lengths."""
    priors: Annotated[RankPriors, numbers_of(RankPriors)] = RankPriors()
    """Scales of the priors; only those to change."""
    sampler: SamplerSettings = SamplerSettings(draws=1500, tune=800)
    """What draws from the posterior."""
