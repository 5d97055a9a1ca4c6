"""Corpus scores: closed forms, an independent loop, and what the clustered standard error is for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shannon_game.estimators.documents.corpus import clustered_mean, corpus_scores
from shannon_game.estimators.errors import InputError


def test_two_documents_by_hand():
    # document a: losses 1, 3; document b: loss 2
    scores = corpus_scores([-1.0, -3.0, -2.0], [True, False, True], ["a", "a", "b"], n_bytes=12)
    assert (scores.n_documents, scores.n_tokens) == (2, 3)
    assert scores.loss_nats.mean == 2.0
    assert scores.perplexity_of_token_mean == pytest.approx(math.exp(2.0))
    assert scores.mean_sequence_perplexity.mean == pytest.approx((math.exp(2.0) + math.exp(2.0)) / 2)
    assert scores.top1_accuracy.mean == pytest.approx(2 / 3)
    assert scores.bits_per_byte == pytest.approx(6 / math.log(2) / 12)
    # both documents' totals of (loss - 2) are zero
    assert scores.loss_nats.se == 0.0


@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(-5, 5)), min_size=2, max_size=40).filter(
        lambda pairs: len({cluster for cluster, _ in pairs}) > 1
    )
)
def test_the_clustered_error_equals_a_loop(pairs):
    clusters = sorted({cluster for cluster, _ in pairs})
    mean = sum(value for _, value in pairs) / len(pairs)
    squares = 0.0
    for wanted in clusters:
        squares += sum(value - mean for cluster, value in pairs if cluster == wanted) ** 2
    expected = math.sqrt(len(clusters) / (len(clusters) - 1) * squares) / len(pairs)
    found = clustered_mean([value for _, value in pairs], [cluster for cluster, _ in pairs])
    assert found.mean == pytest.approx(mean, abs=1e-12)
    assert found.se == pytest.approx(expected, abs=1e-12)


def test_a_single_document_has_no_error():
    scores = corpus_scores([-1.0, -2.0], [False, False], [7, 7])
    assert math.isnan(scores.loss_nats.se)
    assert math.isnan(scores.bits_per_byte)


def test_a_score_that_is_no_number_is_named_by_its_place():
    with pytest.raises(InputError, match="token 1"):
        corpus_scores([-1.0, math.nan, -math.inf], [True, False, True], ["a", "a", "b"])
