"""Scores of texts under language models, all of a text or the characters that several models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.estimators.word_spans import has_unspaced, word_spans
from shannon_game.inference.lm.alignment import shared_places
from shannon_game.inference.lm.scored import BOUNDARY, Flat, Scored, units_of


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text, in UTF-8 bytes."""

    start: int
    stop: int

    def of(self, text: str) -> bytes:
        """Bytes of the part."""
        return text.encode()[self.start : self.stop]


def shared_span(text: str, places: Sequence[NDArray[np.int64]]) -> Span | None:
    """Find the characters from the first to the last place at which every model has the end of a token."""
    if not all(its.size for its in places):
        return None
    shared = shared_places(text, places)
    return Span(int(shared[0]), int(shared[-1])) if len(shared) > 1 else None


def inside(places: NDArray[np.int64], span: Span) -> NDArray[np.bool_]:
    """Which tokens lie in a span; a space that a tokenizer puts before a text lies at its beginning."""
    return (places[:-1] >= span.start) & (places[1:] <= span.stop)


_UNSCORED = -1


@dataclass(frozen=True, slots=True)
class Joined:
    """Texts one after another: of a group all, in order."""

    text: str
    document: tuple[int, ...]
    """Positions of the texts; -1 of what is not scored."""
    span: tuple[Span, ...]
    """Where each is, without white space at its end."""


def join_texts(texts: Sequence[str], groups: Sequence[str]) -> list[Joined]:
    """Join the texts of each group by a space, which scripts that write none do without."""
    members: dict[str, list[int]] = {}
    for at, group in enumerate(groups):
        members.setdefault(group, []).append(at)
    found = []
    for rows in members.values():
        text, spans = "", []
        for at in rows:
            has_space = not text or text[-1].isspace() or texts[at][0].isspace()
            needs_none = has_unspaced(text[-2:]) and has_unspaced(texts[at])
            text += "" if has_space or needs_none else " "
            start = len(text.encode())
            text += texts[at]
            spans.append(Span(start, len(text.rstrip().encode())))
        found.append(Joined(text, tuple(rows), tuple(spans)))
    return found


def after(prefixes: Sequence[str], texts: Sequence[str]) -> list[Joined]:
    """Each text after what stands before it and is not scored."""
    whole = [join_texts(both, ["", ""])[0] for both in zip(prefixes, texts, strict=True)]
    ends = [len(prefix.encode()) for prefix in prefixes]
    return [
        replace(one, document=(_UNSCORED, at), span=(Span(0, end), one.span[1]))
        for at, (one, end) in enumerate(zip(whole, ends, strict=True))
    ]


def apart(scored: Scored, joined: Sequence[Joined], boundaries: str) -> Scored:
    """Cut the scores of joined texts into those of each text, given the ones before it."""
    parts: dict[str, list[Any]] = {name: [] for name in ("document", "goes_on", "places", "units", "tokens")}
    scores: dict[str, list[NDArray[Any]]] = {name: [] for name in scored.scores}
    for row, at in enumerate(scored.document):
        whole, places = joined[at], scored.places[row]
        content = whole.text.encode()
        if not places.size:
            setting = "context" if whole.document[0] != _UNSCORED else "prefix"
            problem = "needs the places of tokens, but the tokenizer changes a text; leave it out"
            raise InputError(problem, field=Set(f"experiment.{setting}"))
        # a token is of the text in which it ends, and white space of the text after it
        owner = np.searchsorted([span.stop for span in whole.span[:-1]], places[1:], "left")
        for number, (document, span) in enumerate(zip(whole.document, whole.span, strict=True)):
            tokens = np.flatnonzero(owner == number)
            if not tokens.size or document == _UNSCORED:
                continue
            a, b = int(tokens[0]), int(tokens[-1]) + 1
            own = np.maximum(places[a : b + 1] - span.start, 0)
            parts["document"].append(document)
            before = content[whole.span[number - 1].start : span.start].decode() if number else ""
            parts["goes_on"].append(bool(before) and word_spans(before, boundaries=boundaries)[-1].is_spaced)
            # white space before a text is its own; a token that holds more of the text before has no place in this one
            parts["places"].append(own if not content[places[a] : span.start].strip() else own[:0])
            parts["units"].append(units_of(content[span.start + own[0] : span.start + own[-1]], boundaries))
            parts["tokens"].append(scored.tokens[row][a:b] if scored.tokens else [])
            for name, values in scored.scores.items():
                scores[name].append(values[row][a : b + (name == BOUNDARY)])
    order = np.argsort(parts["document"], kind="stable")
    sorted_ = {name: [its[i] for i in order] for name, its in parts.items()}
    return replace(
        scored,
        document=np.array(sorted_["document"], dtype=np.intp),
        goes_on={row for row, its in enumerate(sorted_["goes_on"]) if its},
        places=sorted_["places"],
        units=np.array(sorted_["units"]),
        tokens=sorted_["tokens"],
        scores={name: Flat.of([its[i] for i in order]) for name, its in scores.items()},
    )


def of_shared_text(
    scored: Mapping[str, Scored], texts: Sequence[str], boundaries: str = "script"
) -> tuple[dict[str, Scored], int]:
    """Cut the scores of every model down to the characters that all models score."""
    rows = {name: {int(document): row for row, document in enumerate(its.document)} for name, its in scored.items()}
    spans: dict[int, Span] = {}
    for document, text in enumerate(texts):
        places = [
            its.places[rows[name][document]] if document in rows[name] else np.zeros(0, np.int64)
            for name, its in scored.items()
        ]
        span = shared_span(text, places)
        if span is not None:
            spans[document] = span
    if not spans:
        problem = "is 'shared', but in no document do all models have the end of a token at two places; leave one out"
        raise InputError(problem, field="characters")
    kept = np.array(sorted(spans), dtype=np.intp)
    units = np.array([units_of(spans[document].of(texts[document]), boundaries) for document in kept])
    return {
        name: _within(its, [rows[name][document] for document in kept], [spans[document] for document in kept], units)
        for name, its in scored.items()
    }, len(texts) - len(kept)


def _within(its: Scored, rows: Sequence[int], spans: Sequence[Span], units: NDArray[np.int64]) -> Scored:
    places = [its.places[row] for row in rows]
    masks = [inside(place, span) for place, span in zip(places, spans, strict=True)]
    scores = {
        key: Flat.of([values[row][mask] for row, mask in zip(rows, masks, strict=True)])
        for key, values in its.scores.items()
        if key != BOUNDARY
    }
    # words are of the whole texts: nothing here goes on
    return replace(its, document=its.document[list(rows)], scores=scores, places=places, units=units)
