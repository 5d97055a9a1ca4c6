"""Scores of the words and marks of texts under n-gram models, in the form of those of language models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shannon_game.estimators.word_spans import word_spans
from shannon_game.experiments.documents.scored import Scored, scores_of, units_of
from shannon_game.inference.lm.alignment import character_places
from shannon_game.inference.lm.ngram import START, UNKNOWN, NgramModel, pieces

_LISTED = 5
"""Unknown words that a warning names."""


def score_ngrams(model: NgramModel, texts: Sequence[str], *, boundaries: str = "script") -> Scored:
    """Score texts, each of which begins as a sentence does; a word that the model does not know has no score."""
    scored = [_of_text(model, text, boundaries) for text in texts]
    nats = [np.array([value for value, _, _ in pieces_], dtype=float) for pieces_, _ in scored]
    units = []
    for text, (_, unknown) in zip(texts, scored, strict=True):
        n_words, n_characters, n_bytes = units_of(text.encode(), boundaries)
        joined = "".join(piece for _, piece in unknown)
        units.append(
            (n_words - len({word for word, _ in unknown}), n_characters - len(joined), n_bytes - len(joined.encode()))
        )
    return Scored(
        document=np.arange(len(texts)),
        # a word is a unit of the model: it has ended
        scores=scores_of(nats, boundary=0.0),
        places=[
            character_places(text)[[0, *(end for _, end, _ in pieces_)]]
            for text, (pieces_, _) in zip(texts, scored, strict=True)
        ],
        units=np.array(units),
        window=model.order,
        stride=1,
        bos=START,
        tokens=[[piece for _, _, piece in pieces_] for pieces_, _ in scored],
        revision=model.sha256,
        notes=_notes([piece for _, unknown in scored for _, piece in unknown]),
    )


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
