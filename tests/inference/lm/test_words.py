"""Word probabilities against every string that a small vocabulary can write."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.inference.lm.vocabulary import BOUNDARIES
from shannon_game.inference.lm.words import word_log_probs, word_tokens
from tests.inference.lm import tiny_models
from tests.oracles import language_model as reference

pytestmark = pytest.mark.torch

# space, letters, pieces of words with and without the space before them, and pieces that run over a word's end
PIECES = ["Ġ", "a", "b", "Ġa", "Ġb", "ab", "Ġab", "a.", "Ġb,", "b.a", "bĠa", ".", ",", "ĠĠ", "Ċ", "Ġa.Ġb"]
MERGES = [("Ġ", "a"), ("Ġ", "b"), ("a", "b"), ("a", ".")]
BYTES = [b"", *(piece.replace("Ġ", " ").replace("Ċ", "\n").encode() for piece in PIECES)]
LONGEST = 3
WORDS = [
    "".join(letters)
    for n in range(1, LONGEST + 1)
    for letters in np.array(np.meshgrid(*[["a", "b"]] * n)).reshape(n, -1).T.tolist()
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tiny_models.save(tmp_path_factory.mktemp("small"), "llama", tiny_models.by_hand(PIECES, MERGES), seed=5)
    return tiny_models.load(folder, bos=tiny_models.END)


CONTEXTS = [[2, 3], [], [9, 1, 12]]


@pytest.fixture(scope="module")
def enumerated(small):
    """What the first word is, by enumeration: for each context, start and boundary."""
    return {
        (start, boundary): [
            reference.first_words(
                small, BYTES, context, start=start.encode(), boundary=reference.ASCII[boundary], longest=LONGEST
            )
            for context in CONTEXTS
        ]
        for start in (" ", "")
        for boundary in BOUNDARIES
    }


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("start", [" ", ""])
def test_with_every_tokenisation_words_match_enumeration_and_sum_to_one(start, boundary, small, enumerated):
    words = [word for word in WORDS if start or word]
    if boundary == "whitespace":
        words = [*words, "a.", "b,", "b.b", "."]
    found = word_log_probs(
        small, CONTEXTS, [words] * len(CONTEXTS), start=start, boundary=boundary, other_tokenisations_nats=np.inf
    )
    for index, paths in enumerate(enumerated[start, boundary]):
        exact = reference.word_probabilities(paths)
        begins = 1 - exact[None]
        assert found["start_logprob"].values[index] == pytest.approx(np.log(begins), abs=1e-5)
        mine = (found["context_index"] == index).values
        texts = found["text"].values[mine].tolist()
        assert texts == words
        logprob = found["logprob"].values[mine]
        np.testing.assert_allclose(logprob, [np.log(exact[text.encode()] / begins) for text in texts], atol=1e-4)
        if boundary == "punctuation":
            # all words of up to three letters, and those that are longer
            assert set(exact) == {None, reference.TOO_LONG, *(word.encode() for word in words)}
            assert np.exp(logprob).sum() + exact[reference.TOO_LONG] / begins == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("start", [" ", ""])
def test_the_tokenizers_own_way_counts_its_tokens_and_those_that_run_over_the_end(start, boundary, small, enumerated):
    found = word_log_probs(small, CONTEXTS, [WORDS] * len(CONTEXTS), start=start, boundary=boundary)
    assert set(found["n_tokenisations"].values) == {1}
    crossed = 0
    for index, paths in enumerate(enumerated[start, boundary]):
        begins = 1 - reference.word_probabilities(paths)[None]
        for word, logprob in zip(WORDS, found["logprob"].values[(found["context_index"] == index).values], strict=True):
            way = word_tokens(small, start + word)
            own = [
                path
                for path in paths
                if path.word == word.encode() and list(path.tokens[:-1]) == way[: len(path.tokens) - 1]
            ]
            crossed += sum(len(path.tokens) <= len(way) for path in own)
            assert logprob == pytest.approx(np.log(sum(path.probability for path in own) / begins), abs=1e-4)
    assert crossed > 10
