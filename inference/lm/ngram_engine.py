"""Word n-gram models as the engine of a question: texts are their words and marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from shannon_game.estimators.word_spans import word_spans
from shannon_game.inference.lm.alignment import character_places
from shannon_game.inference.lm.engine import EngineBase, Floats, Said, Strings
from shannon_game.inference.lm.ngram import END, START, UNKNOWN, NgramModel, load_ngram, pieces
from shannon_game.inference.lm.scored import Scored, Scoring, scores_of, units_of
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.stored import Work

_LISTED = 5
"""Unknown words that a warning names."""


class WordEngine(EngineBase):
    """An n-gram model, quick enough to store nothing."""

    whole_words = True

    def __init__(self, name: str, settings: ModelSettings) -> None:
        super().__init__(name, settings)
        self.model = load_ngram(settings)

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        """Words and marks of texts; white space and marks that the model lacks are of their neighbours."""
        return [[piece for _, _, piece in _of_text(self.model, text, "script")[0]] for text in texts]

    def score(self, texts: Sequence[str]) -> list[Floats]:
        """Ln q of words and marks; NaN for one that the model does not know."""
        return [np.array([value for value, _, _ in _of_text(self.model, text, "script")[0]]) for text in texts]

    def scored(self, work: Work, texts: Sequence[str], how: Scoring) -> Scored:
        """Score texts, each of which begins as a sentence does; a word that the model does not know has no score."""
        del work
        self._check_limits(how)
        scored = [_of_text(self.model, text, how.boundaries) for text in texts]
        nats = [{"logprob": np.array([value for value, _, _ in pieces_], dtype=float)} for pieces_, _ in scored]
        units = []
        for text, (_, unknown) in zip(texts, scored, strict=True):
            n_words, n_characters, n_bytes = units_of(text.encode(), how.boundaries)
            joined = "".join(piece for _, piece in unknown)
            n_unknown = len({word for word, _ in unknown})
            units.append((n_words - n_unknown, n_characters - len(joined), n_bytes - len(joined.encode())))
        return Scored(
            document=np.arange(len(texts)),
            # a word is a unit of the model: it has ended
            scores=scores_of(nats, boundary=0.0),
            places=[
                character_places(text)[[0, *(end for _, end, _ in pieces_)]]
                for text, (pieces_, _) in zip(texts, scored, strict=True)
            ],
            units=np.array(units),
            window=self.model.order,
            stride=1,
            bos=START,
            tokens=[[piece for _, _, piece in pieces_] for pieces_, _ in scored],
            revision=self.model.sha256,
            notes=_notes([piece for _, unknown in scored for _, piece in unknown]),
        )

    def next_word(self, contexts: Sequence[str], words: Strings) -> list[Floats]:
        """Ln q of words, given that one follows; unknown ones share the probability of the model's unknown word."""
        rows = [(at, [word]) for at, some in enumerate(words) for word in some]
        found = iter(np.log(self._probabilities(contexts, rows)))
        return [np.array([next(found) for _ in some]) for some in words]

    def word_probabilities(
        self, work: Work, contexts: Sequence[str], said: Said, *, others: float | None = None
    ) -> tuple[Floats, Floats]:
        """Probability of words by their spellings, of which the model may know several as one."""
        del work, others
        return self._probabilities(contexts, said), np.full(len(contexts), np.nan)

    def _probabilities(self, contexts: Sequence[str], said: Said) -> Floats:
        model, q = self.model, np.zeros(len(said))
        rows: list[list[int]] = [[] for _ in contexts]
        for row, (context, _) in enumerate(said):
            rows[context].append(row)
        for text, own in zip(contexts, rows, strict=True):
            history = _history(model, text)
            known = {row: {model.known(form) for form in said[row][1]} - {UNKNOWN} for row in own}
            n_unknown = sum(not some for some in known.values())
            unknown = np.exp(model.logprob(history, UNKNOWN))
            begins = 1 - sum(np.exp(model.logprob(history, mark)) for mark in self._marks)
            for row, some in known.items():
                mass = sum(np.exp(model.logprob(history, word)) for word in some) if some else unknown / n_unknown
                q[row] = mass / begins
        return q

    @cached_property
    def _words(self) -> list[str]:
        return [gram[0] for gram in self.model.grams if len(gram) == 1 and gram[0] not in (START, UNKNOWN)]

    @cached_property
    def _marks(self) -> list[str]:
        return [word for word in self._words if word == END or not any(map(str.isalnum, word))]

    def best_words(self, work: Work, texts: Sequence[str]) -> list[str | None]:
        """The most probable word of each context."""
        del work
        followers = _followers(self.model)
        most_common = max(set(self._words) - set(self._marks), key=lambda word: self.model.grams[word,][0])
        return [_best(self.model, _history(self.model, text), followers, most_common) for text in texts]


def _notes(unknown: Sequence[str]) -> tuple[str, ...]:
    some = ", ".join(list(dict.fromkeys(unknown))[:_LISTED])
    return (f"{len(unknown)} words and marks are unknown and have no surprisal, such as {some}",) if unknown else ()


def _of_text(
    model: NgramModel, text: str, boundaries: str
) -> tuple[list[tuple[float, int, str]], list[tuple[int, str]]]:
    """Nats, last character and text of each piece, and the pieces that the model does not know, each by its word."""
    found: list[tuple[float, int, str]] = []
    unknown: list[tuple[int, str]] = []
    history = [START]
    every = list(pieces(text, boundaries))
    for word in word_spans(text, boundaries=boundaries):
        own = [(at, piece) for at, piece in every if word.start <= at < word.stop]
        own = [its for its in own if model.has_punctuation or any(map(str.isalnum, its[1]))]
        # a mark that no word of the model is, alone between spaces
        own = own or [(word.start, text[word.start : word.stop])]
        for at, piece in own:
            known = model.known(piece)
            nats = model.logprob(history, known) if known != UNKNOWN else np.nan
            unknown += [(word.start, piece)] if known == UNKNOWN else []
            # marks that are left out are of the piece before them
            found.append((nats, word.stop if (at, piece) == own[-1] else at + len(piece), piece))
            history.append(known)
    return found, unknown


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
