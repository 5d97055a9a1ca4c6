"""The model's best guess against a text that another tokenizer cut: by hand, one forward pass a token."""

from __future__ import annotations

import pytest

from shannon_game.inference.lm.continuations import play_top1
from shannon_game.inference.lm.language_model import encode
from shannon_game.inference.lm.vocabulary import vocabulary
from shannon_game.inference.lm.words import word_tokens
from tests.inference.lm.tiny_models import TEXTS
from tests.oracles import language_model as reference

pytestmark = pytest.mark.torch


def greedy(model, context: list[int], n: int) -> bytes:
    """What the model writes in its most probable tokens, at least ``n`` bytes or until it ends the text."""
    vocab, tokens, written = vocabulary(model), list(context), b""
    while len(written) < n:
        token = int(reference.next_token(model, [tokens])[0].argmax())
        if not vocab.token_bytes[token]:
            break
        written += vocab.token_bytes[token]
        tokens.append(token)
    return written


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_hits_and_surprisals_by_hand(model_of, family):
    model = model_of(family)
    contexts, targets = [], []
    for text in TEXTS[:3]:
        for size in (9, 14, 21):
            context = encode(model, [text[:size]])[0]
            contexts += [context] * 3
            written = greedy(model, context, 6)
            whole = written.decode(errors="ignore")
            # what the text says; what the model says; the beginning of what it says
            targets += [text[size : size + 4], whole or "x", whole[:1] or "x"]
    found = play_top1(model, contexts, targets)
    for i, (context, target) in enumerate(zip(contexts, targets, strict=True)):
        tokens = word_tokens(model, target)
        by_hand = -sum(
            reference.next_token(model, [[*context, *tokens[:j]]])[0][token] for j, token in enumerate(tokens)
        )
        cell = found.isel(context=i)
        assert int(cell["n_tokens"]) == len(tokens)
        assert float(cell["surprisal_nats"]) == pytest.approx(by_hand, abs=1e-3)
        # the guess stops at the first token with which it is as long as the target, or not its beginning
        expected = b""
        sequence = list(context)
        while len(expected) < len(target.encode()) and target.encode().startswith(expected):
            token = int(reference.next_token(model, [sequence])[0].argmax())
            added = vocabulary(model).token_bytes[token]
            if not added:
                break
            expected += added
            sequence.append(token)
        assert bool(cell["hit"]) == (expected == target.encode())
        assert bool(cell["begins_alike"]) == expected.startswith(target.encode())
    assert found["hit"].any()
    assert not found["hit"].all()
