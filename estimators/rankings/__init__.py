"""Rankings: how far down a list of candidates the true token stands."""

from shannon_game.estimators.documents.guess_bounds import GuessBounds, guess_bounds
from shannon_game.estimators.rankings.perplexity import (
    ApproximatePerplexity,
    approximate_perplexity,
    reference_log_probability,
)
from shannon_game.estimators.rankings.ranks import match_tokens, rank_at, ranks_among
from shannon_game.estimators.rankings.scores import (
    average_score,
    exponential_score,
    linear_score,
    reciprocal_score,
    top_k_accuracy,
)
from shannon_game.estimators.rankings.separation import Separation, paired_separation
from shannon_game.estimators.rankings.study import (
    TokenScores,
    conditioned_on_other_text,
    score_study,
    validate_ranking_study,
)

__all__ = [
    "ApproximatePerplexity",
    "GuessBounds",
    "Separation",
    "TokenScores",
    "approximate_perplexity",
    "average_score",
    "conditioned_on_other_text",
    "exponential_score",
    "guess_bounds",
    "linear_score",
    "match_tokens",
    "paired_separation",
    "rank_at",
    "ranks_among",
    "reciprocal_score",
    "reference_log_probability",
    "score_study",
    "top_k_accuracy",
    "validate_ranking_study",
]
