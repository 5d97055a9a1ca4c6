"""Probabilities of whole next words under a word n-gram model, given that a word follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shannon_game.estimators.arrays import FloatArray
from shannon_game.estimators.cloze.distributions import Ints
from shannon_game.inference.lm.ngram import END, START, UNKNOWN, NgramModel, load_ngram, pieces
from shannon_game.inference.lm.settings import ModelSettings


def ngram_words(
    settings: ModelSettings, contexts: Sequence[str], context_of_row: Ints, forms: Sequence[Sequence[str]]
) -> tuple[FloatArray, list[str]]:
    """Probability of the words of each row, by their spellings, and the most probable word of each context.

    Words that the model does not know share the probability of its unknown one, given that a word follows.
    """
    model = load_ngram(settings)
    words = [gram[0] for gram in model.grams if len(gram) == 1 and gram[0] not in (START, UNKNOWN)]
    marks = [word for word in words if word == END or not any(map(str.isalnum, word))]
    rows: list[list[int]] = [[] for _ in contexts]
    for row, context in enumerate(context_of_row.tolist()):
        rows[context].append(row)
    q, best = np.zeros(len(forms)), []
    most_common, followers = max(set(words) - set(marks), key=lambda word: model.grams[word,][0]), _followers(model)
    for text, own in zip(contexts, rows, strict=True):
        history = _history(model, text)
        known = {row: {model.known(form) for form in forms[row]} - {UNKNOWN} for row in own}
        n_unknown = sum(not some for some in known.values())
        unknown = np.exp(model.logprob(history, UNKNOWN))
        begins = 1 - sum(np.exp(model.logprob(history, mark)) for mark in marks)
        for row, some in known.items():
            mass = sum(np.exp(model.logprob(history, word)) for word in some) if some else unknown / n_unknown
            q[row] = mass / begins
        best.append(_best(model, history, followers, most_common))
    return q, best


def _history(model: NgramModel, text: str) -> list[str]:
    kept = [piece for _, piece in pieces(text) if model.has_punctuation or any(map(str.isalnum, piece))]
    return [START, *(model.known(piece) for piece in kept)][-model.order :]


def _best(
    model: NgramModel, history: list[str], followers: Mapping[tuple[str, ...], list[str]], most_common: str
) -> str:
    """Return the most probable word: one seen after the history, or the most frequent of all."""
    tails = [tuple(history[len(history) - length :]) for length in range(1, min(model.order, len(history) + 1))]
    words = dict.fromkeys(word for tail in tails for word in followers.get(tail, ()))
    return max([*words, most_common], key=lambda word: model.logprob(history, word))


def _followers(model: NgramModel) -> Mapping[tuple[str, ...], list[str]]:
    """Words, without marks, that were seen after each history."""
    found: dict[tuple[str, ...], list[str]] = {}
    for *history, word in model.grams:
        if history and word not in (UNKNOWN, END) and any(map(str.isalnum, word)):
            found.setdefault(tuple(history), []).append(word)
    return found
