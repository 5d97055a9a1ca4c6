"""The bytes of every token, and where words begin and end in them."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError, unknown_choice

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from shannon_game.inference.lm.language_model import LanguageModel

# apostrophes, hyphens, and the points of Catalan and Hebrew stand inside words: don't, well-known
_INSIDE = "'\u2019-\u2010\u2011\u00b7\u2027\u05f3\u05f4"
BOUNDARIES = ("whitespace", "punctuation")
"""What ends a word: Unicode's white space alone, or punctuation and symbols other than apostrophe and hyphen too."""

# of a model that nobody uses any more nothing is kept
_VOCABULARIES: WeakKeyDictionary[LanguageModel, dict[str, Vocabulary]] = WeakKeyDictionary()
_WRITE_BYTES: WeakKeyDictionary[LanguageModel, bool] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The tokens of a model as bytes, and those that end a word, begin one, or are one space."""

    # empty for special tokens and for logits beyond the vocabulary, which end every text
    token_bytes: list[bytes]
    by_bytes: Mapping[bytes, list[int]]
    ends: NDArray[np.int64]
    begins: NDArray[np.int64]
    spaced_begins: NDArray[np.int64]
    spaces: NDArray[np.int64]
    # tokens that hold the end of a word (the key, with a space before it) and what follows it
    crossing: Mapping[bytes, NDArray[np.int64]]
    boundary: str

    @cached_property
    def word_ends(self) -> NDArray[np.int64]:
        """Tokens before which a word between whitespace ends: those that begin with whitespace, and the text's end."""
        holds = [not content or boundary_at(content, "whitespace") == 0 for content in self.token_bytes]
        return np.flatnonzero(holds).astype(np.int64)


def boundary_at(content: bytes, boundary: str) -> int | None:
    """Byte at which the first character begins that ends a word; a part of a character ends none."""
    # ASCII letters and digits, as most tokens have: quick
    if content.isalnum():
        return None
    text = content.decode(errors="surrogateescape")
    found = next((place for place, character in enumerate(text) if _ends_word(character, boundary)), None)
    return None if found is None else len(text[:found].encode(errors="surrogateescape"))


@cache
def _ends_word(character: str, boundary: str) -> bool:
    is_mark = boundary != "whitespace" and unicodedata.category(character)[0] in "PS" and character not in _INSIDE
    return is_mark or character.isspace()


def writes_bytes(model: LanguageModel) -> bool:
    """Whether the bytes of tokens are known, and so where words end: not of WordPiece, nor where pieces end in </w>."""
    if model not in _WRITE_BYTES:
        try:
            _WRITE_BYTES[model] = bool(vocabulary(model).token_bytes)
        except InputError:
            _WRITE_BYTES[model] = False
    return _WRITE_BYTES[model]


def vocabulary(model: LanguageModel, *, boundary: str = "punctuation") -> Vocabulary:
    """Return the model's tokens as bytes, sorted by what they do to words."""
    if boundary not in BOUNDARIES:
        raise unknown_choice("boundary", boundary, BOUNDARIES)
    known = _VOCABULARIES.setdefault(model, {})
    if boundary not in known:
        known[boundary] = _sort_tokens(model, boundary)
    return known[boundary]


def _sort_tokens(model: LanguageModel, boundary: str) -> Vocabulary:
    token_bytes = _token_bytes(model)
    by_bytes: dict[bytes, list[int]] = {}
    crossing: dict[bytes, list[int]] = {}
    ends: list[int] = []
    begins: list[int] = []
    spaced_begins: list[int] = []
    for token, content in enumerate(token_bytes):
        if not content:
            ends.append(token)
            continue
        by_bytes.setdefault(content, []).append(token)
        space = content[:1] == b" "
        end = boundary_at(content[1:] if space else content, boundary)
        # a token that begins with a boundary ends the word before it, and holds none that counts
        if end:
            crossing.setdefault(content[: end + space], []).append(token)
        (ends if space or end == 0 else begins).append(token)
        if space and len(content) > 1 and end != 0:
            spaced_begins.append(token)
    return Vocabulary(
        token_bytes=token_bytes,
        by_bytes=by_bytes,
        ends=np.array(ends, dtype=np.int64),
        begins=np.array(begins, dtype=np.int64),
        spaced_begins=np.array(spaced_begins, dtype=np.int64),
        spaces=np.array(by_bytes.get(b" ", []), dtype=np.int64),
        crossing={head: np.array(tokens, dtype=np.int64) for head, tokens in crossing.items()},
        boundary=boundary,
    )


def _token_bytes(model: LanguageModel) -> list[bytes]:
    tokenizer, vocab_size, special = model.tokenizer, model.vocab_size, model.special_ids
    pieces: list[str | None] = [None] * vocab_size
    for piece, token in tokenizer.get_vocab().items():
        # there may be more tokens than logits, and of any number
        if token < vocab_size:
            pieces[token] = piece
    # added tokens are written as they are, whatever the rest of the vocabulary is written in
    plain = {token for token, added in tokenizer.added_tokens_decoder.items() if not added.special}
    convert = _converter(tokenizer)
    contents = []
    for token, written in enumerate(pieces):
        if written is None or token in special:
            contents.append(b"")
            continue
        try:
            contents.append(written.encode() if token in plain else convert(written))
        except (KeyError, ValueError):
            raise InputError(
                f"has token {token}, written {written[:40]!r}, which stands for no bytes as the others are written",
                field="tokenizer",
            ) from None
    return contents


def _converter(tokenizer: PreTrainedTokenizerBase) -> Any:
    """Return the function from a piece of the vocabulary to its bytes."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            f"{type(tokenizer).__name__} is no fast tokenizer, whose vocabulary can be read; convert it first",
            field="tokenizer",
        )
    described = json.loads(backend.to_str())
    decoders = _types(described.get("decoder"), "decoders") or _types(described.get("pre_tokenizer"), "pretokenizers")
    if "ByteLevel" in decoders:
        from transformers.convert_slow_tokenizer import bytes_to_unicode  # noqa: PLC0415

        table = {character: byte for byte, character in bytes_to_unicode().items()}
        return lambda piece: bytes(table[character] for character in piece)
    if {"Metaspace", "Replace"} & decoders:
        return _sentencepiece_bytes
    if "Fuse" in decoders:
        return lambda piece: piece.encode()
    raise InputError(
        f"pieces of a tokenizer with decoder {', '.join(sorted(decoders)) or None} have no bytes of their own; "
        "those of byte-level and SentencePiece tokenizers have",
        field="tokenizer",
    )


def _types(step: Any, parts: str) -> set[str]:
    if step is None:
        return set()
    return {step["type"]}.union(*(_types(part, parts) for part in step.get(parts, [])))


def _sentencepiece_bytes(piece: str) -> bytes:
    if len(piece) == 6 and piece.startswith("<0x") and piece.endswith(">"):
        return bytes([int(piece[3:5], 16)])
    return piece.replace("\N{LOWER ONE EIGHTH BLOCK}", " ").encode()
