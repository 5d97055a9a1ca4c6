"""Scores of texts under language models, all of a text or the characters that several models share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.estimators.word_spans import has_unspaced, word_spans
from shannon_game.experiments.harness.language_models import Work, batches_by_tokens
from shannon_game.experiments.studies.parsing import some_of
from shannon_game.inference.lm.alignment import character_places, shared_places, token_places, written_places
from shannon_game.inference.lm.language_model import LanguageModel, encode, model_record, token_strings
from shannon_game.inference.lm.scoring import score_documents
from shannon_game.inference.lm.vocabulary import writes_bytes
from shannon_game.inference.store.keys import operation_key, result_key
from shannon_game.inference.store.store import ragged


@dataclass(frozen=True)
class Span:
    """A part of a text, in UTF-8 bytes."""

    start: int
    stop: int

    def of(self, text: str) -> bytes:
        """Bytes of the part."""
        return text.encode()[self.start : self.stop]


def shared_span(text: str, places: Sequence[NDArray[np.int64] | None]) -> Span | None:
    """Find the characters from the first to the last place at which every model has the end of a token."""
    known = [its for its in places if its is not None]
    if len(known) < len(places):
        return None
    shared = shared_places(text, known)
    return Span(int(shared[0]), int(shared[-1])) if len(shared) > 1 else None


def inside(places: NDArray[np.int64], span: Span) -> NDArray[np.bool_]:
    """Which tokens lie in a span; a space that a tokenizer puts before a text lies at its beginning."""
    return (places[:-1] >= span.start) & (places[1:] <= span.stop)


def units_of(content: bytes, boundaries: str = "script") -> tuple[int, int, int]:
    """Count the words, characters and bytes of a part of a text."""
    text = content.decode(errors="replace")
    # a character of which the part holds the beginning alone is none of it
    n_characters = len(content.translate(None, bytes(range(0x80, 0xC0))))
    is_spaced = boundaries == "spaces" or not has_unspaced(text)
    words = text.split() if is_spaced else word_spans(text, boundaries=boundaries)
    return len(words), n_characters, len(content)


_SCORES = ("logprob", "is_best", "entropy_nats", "rank")
BOUNDARY = "boundary_logprob"
"""ln of the probability that a word ends before each token, and after the last."""


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of one model: rows are the documents that have any."""

    document: NDArray[np.intp]
    """Position of the document, shape (row,)."""
    scores: Mapping[str, NDArray[Any]]
    """Of :data:`_SCORES`: an array a row, of its tokens; :data:`BOUNDARY` has one value more."""
    places: Sequence[NDArray[np.int64] | None]
    """Where the scored tokens begin and end, in UTF-8 bytes; None where the tokenizer changed the text."""
    units: NDArray[np.int64]
    """Words, characters and bytes of what was scored, shape (row, 3)."""
    tokens: Sequence[Sequence[str]]
    """Strings of the scored tokens, by row, where words and tokens are shown."""
    bos: str
    """Token before every document, or none."""
    revision: str = ""
    """Commit of a Hub repository, else the hash of the model's files."""
    window: int | None = None
    stride: int | None = None
    goes_on: AbstractSet[int] = frozenset()
    """Rows that go on after a text whose last word had its end counted."""
    notes: tuple[str, ...] = ()
    """What the report warns of."""
    said: str = ""
    """What the report says of the cost."""


def scores_of(
    logprob: Sequence[NDArray[np.float64]], rank: Sequence[NDArray[np.float64]] | None = None, *, boundary: float
) -> dict[str, NDArray[Any]]:
    """Scores where the distributions are not known, and the end of every word has one log-probability or none."""
    none = [np.full(its.size, np.nan) for its in logprob]
    rank = none if rank is None else rank
    return {
        "logprob": ragged(logprob),
        "is_best": ragged([its == 1 for its in rank]),
        "entropy_nats": ragged(none),
        "rank": ragged(rank),
        BOUNDARY: ragged([np.full(its.size + 1, boundary) for its in logprob]),
    }


def score_texts(
    work: Work,
    model: LanguageModel,
    texts: Sequence[str],
    names: Sequence[object],
    *,
    max_tokens: int | None,
    window: int | None,
    stride: int | None,
    has_words: bool = False,
    boundaries: str = "script",
    heads: Sequence[list[int]] | None = None,
) -> Scored:
    """Score texts under a model, through the store; with `has_words` also where words end, if its tokens say it.

    `heads` are tokens before each text, such as a user's turn, in place of the BOS token.
    """
    tokens = all_tokens = encode(model, texts, source="study", names=names)
    if max_tokens is not None:
        tokens = [document[:max_tokens] for document in tokens]
    # without a BOS token nothing comes before the first token, which then has no score
    first = int(model.bos_id is None and heads is None)
    document = np.array([i for i, its in enumerate(tokens) if len(its) > first], dtype=np.intp)
    if not document.size:
        raise InputError(f"have no token that {model.name} can score", source="study", field="text")
    own = [tokens[i] for i in document]
    items = own
    if heads is not None:
        model, items = replace(model, bos_id=None), [[*heads[i], *tokens[i]] for i in document]
    # the same whatever the documents, so that what was stored for one corpus serves another
    window = model.max_tokens if window is None else window
    stride = max(1, window // 2) if stride is None else stride
    has_ends = has_words and writes_bytes(model)

    def compute(batch: list[list[int]]) -> dict[str, NDArray[Any]]:
        found = score_documents(model, batch, window=window, stride=stride, boundaries=has_ends)
        ends = np.searchsorted(found["document_index"].to_numpy(), np.arange(1, len(batch)))
        columns = {name: found[name].to_numpy() for name in ("logprob", "entropy_nats", "rank")}
        columns["is_best"] = found["best_token"].to_numpy() == found["token_id"].to_numpy()
        rows = {name: ragged(np.split(columns[name], ends)) for name in _SCORES}
        if has_ends:
            before, last = found["boundary_logprob"].to_numpy(), found["last_boundary_logprob"].to_numpy()
            pairs = zip(np.split(before, ends), last, strict=True)
            rows[BOUNDARY] = ragged([np.append(row, end) for row, end in pairs])
        return rows

    found = work.compute(
        f"documents under {model.name}",
        operation_key(
            "document_boundaries" if has_ends else "document_scores",
            model=model.identity,
            parameters={"window": window, "stride": stride},
            compute=compute,
        ),
        items,
        [result_key(its) for its in items],
        compute,
        batches=batches_by_tokens(len, work, model.settings.tokens_per_batch),
        provenance=model_record(model),
    )
    if heads is not None:
        # the first token of a head has no score
        cut = [len(heads[i]) - 1 for i in document]
        found = {key: ragged([row[n:] for row, n in zip(its, cut, strict=True)]) for key, its in found.items()}
    if has_words and not has_ends:
        found = {**found, BOUNDARY: ragged([np.full(its.size + 1, np.nan) for its in found["logprob"]])}
    n_cut = sum(len(its) < len(before) for its, before in zip(tokens, all_tokens, strict=True))
    written = [written_places(model, text, its) for text, its in zip(texts, all_tokens, strict=True)]
    notes = _doubts(model, list(zip(texts, names, all_tokens, written, strict=True)), first)
    if n_cut:
        limit = Set("experiment.max_tokens")
        notes.append(f"{n_cut} documents were scored up to their token {max_tokens} only ({limit})")
    if has_words and not has_ends:
        notes.append("its tokens do not say where a word ends: words have the sum over their tokens alone (sum_bits)")
    all_places = [token_places(model, texts[i], all_tokens[i]) if written[i] is None else written[i] for i in document]
    pieces = iter(token_strings(model, [token for its in own for token in its[first:]]) if has_words else ())
    places = [
        None if its is None else its[first : 1 + len(tokens[i])] for its, i in zip(all_places, document, strict=True)
    ]
    contents = [
        b"" if its is None else texts[i].encode()[its[0] : its[-1]] for its, i in zip(places, document, strict=True)
    ]
    return Scored(
        document=document,
        scores=found,
        places=places,
        units=np.array([units_of(content, boundaries) for content in contents]),
        notes=tuple(notes),
        window=window,
        stride=stride,
        bos="the chat template" if heads is not None else _start(model) or "none",
        tokens=[list(islice(pieces, len(its) - first)) for its in own] if has_words else [],
        revision=model.revision or model.weights_sha256,
    )


def _start(model: LanguageModel) -> str | None:
    return None if model.bos_id is None else str(model.tokenizer.convert_ids_to_tokens(model.bos_id))


def _doubts(
    model: LanguageModel, texts: Sequence[tuple[str, object, list[int], NDArray[np.int64] | None]], first: int
) -> list[str]:
    """What to know of texts whose tokens are not their characters as written, the first of each kind by name."""
    unknown = model.tokenizer.unk_token_id
    bos = _start(model)
    special = [str(token) for token in model.tokenizer.convert_ids_to_tokens(sorted(model.special_ids)) if token]
    spelt = re.compile("|".join(map(re.escape, special)) or r"(?!)")
    kinds: dict[str, list[str]] = {}
    for text, name, its, exact in texts:
        if its and exact is None:
            places = token_places(model, text, its)
            if places is not None and unknown in its:
                at, where = list(its).index(unknown), character_places(text)
                start, stop = np.searchsorted(where, places[at : at + 2])
                kind = f"have tokens that are unknown to the tokenizer, scored as {model.tokenizer.unk_token}"
                kinds.setdefault(kind, []).append(f"{name} ({text[start:stop].strip()!r})")
            elif writes_bytes(model):
                written = str(model.tokenizer.decode(list(its), skip_special_tokens=False))
                kind = "are changed by the tokenizer (normalised), and scored as changed"
                kinds.setdefault(kind, []).append(f"{name} (as {_around(written, text)!r})")
        found = spelt.search(text)
        if found:
            kind = "spell out a special token, which is scored as text"
            kinds.setdefault(kind, []).append(f"{name} ({found[0]!r})")
        if len(its) <= first:
            kinds.setdefault("have no token that can be scored, and no rows", []).append(str(name))
    notes = [f"{len(those)} documents {kind}: {some_of(those, 3)}" for kind, those in kinds.items()]
    if model.settings.bos == "auto" and bos and model.tokenizer.bos_token not in (None, bos):
        said = f"not its BOS token {model.tokenizer.bos_token} but {bos} stands before each text"
        notes.append(f"{said}; {Set(f'models.{model.name}.bos')} names another")
    return notes


def _around(written: str, text: str) -> str:
    """Some characters of a text as it was changed, from the first that differs."""
    pairs = enumerate(zip(written, text, strict=False))
    same = next((at for at, (a, b) in pairs if a != b), min(len(written), len(text)))
    return written[max(0, same - 5) : same + 5]


_UNSCORED = -1


@dataclass(frozen=True)
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
        if places is None:
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
            parts["places"].append(own if not content[places[a] : span.start].strip() else None)
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
        scores={name: ragged([its[i] for i in order]) for name, its in scores.items()},
    )


def of_shared_text(
    scored: Mapping[str, Scored], texts: Sequence[str], boundaries: str = "script"
) -> tuple[dict[str, Scored], int]:
    """Cut the scores of every model down to the characters that all models score."""
    rows = {name: {int(document): row for row, document in enumerate(its.document)} for name, its in scored.items()}
    spans: dict[int, Span] = {}
    for document, text in enumerate(texts):
        places = [its.places[rows[name][document]] if document in rows[name] else None for name, its in scored.items()]
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
    masks = [inside(place, span) for place, span in zip(places, spans, strict=True) if place is not None]
    scores = {
        key: ragged([values[row][mask] for row, mask in zip(rows, masks, strict=True)])
        for key, values in its.scores.items()
        if key != BOUNDARY
    }
    # words are of the whole texts: nothing here goes on
    return replace(its, document=its.document[list(rows)], scores=scores, places=places, units=units)
