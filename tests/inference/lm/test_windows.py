"""Windows of a text against one forward pass a token."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.inference.lm import forward
from shannon_game.inference.lm.scoring import score_documents, score_windows
from tests.oracles import language_model as reference

FAMILIES = ("llama", "gemma2", "bloom")


def windows_of(vocab_size: int, *, n: int = 3, size: int = 14) -> list[list[int]]:
    return np.random.default_rng(3).integers(0, vocab_size, size=(n, size)).tolist()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sliding", [True, False])
@pytest.mark.parametrize("bos", ["tokenizer", "none"])
def test_every_token_as_if_it_were_alone(model_of, family, sliding, bos):
    model = model_of(family, bos=bos)
    windows = windows_of(len(model.tokenizer))
    found = score_windows(model, windows, context_length=9, sliding=sliding, top_k=4, temperatures=[0.5, 1.0, 3.0])
    assert dict(found.sizes) == {"window": 3, "position": 5, "rank_at": 4, "temperature": 3}
    for w, window in enumerate(windows):
        for i in range(5):
            context = window[i if sliding else 0 : 9 + i]
            truth = reference.next_token(model, [context])[0]
            target = window[9 + i]
            cell = found.isel(window=w, position=i)
            assert float(cell["logprob"]) == pytest.approx(truth[target], abs=1e-4)
            assert int(cell["rank"]) == 1 + int((truth > truth[target]).sum())
            assert float(cell["entropy_nats"]) == pytest.approx(-(np.exp(truth) * truth).sum(), abs=1e-4)
            best = np.argsort(-truth)[:4]
            np.testing.assert_allclose(cell["top_logprob"], truth[best], atol=1e-4)
            np.testing.assert_allclose(truth[cell["top_token"].to_numpy()], truth[best], atol=1e-4)
            for column, temperature in enumerate((0.5, 1.0, 3.0)):
                scaled = truth / temperature
                expected = scaled[target] - np.logaddexp.reduce(scaled)
                assert float(cell["tempered_logprob"][column]) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "gemma2", "bloom"])
def test_a_long_text_passes_block_by_block_with_the_same_numbers(model_of, family, monkeypatch):
    """The cache of transformers holds what came before; layers that look back over a few tokens drop some of it."""
    model = model_of(family, tokens_per_batch=16, attention="eager")
    (text,) = windows_of(len(model.tokenizer), n=1, size=90)
    how = {"context_length": 80, "temperatures": [2.0], "sliding": False}
    whole = [score_documents(model, [text]), score_windows(model, [text], **how)]
    passed = []
    states = forward._cached_states
    monkeypatch.setattr(forward, "_cached_states", lambda *given: passed.append(given[-1]) or states(*given))
    monkeypatch.setattr(forward, "LARGEST_TREE", 16)
    cut = [score_documents(model, [text]), score_windows(model, [text], **how)]
    assert passed.count(16) == 2
    for one, other in zip(whole, cut, strict=True):
        for name in ("logprob", "entropy_nats", "rank"):
            # rounding of passes of other shapes in float32
            np.testing.assert_allclose(one[name], other[name], atol=1e-5, err_msg=name)
