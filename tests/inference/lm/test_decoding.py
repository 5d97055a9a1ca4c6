"""Decoders against a slow one, token by token; words drawn with them against every text that they can give."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from shannon_game.inference.lm.decoding import Decoding, decoded_probabilities
from shannon_game.inference.lm.word_samples import sample_words
from tests.inference.lm import tiny_models
from tests.inference.lm.test_words import BYTES, CONTEXTS, LONGEST, MERGES, PIECES, WORDS
from tests.oracles import language_model as reference

pytestmark = pytest.mark.torch

DECODINGS = [
    {},
    {"temperature": 0.5},
    {"temperature": 1.7},
    {"top_k": 1},
    {"top_k": 4},
    {"top_p": 0.3},
    {"top_p": 0.9},
    {"temperature": 0.7, "top_k": 5, "top_p": 0.8},
    {"greedy": True},
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tiny_models.save(tmp_path_factory.mktemp("small"), "llama", tiny_models.by_hand(PIECES, MERGES), seed=5)
    return tiny_models.load(folder, bos=tiny_models.END)


def normalised(rows, settings):
    found = decoded_probabilities(rows, Decoding(**settings)).numpy()
    return found / found.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("settings", DECODINGS, ids=str)
@pytest.mark.parametrize("n_tokens", [3, 40, 700])
def test_rows_are_those_of_a_slow_decoder(settings, n_tokens):
    rng = np.random.default_rng(n_tokens)
    rows = torch.log_softmax(torch.from_numpy(rng.normal(scale=[[0.3], [2.0], [6.0]], size=(3, n_tokens))), dim=-1)
    before = rows.clone()
    slow = np.stack([reference.decoded(row, **settings) for row in rows.numpy()])
    np.testing.assert_allclose(normalised(rows, settings), slow, atol=1e-12)
    assert torch.equal(rows, before)


def test_what_is_kept_by_hand():
    row = torch.tensor([[0.4, 0.3, 0.3]], dtype=torch.float64).log()
    # a token that is as probable as the last one kept stays
    np.testing.assert_allclose(normalised(row, {"top_k": 2}), [[0.4, 0.3, 0.3]])
    # a nucleus that one token reaches takes no further one
    np.testing.assert_allclose(normalised(row, {"top_p": 0.399}), [[1, 0, 0]])
    np.testing.assert_allclose(normalised(row, {"temperature": 0.5}), [np.array([16, 9, 9]) / 34])
    np.testing.assert_allclose(normalised(row, {"greedy": True}), [[1, 0, 0]])


@pytest.mark.parametrize("settings", DECODINGS, ids=str)
def test_drawn_words_have_the_frequencies_of_the_decoded_tokens(settings, small):
    n = 10_000
    decode = partial(reference.decoded, **settings)
    results = sample_words(small, CONTEXTS, n_samples=n, max_tokens=60, decoding=Decoding(**settings), seed=11)
    for context, drawn in zip(CONTEXTS, results, strict=True):
        paths = reference.first_words(
            small, BYTES, context, start=b" ", boundary=reference.ASCII["punctuation"], longest=LONGEST, decode=decode
        )
        exact = reference.word_probabilities(paths)
        assert sum(exact.values()) == pytest.approx(1, abs=1e-9)
        counts = {None: drawn.n_no_start, reference.TOO_LONG: drawn.n_too_long}
        counts[reference.TOO_LONG] += sum(len(word) > LONGEST for word in drawn.words)
        counts |= {word.encode(): drawn.words.count(word) for word in WORDS}
        assert sum(counts.values()) == n
        # 27 cells of up to 16 frequencies, 4.5 standard errors each: a right program fails 3 seeds in 1,000
        for word, count in counts.items():
            p = exact.get(word, 0.0)
            assert abs(count / n - p) <= 4.5 * np.sqrt(p * (1 - p) / n) + 1e-12 * (p > 0), (settings, word)
