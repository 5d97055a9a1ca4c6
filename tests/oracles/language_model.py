"""A language model asked one context at a time: all logits of one sequence, normalised in double precision."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from shannon_game.inference.lm.language_model import LanguageModel


def log_probs(model: LanguageModel, tokens: Sequence[int]) -> NDArray[np.float64]:
    """After every token of one sequence, BOS included: shape (token, vocabulary)."""
    with torch.no_grad():
        logits = model.module(input_ids=torch.tensor([list(tokens)], device=model.device)).logits[0]
    return torch.log_softmax(logits.double().cpu() / model.settings.temperature, dim=-1).numpy()


def started(model: LanguageModel, context: Sequence[int]) -> list[int]:
    return [*([] if model.bos_id is None else [model.bos_id]), *context]


def next_token(model: LanguageModel, contexts: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """Shape (context, vocabulary)."""
    return np.stack([log_probs(model, started(model, context))[-1] for context in contexts])


class Score(NamedTuple):
    document: int
    position: int
    n_context: int
    logprob: float
    rank: int
    entropy: float
    best: int


def score_documents(
    model: LanguageModel, documents: Sequence[Sequence[int]], window: int, stride: int
) -> Iterator[Score]:
    """Token by token: the first window that holds it and at least one token before it."""
    n_bos = int(model.bos_id is not None)
    for number, document in enumerate(documents):
        tokens = started(model, document)
        for place in range(1, len(tokens)):
            begin = 0
            while begin + window <= place:
                begin += stride
            row = log_probs(model, tokens[begin:place])[-1]
            yield Score(
                document=number,
                position=place - n_bos,
                n_context=place - begin,
                logprob=float(row[tokens[place]]),
                rank=1 + int((row > row[tokens[place]]).sum()),
                entropy=float(-(np.exp(row) * row).sum()),
                best=int(row.argmax()),
            )


def decoded(
    row: NDArray[np.float64],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    greedy: bool = False,
) -> NDArray[np.float64]:
    """Probabilities of tokens under a decoder: token by token, the most probable first."""
    weights = np.exp(row / temperature)
    order = sorted(range(len(row)), key=lambda token: -row[token])
    kept = order[: 1 if greedy else top_k]
    if top_p is not None:
        wanted = top_p * sum(weights[token] for token in kept)
        nucleus: list[int] = []
        while sum(weights[token] for token in nucleus) < wanted:
            nucleus.append(kept[len(nucleus)])
        kept = nucleus
    found = np.zeros(len(row))
    total = sum(weights[token] for token in kept)
    for token in kept:
        found[token] = weights[token] / total
    return found


class Path(NamedTuple):
    """Tokens up to the one that showed what the first word is, and their probability."""

    tokens: tuple[int, ...]
    probability: float
    word: bytes | None


TOO_LONG = b"(too long)"

_SPACES = b" \t\n\r\x0b\x0c"
ASCII = {"whitespace": _SPACES, "punctuation": _SPACES + b'!"#$%&()*+,./:;<=>?@[\\]^_`{|}~'}
"""Bytes that end a word of ASCII."""


def first_words(
    model: LanguageModel,
    token_bytes: Sequence[bytes],
    context: Sequence[int],
    *,
    start: bytes,
    boundary: bytes,
    longest: int,
    decode: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.exp,
) -> list[Path]:
    """Every way in which a text can go on until its first word is known (None: no word) or exceeds ``longest`` bytes.

    The probabilities sum to 1. ``decode`` makes probabilities of a token's log-probabilities.
    """
    found: list[Path] = []
    unfinished: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while unfinished:
        tokens, so_far = unfinished.pop()
        text = b"".join(token_bytes[token] for token in tokens)
        row = decode(next_token(model, [[*context, *tokens]])[0])
        for token, probability in enumerate(row):
            if probability == 0:
                continue
            path = (*tokens, token)
            both = so_far * float(probability)
            after = text + token_bytes[token]
            begun, word = after[: len(start)], after[len(start) :]
            ends = [place for place, byte in enumerate(word) if byte in boundary]
            first: bytes | None
            if begun != start[: len(after)]:
                first = None
            elif ends or not token_bytes[token]:
                first = (word[: ends[0]] if ends else word) or None
            elif len(word) <= longest:
                unfinished.append((path, both))
                continue
            else:
                first = word
            found.append(Path(path, both, TOO_LONG if first is not None and len(first) > longest else first))
    return found


def word_probabilities(paths: Sequence[Path]) -> dict[bytes | None, float]:
    total: dict[bytes | None, float] = defaultdict(float)
    for path in paths:
        total[path.word] += path.probability
    return dict(total)
