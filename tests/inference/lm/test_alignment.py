"""Places in a text: token by token decoded, and shared by models of different tokenizers."""

from __future__ import annotations

import numpy as np
import pytest

from shannon_game.inference.lm.alignment import token_places
from shannon_game.inference.lm.language_model import encode
from tests.inference.lm import tiny_models

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("text", [*tiny_models.TEXTS, " two  spaces", "x", "日本語"])
def test_places_are_those_of_decoded_beginnings(family, text, model_of):
    model = model_of(family)
    (tokens,) = encode(model, [text])
    places = token_places(model, text, tokens)
    assert len(places) == len(tokens) + 1
    assert (places[0], places[-1]) == (0, len(text.encode()))
    assert (np.diff(places) >= 0).all()
    for number, place in enumerate(places.tolist()):
        said = model.tokenizer.decode(tokens[:number], clean_up_tokenization_spaces=False)
        if "\ufffd" not in said:
            # the decoder of a SentencePiece tokenizer strips the space that it has put before the text
            assert text.encode()[:place].decode() == said


def test_a_tokenizer_that_changes_a_text_has_no_places(model_of):
    model = model_of("gpt2")
    (tokens,) = encode(model, ["The old clock"])
    assert token_places(model, "The old clock.", tokens) is None
    assert token_places(model, "the old clock", tokens) is None
