"""Documents' scores against the reference: windows, strides, with and without BOS."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.estimators.errors import InputError
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


FAMILIES = (
    *(("llama", "tokenizer"), ("llama", "none"), ("gpt2", "family"), ("xglm", "family"), ("gptj", "family")),
    *(("qwen2", "family"), ("gpt_neo", "family"), ("gpt_neox", "family"), ("opt", tiny_models.END)),
    ("bloom", tiny_models.END),
)


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
    model = model_of("gpt2", bos="family")
    texts = documents(model.vocab_size, lengths=(250,))
    found = score_documents(model, texts)
    check(found, list(reference.score_documents(model, texts, window=96, stride=48)))
    assert found["position"].values.tolist() == list(range(250))


def test_scores_do_not_depend_on_batches(model_of):
    texts = documents(400)
    small, large = (score_documents(model_of("gpt2", tokens_per_batch=n), texts) for n in (1, 4096))
    np.testing.assert_allclose(small["logprob"], large["logprob"], atol=1e-4, rtol=0)


def test_no_document_gives_no_token(model_of):
    assert score_documents(model_of("gpt2"), []).sizes["token"] == 0
    assert score_documents(model_of("gpt2"), [[]]).sizes["token"] == 0


@pytest.mark.parametrize(
    ("texts", "settings", "message"),
    [
        ([[1, 2]], {"window": 97}, "window.*takes 2 to 96"),
        ([[1, 2]], {"window": 1}, "window.*is 1"),
        ([[1, 2]], {"window": 10, "stride": 10}, "stride.*1 to 9"),
        ([[1, 2]], {"stride": 0}, "stride.*is 0"),
        ([[1], [5, 400]], {}, "document 1 has token 400; gpt2 has 0 to 399"),
        ([[1], [5, -2]], {}, "document 1 has token -2"),
    ],
)
def test_unusable_arguments_are_named(texts, settings, message, model_of):
    with pytest.raises(InputError, match=message):
        score_documents(model_of("gpt2"), texts, **settings)


def test_progress_counts_tokens(model_of):
    model = model_of("llama", tokens_per_batch=50)
    done = []
    found = score_documents(model, documents(model.vocab_size), progress=done.append)
    assert sum(done) == found.sizes["token"]
    assert len(done) > 1


def test_prefix_of_a_document_scores_as_the_document(model_of):
    text = documents(400, lengths=(60,))[0]
    whole, half = (score_documents(model_of("bloom"), [text[:n]]) for n in (60, 30))
    n = half.sizes["token"]
    np.testing.assert_allclose(half["logprob"], whole["logprob"].values[:n], atol=1e-4, rtol=0)


def test_documents_of_a_model_without_a_longest_sequence_are_one_window(model_of):
    model = model_of("mamba")
    found = score_documents(model, [tiny_models.contexts(1, 400, longest=90)[0]])
    assert found.attrs["window"] <= 91
