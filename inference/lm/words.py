r"""Probabilities of whole words under a model of tokens, exact (Pimentel and Meister 2024).

Word :math:`w` follows when the text goes on with a space, the bytes of :math:`w`, and a boundary or the text's end:

.. math:: q(w \mid c) = \frac{\sum_{s} q(s \mid c) \, q(\text{boundary} \mid c\,s)}{q(\text{a word begins} \mid c)}

The sum is over the ways :math:`s` to write the space and :math:`w` in tokens, of which the tokenizer's own has nearly
all. Without the boundary, " the" would have the probability of " them" too; without the denominator, that of the last
word's going on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.arrays import Dataset
from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.forward import query, with_bos
from shannon_game.inference.lm.language_model import LanguageModel, encode, model_record
from shannon_game.inference.lm.vocabulary import Vocabulary, boundary_at, vocabulary

# contexts whose words are laid out in trees together
_CONTEXTS_AT_ONCE = 64


def word_log_probs(
    model: LanguageModel,
    contexts: Sequence[Sequence[int]],
    words: Sequence[Sequence[str]],
    *,
    boundary: str = "punctuation",
    start: str = " ",
    other_tokenisations_nats: float | None = None,
) -> Dataset:
    r"""Exact log-probability that the next word is *w*, for words of every context.

    ===================  =========  =================================================================================
    variable             dims       meaning
    ===================  =========  =================================================================================
    ``context_index``    word       position of the word's context in ``contexts``
    ``text``             word       the word
    ``logprob``          word       :math:`\ln q(w \mid c)` given that a word begins, nats
    ``n_tokenisations``  word       ways of writing the word that were summed
    ``start_logprob``    context    ln of the probability that a word begins after the context, nats
    ===================  =========  =================================================================================

    Parameters
    ----------
    contexts : sequence of sequence of int
        Tokens of each context, without BOS, not ending in a space.
    words : sequence of sequence of str, by context
        Words without space or other boundary bytes, in any case; not normalised.
    boundary : {"punctuation", "whitespace"}
        What ends a word, see :data:`shannon_game.inference.lm.vocabulary.BOUNDARIES`.
    start : {" ", ""}
        What stands between context and word; "" at the start of a text, or after a context that ends in a space.
    other_tokenisations_nats : float, optional
        None: the tokenizer's own way of writing a word, and tokens that hold its end together with what follows. A
        number: every other way too, as long as its first tokens are at most so many nats less probable than the
        tokenizer's own way is as a whole. 10 leaves out less than 0.00005 of a word with each way dropped.

    Examples
    --------
    >>> from shannon_game.inference import lm
    >>> model = lm.load_language_model(lm.ModelSettings(name="tiny", source="folder", path="tiny"))
    >>> contexts = lm.encode(model, ["The old clock", "Rain fell"])
    >>> lm.word_log_probs(model, contexts, [["on", "in"], ["on"]])["logprob"].shape
    (3,)
    """
    if start not in {" ", ""}:
        raise InputError(f"is {start!r}, should be a space or nothing", field="start")
    if other_tokenisations_nats is not None and not other_tokenisations_nats >= 0:
        raise InputError(f"is {other_tokenisations_nats}, should be at least 0", field="other_tokenisations_nats")
    if len(words) != len(contexts):
        raise InputError(f"has {len(words)} entries for {len(contexts)} contexts", field="words")
    vocab = vocabulary(model, boundary=boundary)
    ways = _own_ways(model, words, vocab, start)
    full = with_bos(model, contexts)
    logprobs: list[NDArray[np.float64]] = [np.zeros(0)] * len(full)
    counts: list[NDArray[np.int64]] = [np.zeros(0, dtype=np.int64)] * len(full)
    starts = np.full(len(full), np.nan)
    # neighbours in this order share most of their passes
    order = sorted(range(len(full)), key=lambda i: full[i])
    for first in range(0, len(order), _CONTEXTS_AT_ONCE):
        part = order[first : first + _CONTEXTS_AT_ONCE]
        tasks = [_Task(full[i], [ways[start + word] for word in words[i]]) for i in part]
        starts[part] = _start_mass(model, vocab, [task.context for task in tasks], start)
        scored = _own_mass(model, vocab, tasks)
        for i, task, (own, own_path) in zip(part, tasks, scored, strict=True):
            logprobs[i], counts[i] = own, np.ones(len(own), dtype=np.int64)
            if other_tokenisations_nats is not None and task.ways:
                texts = [(start + word).encode() for word in words[i]]
                logprobs[i], counts[i] = _all_mass(
                    model, vocab, task, texts=texts, floor=own_path - other_tokenisations_nats, own=own
                )
    sizes = [len(some) for some in words]
    flat = np.concatenate([*logprobs, np.zeros(0)])
    index = np.repeat(np.arange(len(full)), sizes)
    import xarray as xr  # noqa: PLC0415 - half a second that only results should cost

    return xr.Dataset(
        {
            "context_index": ("word", index),
            "text": ("word", np.array([word for some in words for word in some], dtype=object).astype(str)),
            "logprob": ("word", flat - starts[index], {"units": "nats"}),
            "n_tokenisations": ("word", np.concatenate([*counts, np.zeros(0, dtype=np.int64)])),
            "start_logprob": ("context", starts, {"units": "nats"}),
        },
        attrs={"model": json.dumps(model_record(model), sort_keys=True), "boundary": boundary, "start": start},
    )


@dataclass(frozen=True, eq=False)
class _Task:
    """A context (BOS included) and the tokenizer's own way of writing each of its words."""

    context: list[int]
    ways: list[list[int]]


def word_tokens(model: LanguageModel, text: str) -> list[int]:
    """Tokenise the continuation of a context: a space and a word."""
    # a SentencePiece tokenizer puts a space of its own before a text: the word is written after a letter
    vocab = vocabulary(model)
    anchor = encode(model, ["a", "a" + text])
    if anchor[1][: len(anchor[0])] == anchor[0]:
        tokens = anchor[1][len(anchor[0]) :]
        if b"".join(vocab.token_bytes[token] for token in tokens) == text.encode():
            return tokens
    alone = encode(model, [text])[0]
    if b"".join(vocab.token_bytes[token] for token in alone) == text.encode():
        return alone
    return _greedy(vocab, text)


def can_write(model: LanguageModel, texts: Sequence[str]) -> list[bool]:
    """Say which continuations of a context the model has tokens for."""
    vocab = vocabulary(model)
    # every byte alone is a token: nothing to look for
    complete = {byte for byte in range(256) if bytes([byte]) in vocab.by_bytes}

    def writable(text: str) -> bool:
        if complete.issuperset(text.encode()):
            return True
        try:
            word_tokens(model, text)
        except InputError:
            return False
        return True

    return [writable(text) for text in texts]


def _greedy(vocab: Vocabulary, text: str) -> list[int]:
    rest, tokens = text.encode(), []
    while rest:
        size = next((n for n in range(len(rest), 0, -1) if rest[:n] in vocab.by_bytes), None)
        if size is None:
            raise InputError(f"{text!r} cannot be written: no token for {rest!r}", field="words")
        tokens.append(vocab.by_bytes[rest[:size]][0])
        rest = rest[size:]
    return tokens


def _own_ways(
    model: LanguageModel, words: Sequence[Sequence[str]], vocab: Vocabulary, start: str
) -> dict[str, list[int]]:
    ways: dict[str, list[int]] = {}
    for index, some in enumerate(words):
        for word in some:
            if not word or boundary_at(word.encode(), vocab.boundary) is not None:
                problem = f"is {word!r} of context {index}; a word is not empty and holds no {vocab.boundary}"
                raise InputError(problem, field="words")
            if start + word not in ways:
                ways[start + word] = word_tokens(model, start + word)
    return ways


def _start_mass(
    model: LanguageModel, vocab: Vocabulary, contexts: Sequence[Sequence[int]], start: str
) -> NDArray[np.float64]:
    """Ln of the probability that a word begins: with one token, or with a space and then a word's first byte."""
    if not start:
        return query(model, contexts, [[]] * len(contexts), [vocab.begins])[1][:, 0]
    spaced = [[*context, int(space)] for context in contexts for space in vocab.spaces]
    n_spaces = len(vocab.spaces)
    asked: list[Sequence[int]] = [vocab.spaces.tolist()] * len(contexts) + [[]] * len(spaced)
    gathered, mass = query(model, [*contexts, *spaced], asked, [vocab.spaced_begins, vocab.begins])
    whole = mass[: len(contexts), 0]
    if not n_spaces:
        return whole
    space = np.array([gathered[i] for i in range(len(contexts))]).reshape(len(contexts), n_spaces)
    after = mass[len(contexts) :, 1].reshape(len(contexts), n_spaces)
    in_two: NDArray[np.float64] = np.logaddexp.reduce(np.column_stack([whole, space + after]), axis=1)
    return in_two


def _own_mass(
    model: LanguageModel, vocab: Vocabulary, tasks: Sequence[_Task]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Ln of the probability of every word with its boundary, written the tokenizer's own way; and of its tokens."""
    sequences: dict[tuple[int, ...], set[int]] = {}
    for task in tasks:
        context = tuple(task.context)
        for way in task.ways:
            for position in range(len(way) + 1):
                asked = sequences.setdefault((*context, *way[:position]), set())
                asked.update(way[position : position + 1])
                asked.update(_crossing(vocab, way[position:]).tolist())
    keys = list(sequences)
    lists = [sorted(asked) for asked in sequences.values()]
    gathered, mass = query(model, keys, lists, [vocab.ends])
    found = {
        key: (dict(zip(asked, values.tolist(), strict=True)), float(ends))
        for key, asked, values, ends in zip(keys, lists, gathered, mass[:, 0], strict=True)
    }
    results = []
    for task in tasks:
        context = tuple(task.context)
        whole, paths = np.full(len(task.ways), -np.inf), np.zeros(len(task.ways))
        for index, way in enumerate(task.ways):
            path, parts = 0.0, []
            for position in range(len(way) + 1):
                after, ends = found[*context, *way[:position]]
                parts += [path + after[int(token)] for token in _crossing(vocab, way[position:])]
                if position < len(way):
                    path += after[way[position]]
                else:
                    parts.append(path + ends)
            whole[index], paths[index] = np.logaddexp.reduce(parts), path
        results.append((whole, paths))
    return results


def _crossing(vocab: Vocabulary, rest: Sequence[int]) -> NDArray[np.int64]:
    """Tokens that hold the rest of a word and what follows it."""
    if not rest:
        return np.zeros(0, dtype=np.int64)
    text = b"".join(vocab.token_bytes[token] for token in rest)
    return vocab.crossing.get(text, np.zeros(0, dtype=np.int64))


def _all_mass(
    model: LanguageModel,
    vocab: Vocabulary,
    task: _Task,
    *,
    texts: Sequence[bytes],
    floor: NDArray[np.float64],
    own: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sum over the ways of writing each word whose tokens stay above ``floor``, the tokenizer's own among them."""
    total, count = np.full(len(texts), -np.inf), np.zeros(len(texts), dtype=np.int64)
    # a way so far: which word, its tokens, bytes written, ln probability
    frontier: list[tuple[int, tuple[int, ...], int, float]] = [(w, (), 0, 0.0) for w in range(len(texts))]
    while frontier:
        nexts = [_nexts(vocab, texts[w][written:]) for w, _, written, _ in frontier]
        crossings = [
            vocab.crossing.get(texts[w][written:], ()) if vocab.crossing else () for w, _, written, _ in frontier
        ]
        asked = [[*(token for token, _ in some), *crossing] for some, crossing in zip(nexts, crossings, strict=True)]
        sequences = [(*task.context, *tokens) for _, tokens, _, _ in frontier]
        gathered, mass = query(model, sequences, asked, [vocab.ends])
        grown: list[tuple[int, tuple[int, ...], int, float]] = []
        for (w, tokens, written, path), some, values, ends in zip(frontier, nexts, gathered, mass[:, 0], strict=True):
            if written == len(texts[w]):
                total[w], count[w] = np.logaddexp(total[w], path + ends), count[w] + 1
                continue
            for value in values[len(some) :]:
                total[w] = np.logaddexp(total[w], path + value)
            for (token, size), value in zip(some, values, strict=False):
                if path + value >= floor[w] or (*tokens, token) == tuple(task.ways[w][: len(tokens) + 1]):
                    grown.append((w, (*tokens, token), written + size, path + float(value)))
        frontier = grown
    # the tokenizer's own way was never dropped, so that the sum cannot be less
    return np.maximum(total, own), count


def _nexts(vocab: Vocabulary, rest: bytes) -> list[tuple[int, int]]:
    """Tokens that write the beginning of what is left of a word, with the number of bytes that they write."""
    return [(token, size) for size in range(1, len(rest) + 1) for token in vocab.by_bytes.get(rest[:size], ())]
