"""Documents' scores against the reference: windows, strides, with and without BOS."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.inference.lm.scoring import score_documents
from tests.inference.lm import tiny_models
from tests.oracles import language_model as reference

pytestmark = pytest.mark.torch


def documents(vocab_size, lengths=(1, 0, 30, 7, 2, 95)):
    rng = np.random.default_rng(7)
    return [rng.integers(0, vocab_size, size=length).tolist() for length in lengths]


def check(found, exact):
    assert found["document_index"].values.tolist() == [score.document for score in exact]
    assert found["position"].values.tolist() == [score.position for score in exact]
    assert found["n_context"].values.tolist() == [score.n_context for score in exact]
    np.testing.assert_allclose(found["logprob"], [score.logprob for score in exact], atol=1e-4, rtol=0)
    np.testing.assert_allclose(found["entropy_nats"], [score.entropy for score in exact], atol=1e-4, rtol=0)
    assert found["rank"].values.tolist() == [score.rank for score in exact]
    assert found["best_token"].values.tolist() == [score.best for score in exact]


# with a BOS token and without, logits split off and not, positions in the row and not
FAMILIES = (("llama", "tokenizer"), ("llama", "none"), ("gpt_neo", "auto"), ("bloom", tiny_models.END))


@pytest.mark.parametrize(("family", "bos"), FAMILIES)
def test_every_token_once(family, bos, model_of):
    model = model_of(family, bos=bos)
    texts = documents(model.vocab_size)
    found = score_documents(model, texts)
    check(found, list(reference.score_documents(model, texts, window=96, stride=48)))
    with_bos = bos != "none"
    assert found.sizes["token"] == sum(len(text) - (not with_bos) for text in texts if text)
    first = found["logprob"].values[(found["document_index"] == 2).values & (found["position"] == 0).values]
    assert len(first) == with_bos


@pytest.mark.parametrize(("window", "stride"), [(2, 1), (10, 1), (10, 5), (10, 9), (31, 13), (96, 1)])
@pytest.mark.parametrize("bos", ["tokenizer", "none"])
def test_windows_and_strides(window, stride, bos, model_of):
    model = model_of("llama", bos=bos)
    texts = documents(model.vocab_size, lengths=(9, 10, 40, 1))
    found = score_documents(model, texts, window=window, stride=stride)
    check(found, list(reference.score_documents(model, texts, window, stride)))
    assert (found.attrs["window"], found.attrs["stride"]) == (window, stride)
    late = found["n_context"].values[found["position"].values >= window]
    assert (late >= window - stride).all()


def test_texts_longer_than_the_model_takes(model_of):
    model = model_of("gpt2", bos="auto")
    texts = documents(model.vocab_size, lengths=(250,))
    found = score_documents(model, texts)
    check(found, list(reference.score_documents(model, texts, window=96, stride=48)))
    assert found["position"].values.tolist() == list(range(250))
