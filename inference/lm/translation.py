"""Asking one model about the tokens of another: by id where they share a tokenizer, by string where that is exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.inference.lm.language_model import LanguageModel, encode
from shannon_game.inference.lm.vocabulary import vocabulary

_NO_TOKEN = 0


@dataclass(frozen=True, eq=False)
class Translation:
    """Contexts and tokens of one model in the tokens of another."""

    contexts: list[list[int]]
    tokens: NDArray[np.int64]
    problems: list[str]

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Which contexts are exact, shape (context,)."""
        return np.array([not problem for problem in self.problems], dtype=bool)


def shares_tokenizer(model: LanguageModel, other: LanguageModel) -> bool:
    """Whether a token id means the same to both models."""
    return model.tokenizer_sha256 == other.tokenizer_sha256


def translate(
    model: LanguageModel,
    source: LanguageModel,
    contexts: Sequence[Sequence[int]],
    tokens: Sequence[Sequence[int]] | NDArray[np.int64],
) -> Translation:
    """Find the same contexts and next tokens in a model with another tokenizer, where that is exact."""
    # exact: the text comes back byte by byte, each token is one token of both, and stays one at the end of the text
    theirs, ours = vocabulary(source).token_bytes, vocabulary(model)
    wanted = np.asarray(tokens, dtype=np.int64)
    texts = [_text([theirs[token] for token in context]) for context in contexts]
    encoded = encode(model, [text or "" for text in texts])
    problems = [""] * len(contexts)
    translated = np.full(wanted.shape, _NO_TOKEN, dtype=np.int64)
    # every context with its distinct tokens is tokenised once more, all in one call
    asked: list[tuple[int, int, int]] = []
    longer: list[str] = []
    for index, (text, context) in enumerate(zip(texts, encoded, strict=True)):
        if text is None:
            problems[index] = "it ends within a character, or holds a special token"
        elif b"".join(ours.token_bytes[token] for token in context) != text.encode():
            problems[index] = f"{model.name}'s tokenizer changes its text"
        else:
            for token in dict.fromkeys(wanted[index].tolist()):
                known = ours.by_bytes.get(theirs[token], []) if theirs[token] else []
                # an empty text is a context too: nothing but the BOS token
                whole = _text([*([text.encode()] if text else []), theirs[token]])
                if whole is None:
                    problems[index] = f"token {token} is special, or part of a character"
                elif len(known) != 1:
                    problems[index] = f"{theirs[token].decode(errors='replace')!r} is no token of {model.name}"
                if problems[index] or whole is None:
                    break
                asked.append((index, token, known[0]))
                longer.append(whole)
    for (index, token, own), pieces in zip(asked, encode(model, longer), strict=True):
        if problems[index]:
            continue
        if pieces != [*encoded[index], own]:
            problems[index] = f"{model.name} cuts its text with {theirs[token].decode(errors='replace')!r} elsewhere"
        translated[index, wanted[index] == token] = own
    return Translation(encoded, translated, problems)


def _text(pieces: Sequence[bytes]) -> str | None:
    """Join pieces to a text; None where one is a special token or the end is within a character."""
    if not all(pieces):
        return None
    try:
        return b"".join(pieces).decode("utf-8")
    except UnicodeDecodeError:
        return None
