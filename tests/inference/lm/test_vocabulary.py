"""The bytes of tokens."""

from __future__ import annotations

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.language_model import encode
from shannon_game.inference.lm.vocabulary import boundary_at, vocabulary
from tests.inference.lm import tiny_models

pytestmark = pytest.mark.torch

STRANGE = [
    *tiny_models.TEXTS,
    "",
    "  two  spaces,\n\nlines\tand tabs ",
    "ñandú Ω 語 🙂\u200d e\u0301 \x00\x7f",
    "well-known 'quotes' ... 1,000.5%",
]


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize(("family", "before"), [("gpt2", ""), ("gpt_neox", ""), ("llama", " ")])
def test_the_bytes_of_a_texts_tokens_are_the_texts(family, before, text, model_of):
    model = model_of(family)
    vocab = vocabulary(model)
    written = b"".join(vocab.token_bytes[token] for token in encode(model, [text])[0])
    assert written == ((before if text else "") + text).encode()


@pytest.mark.parametrize(
    ("text", "punctuation", "whitespace"),
    [
        *(("don\u2019t", None, None), ("well\u2011known", None, None), ("col·lecció", None, None), ("ab", None, None)),
        *(("a”", 1, None), ("é—b", 2, None), ("日。", 3, None), ("5€", 1, None), ("a…b", 1, None), ("“a", 0, None)),
        *(("a\u00a0b", 1, 1), ("a\u3000b", 1, 1), (" a", 0, 0), ("é\u2009.", 2, 2)),
    ],
)
def test_where_words_end_by_hand(text, punctuation, whitespace):
    assert boundary_at(text.encode(), "punctuation") == punctuation
    assert boundary_at(text.encode(), "whitespace") == whitespace


def test_a_part_of_a_character_ends_no_word():
    dash = "—".encode()
    assert boundary_at(dash[:2], "punctuation") is None
    assert boundary_at(dash[1:] + b",", "punctuation") == 2


def test_added_tokens_are_written_as_they_are(tmp_path):
    tokenizer = tiny_models.byte_level(300)
    tokenizer.add_tokens(["  ", "naïve"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|chat|>"]})
    model = tiny_models.load(tiny_models.save(tmp_path, "gpt2", tokenizer))
    vocab = vocabulary(model)
    ids = tokenizer.get_vocab()
    assert vocab.token_bytes[ids["naïve"]] == "naïve".encode()
    assert vocab.token_bytes[ids["  "]] == b"  "
    assert vocab.token_bytes[ids["<|chat|>"]] == b""
    assert ids["<|chat|>"] in vocab.ends


def test_unreadable_tokenizers_are_refused(tmp_path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"[UNK]": 0, "the": 1, "##s": 2}
    word_piece = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    word_piece.pre_tokenizer = pre_tokenizers.Whitespace()
    word_piece.decoder = decoders.WordPiece()
    bare = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    bare.pre_tokenizer = pre_tokenizers.Whitespace()
    for name, tokenizer in (("WordPiece", word_piece), ("Whitespace", bare)):
        made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
        model = tiny_models.load(tiny_models.save(tmp_path / name, "gpt2", made), bos="none")
        with pytest.raises(InputError, match=f"{name}.*have no bytes of their own"):
            vocabulary(model)
