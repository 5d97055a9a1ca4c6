"""Rankings: how far down a list of candidates the true token stands."""

from shannon_game.estimators.documents.guess_bounds import GuessBounds as GuessBounds
from shannon_game.estimators.documents.guess_bounds import guess_bounds as guess_bounds
from shannon_game.estimators.rankings import examples as examples
from shannon_game.estimators.rankings.perplexity import ApproximatePerplexity as ApproximatePerplexity
from shannon_game.estimators.rankings.perplexity import approximate_perplexity as approximate_perplexity
from shannon_game.estimators.rankings.perplexity import reference_log_probability as reference_log_probability
from shannon_game.estimators.rankings.ranks import match_tokens as match_tokens
from shannon_game.estimators.rankings.ranks import rank_at as rank_at
from shannon_game.estimators.rankings.ranks import ranks_among as ranks_among
from shannon_game.estimators.rankings.scores import average_score as average_score
from shannon_game.estimators.rankings.scores import exponential_score as exponential_score
from shannon_game.estimators.rankings.scores import linear_score as linear_score
from shannon_game.estimators.rankings.scores import reciprocal_score as reciprocal_score
from shannon_game.estimators.rankings.scores import top_k_accuracy as top_k_accuracy
from shannon_game.estimators.rankings.separation import Separation as Separation
from shannon_game.estimators.rankings.separation import paired_separation as paired_separation
from shannon_game.estimators.rankings.study import TokenScores as TokenScores
from shannon_game.estimators.rankings.study import score_study as score_study
from shannon_game.estimators.rankings.study import validate_ranking_study as validate_ranking_study
