"""Whole words drawn from a model of tokens, as a cloze study draws them.

Draws that agree so far share a pass; transformers' ``generate`` would run each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.checks import check_numbers
from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.decoding import Decoding, decoded_probabilities
from shannon_game.inference.lm.forward import reduce_last, with_bos
from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.next_token import context_rng
from shannon_game.inference.lm.vocabulary import Vocabulary, boundary_at, vocabulary
from shannon_game.inference.store.store import ragged

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class SampledWords:
    """Words drawn after one context, in order, and which of the draws gave each.

    Parameters
    ----------
    n_no_start : int
        Draws that did not begin a word: the last word went on, or punctuation or the end of the text followed.
    n_too_long : int
        Draws without a boundary after ``max_tokens`` tokens.
    """

    words: tuple[str, ...]
    draws: tuple[int, ...]
    n_samples: int
    n_no_start: int
    n_too_long: int


def sample_words(
    model: LanguageModel,
    contexts: Sequence[Sequence[int]],
    *,
    n_samples: int,
    max_tokens: int = 10,
    boundary: str = "punctuation",
    start: str = " ",
    decoding: Decoding | None = None,
    seed: int = 0,
) -> list[SampledWords]:
    """Draw whole words: tokens until past a boundary, joined, and the first word of them.

    Draws are independent; decoders are given the same random numbers, so that their words differ by the decoders alone.

    Parameters
    ----------
    contexts : sequence of sequence of int
        Tokens of each context, without BOS.
    n_samples : int
        Draws for each context; those that fail are counted, not made again.
    max_tokens : int
        Tokens of a draw, the one that holds the boundary included.
    boundary, start : str
        As in :func:`shannon_game.inference.lm.words.word_log_probs`.
    decoding : Decoding, optional
        By default the whole distribution.
    seed : int
        A context's random numbers come from it and from its own tokens.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> model = lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> drawn = lm.sample_words(model, lm.encode(model, ["The old clock", "Rain fell"]), n_samples=5, seed=1)
    >>> [found.n_no_start + found.n_too_long + len(found.words) for found in drawn]
    [5, 5]
    """
    check_numbers({"n_samples": n_samples, "max_tokens": max_tokens}, at_least=1)
    check_numbers({"seed": seed}, at_least=0)
    if start not in {" ", ""}:
        raise InputError(f"is {start!r}, should be a space or nothing", field="start")
    vocab = vocabulary(model, boundary=boundary)
    return [
        _sample_context(
            model,
            vocab,
            context,
            n_samples=n_samples,
            max_tokens=max_tokens,
            start=start.encode(),
            decoding=decoding or Decoding(),
            seed=seed,
        )
        for context in with_bos(model, contexts)
    ]


def _sample_context(
    model: LanguageModel,
    vocab: Vocabulary,
    context: list[int],
    *,
    n_samples: int,
    max_tokens: int,
    start: bytes,
    decoding: Decoding,
    seed: int,
) -> SampledWords:
    uniform = context_rng(seed, context).random((max_tokens, n_samples))
    words: list[str | None] = [None] * n_samples
    n_no_start = 0
    # draws that agree so far, by their tokens
    open_draws: dict[tuple[int, ...], NDArray[np.intp]] = {(): np.arange(n_samples)}
    for step in range(max_tokens):
        if not open_draws:
            break
        prefixes = list(open_draws)
        uniforms = [uniform[step, open_draws[prefix]] for prefix in prefixes]
        drawn = _draw_next(model, context, prefixes, uniforms, decoding)
        grown: dict[tuple[int, ...], NDArray[np.intp]] = {}
        for prefix, tokens in zip(prefixes, drawn, strict=True):
            draws = open_draws[prefix]
            written = b"".join(vocab.token_bytes[token] for token in prefix)
            for token in np.unique(tokens):
                who = draws[tokens == token]
                state = _first_word(written, vocab.token_bytes[token], start, vocab.boundary)
                if state is None:
                    grown[*prefix, int(token)] = who
                elif state:
                    word = state.decode(errors="replace")
                    for draw in who:
                        words[draw] = word
                else:
                    n_no_start += len(who)
        open_draws = grown
    found = [(draw, word) for draw, word in enumerate(words) if word is not None]
    n_too_long = sum(len(draws) for draws in open_draws.values())
    return SampledWords(
        words=tuple(word for _, word in found),
        draws=tuple(draw for draw, _ in found),
        n_samples=n_samples,
        n_no_start=n_no_start,
        n_too_long=n_too_long,
    )


def _first_word(written: bytes, added: bytes, start: bytes, boundary: str) -> bytes | None:
    """Return the first word of a text if it is complete, nothing if there is none, None if that is not known yet."""
    text = written + added
    if not text.startswith(start[: len(text)]) or (not text and not added):
        return b""
    word = text[len(start) :]
    end = boundary_at(word, boundary)
    if end is not None:
        return word[:end]
    # a token without bytes ends the text
    return None if added else word


def _draw_next(
    model: LanguageModel,
    context: list[int],
    prefixes: Sequence[tuple[int, ...]],
    uniforms: Sequence[NDArray[np.float64]],
    decoding: Decoding,
) -> list[NDArray[np.int64]]:
    import torch  # noqa: PLC0415

    sequences = [(*context, *prefix) for prefix in prefixes]
    drawn = [np.zeros(0, dtype=np.int64)] * len(prefixes)

    def reduce(at: NDArray[np.intp], log_probs: torch.Tensor) -> None:
        exact = log_probs.cpu() if log_probs.device.type == "mps" else log_probs
        cumulative = decoded_probabilities(exact, decoding).cumsum_(dim=-1)
        sizes = [len(uniforms[index]) for index in at]
        padded = np.zeros((len(at), max(sizes)))
        for row, index in enumerate(at):
            padded[row, : sizes[row]] = uniforms[index]
        values = torch.from_numpy(padded).to(cumulative.device) * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, values, right=True)
        # the last token with a probability, where rounding leads past it
        found = tokens.minimum(torch.searchsorted(cumulative, cumulative[:, -1:].contiguous())).cpu().numpy()
        for row, index in enumerate(at):
            drawn[index] = found[row, : sizes[row]]

    reduce_last(model, sequences, reduce)
    return drawn


def first_word(text: str, boundary: str = "punctuation") -> str:
    """First word of what follows a context; "" where it begins none."""
    return (_first_word(text.encode(), b"", b" ", boundary) or b"").decode(errors="replace")


def tallied(draws: Sequence[Sequence[str]]) -> dict[str, NDArray[Any]]:
    """Words that differ, of the draws after each context, and how often each is in both halves of them; first is ""."""
    words, halves = [], []
    for of_draw in draws:
        different = {word: place for place, word in enumerate(dict.fromkeys(["", *of_draw]))}
        code, half = [different[word] for word in of_draw], len(of_draw) // 2
        words.append(list(different))
        halves.append([np.bincount(part, minlength=len(different)) for part in (code[:half], code[half:])])
    first, second = zip(*halves, strict=True)
    return {"word": ragged(words), "n_first": ragged(first), "n_second": ragged(second)}
