"""Documents: the texts that studies are made from, and corpora that models are scored on."""

from shannon_game.estimators.documents.clusters import CrossedMean, crossed_mean
from shannon_game.estimators.documents.corpus import (
    ClusteredMean,
    CorpusScores,
    UnitLoss,
    clustered_mean,
    corpus_scores,
    unit_loss,
)
from shannon_game.estimators.documents.crossed_slope import CrossedSlope, crossed_slope
from shannon_game.estimators.documents.overlap import NgramOverlap, ngram_overlap
from shannon_game.estimators.documents.pooled import PooledMean, pooled_mean, validate_estimates_study
from shannon_game.estimators.documents.regression import ClusteredRegression, clustered_regression
from shannon_game.estimators.documents.rules import RulesText, rules_texts
from shannon_game.estimators.documents.study import document_tokens, validate_documents_study

__all__ = [
    "ClusteredMean",
    "ClusteredRegression",
    "CorpusScores",
    "CrossedMean",
    "CrossedSlope",
    "NgramOverlap",
    "PooledMean",
    "RulesText",
    "UnitLoss",
    "clustered_mean",
    "clustered_regression",
    "corpus_scores",
    "crossed_mean",
    "crossed_slope",
    "document_tokens",
    "ngram_overlap",
    "pooled_mean",
    "rules_texts",
    "unit_loss",
    "validate_documents_study",
    "validate_estimates_study",
]
