"""Documents: the texts that studies are made from, and corpora that models are scored on."""

from shannon_game.estimators.documents import examples as examples
from shannon_game.estimators.documents.clusters import CrossedMean as CrossedMean
from shannon_game.estimators.documents.clusters import crossed_mean as crossed_mean
from shannon_game.estimators.documents.corpus import ClusteredMean as ClusteredMean
from shannon_game.estimators.documents.corpus import CorpusScores as CorpusScores
from shannon_game.estimators.documents.corpus import UnitLoss as UnitLoss
from shannon_game.estimators.documents.corpus import clustered_mean as clustered_mean
from shannon_game.estimators.documents.corpus import corpus_scores as corpus_scores
from shannon_game.estimators.documents.corpus import unit_loss as unit_loss
from shannon_game.estimators.documents.crossed_slope import CrossedSlope as CrossedSlope
from shannon_game.estimators.documents.crossed_slope import crossed_slope as crossed_slope
from shannon_game.estimators.documents.mixed import MixedRegression as MixedRegression
from shannon_game.estimators.documents.mixed import mixed_regression as mixed_regression
from shannon_game.estimators.documents.overlap import NgramOverlap as NgramOverlap
from shannon_game.estimators.documents.overlap import ngram_overlap as ngram_overlap
from shannon_game.estimators.documents.pooled import PooledMean as PooledMean
from shannon_game.estimators.documents.pooled import pooled_mean as pooled_mean
from shannon_game.estimators.documents.pooled import validate_estimates_study as validate_estimates_study
from shannon_game.estimators.documents.reading_gain import ReadingGain as ReadingGain
from shannon_game.estimators.documents.reading_gain import gain_difference as gain_difference
from shannon_game.estimators.documents.reading_gain import gain_over_texts as gain_over_texts
from shannon_game.estimators.documents.regression import ClusteredRegression as ClusteredRegression
from shannon_game.estimators.documents.regression import clustered_regression as clustered_regression
from shannon_game.estimators.documents.study import validate_documents_study as validate_documents_study
