"""Scores of texts under causal models that run here, through the store."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.inference.lm.alignment import character_places, token_places, written_places
from shannon_game.inference.lm.language_model import LanguageModel, encode, model_record, token_strings
from shannon_game.inference.lm.scored import BOUNDARY, Flat, Scored, Scoring, units_of
from shannon_game.inference.lm.scoring import score_documents
from shannon_game.inference.lm.stored import Work, batches_by_tokens
from shannon_game.inference.lm.vocabulary import writes_bytes
from shannon_game.inference.progress import stage
from shannon_game.inference.store.keys import operation_key, result_key
from shannon_game.inference.store.store import ragged

_SHOWN = 3
_LONGEST = 80
_CHARACTERS_AT_ONCE = 1 << 20
"""Of texts whose tokens and scores are in memory as objects."""
_COMPACT = {"rank": np.int32, BOUNDARY: np.float32}
"""Types that hold what a model gives."""


def score_texts(
    work: Work, model: LanguageModel, texts: Sequence[str], how: Scoring, heads: Sequence[list[int]] | None = None
) -> Scored:
    """Score texts under a model, with `how.has_words` also where words end, if its tokens say it.

    `heads` are tokens before each text, such as a user's turn, in place of the BOS token.
    """
    # the same whatever the documents, so that what was stored for one corpus serves another
    window = model.max_tokens if how.window is None else how.window
    how = replace(how, window=window, stride=max(1, window // 2) if how.stride is None else how.stride)
    ends = np.cumsum(list(map(len, texts)))
    cuts = np.flatnonzero(np.diff(ends // _CHARACTERS_AT_ONCE)) + 1
    parts, doubts = list[_Part](), dict[str, list[str]]()
    with stage(f"documents under {model.name}", len(texts)) if cuts.size else nullcontext() as show:
        for rows in np.split(np.arange(len(texts)), cuts):
            if show is not None:
                show(int(rows[0]))
            part = _scored_part(work, model, texts, rows, how, heads, doubts)
            parts += [part] if part.document.size else []
    if not parts:
        raise InputError(f"have no token that {model.name} can score", source="study", field="text")
    notes = [f"{len(those)} documents {kind}: {_some_of(those)}" for kind, those in doubts.items()] + _bos_doubt(model)
    n_cut = sum(part.n_cut for part in parts)
    if n_cut:
        limit = Set("experiment.max_tokens")
        notes.append(f"{n_cut} documents were scored up to their token {how.max_tokens} only ({limit})")
    if how.has_words and not writes_bytes(model):
        notes.append("its tokens do not say where a word ends: words have the sum over their tokens alone (sum_bits)")
    tokens: Sequence[Sequence[str]] | Flat = ()
    if how.has_words:
        ids = Flat.joined([part.ids for part in parts])
        known = np.flatnonzero(np.bincount(ids.items))
        strings = np.full(known[-1] + 1, "", dtype=object)
        strings[known] = token_strings(model, known.tolist())
        tokens = Flat(strings[ids.items], ids.bounds)
    return Scored(
        document=np.concatenate([part.document for part in parts]),
        # of what is joined the parts go
        scores={name: Flat.joined([part.scores.pop(name) for part in parts]) for name in list(parts[0].scores)},
        places=Flat.joined([part.places for part in parts]),
        units=np.concatenate([part.units for part in parts]),
        notes=tuple(notes),
        window=how.window,
        stride=how.stride,
        n_long=sum(part.n_long for part in parts),
        bos="the chat template" if heads is not None else _start(model) or "none",
        tokens=tokens,
        revision=model.revision or model.weights_sha256,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """Scores of some texts, without the objects that tokenizer and store make of them."""

    document: NDArray[np.intp]
    ids: Flat
    scores: dict[str, Flat]
    places: Flat
    units: NDArray[np.int64]
    n_cut: int
    n_long: int


def _scored_part(  # noqa: PLR0917
    work: Work,
    model: LanguageModel,
    texts: Sequence[str],
    rows: NDArray[np.intp],
    how: Scoring,
    heads: Sequence[list[int]] | None,
    doubts: dict[str, list[str]],
) -> _Part:
    # without a BOS token nothing comes before the first token, which then has no score
    first = int(model.bos_id is None and heads is None)
    own = [texts[at] for at in rows]
    names = [how.names[at] for at in rows]
    whole = encode(model, own, source="study", names=names)
    tokens = [its[: how.max_tokens] for its in whole]
    written = [written_places(model, text, its) for text, its in zip(own, whole, strict=True)]
    _add_doubts(model, list(zip(own, names, whole, written, strict=True)), first, doubts)
    kept = [at for at, its in enumerate(tokens) if len(its) > first]
    before = [[] if heads is None else heads[rows[at]] for at in kept]
    items = [[*head, *tokens[at]] for head, at in zip(before, kept, strict=True)]
    is_part = len(rows) < len(texts)
    found = _stored_scores(work, model if heads is None else replace(model, bos_id=None), items, how, is_part=is_part)
    # the first token of a head has no score
    skips = [max(len(head) - 1, 0) for head in before]
    scores = {
        name: Flat.of([row[n:] for row, n in zip(its, skips, strict=True)], _COMPACT.get(name))
        for name, its in found.items()
    }
    if how.has_words and BOUNDARY not in scores:
        scores[BOUNDARY] = Flat.of([np.full(n + 1, np.nan, np.float32) for n in scores["logprob"].sizes])
    places, units = [], []
    for at in kept:
        exact = token_places(model, own[at], whole[at]) if written[at] is None else written[at]
        its = np.zeros(0, dtype=np.int64) if exact is None else exact[first : 1 + len(tokens[at])]
        places.append(its)
        units.append(units_of(own[at].encode()[its[0] : its[-1]] if its.size else b"", how.boundaries))
    return _Part(
        rows[kept],
        Flat.of([tokens[at][first:] for at in kept], np.int32),
        scores,
        Flat.of(places, np.int32),
        np.array(units, dtype=np.int64).reshape(-1, 3),
        n_cut=sum(len(its) < len(all_) for its, all_ in zip(tokens, whole, strict=True)),
        n_long=sum(len(its) - first > (how.window or 0) for its in items),
    )


def _stored_scores(
    work: Work, model: LanguageModel, items: list[list[int]], how: Scoring, *, is_part: bool
) -> Mapping[str, NDArray[Any]]:
    windows, has_ends = {"window": how.window, "stride": how.stride}, how.has_words and writes_bytes(model)

    def compute(batch: list[list[int]]) -> dict[str, NDArray[Any]]:
        rows = document_rows(model, batch, boundaries=has_ends, **windows)
        return {name: ragged([row[name] for row in rows]) for name in rows[0]}

    operation = "document_boundaries" if has_ends else "document_scores"
    return work.compute(
        "of the next ones" if is_part else f"documents under {model.name}",
        operation_key(operation, model=model.identity, parameters=windows, compute=compute),
        items,
        [result_key(its) for its in items],
        compute,
        batches=batches_by_tokens(len, work, model.settings.tokens_per_batch),
        provenance=model_record(model),
        announced=not is_part,
    )


def document_rows(
    model: LanguageModel, documents: Sequence[Sequence[int]], *, boundaries: bool, **windows: int | None
) -> list[dict[str, NDArray[Any]]]:
    """Scores of the tokens of each document."""
    found = score_documents(model, documents, boundaries=boundaries, **windows)
    ends = np.searchsorted(found["document_index"].to_numpy(), np.arange(1, len(documents)))
    columns = {name: found[name].to_numpy() for name in ("logprob", "entropy_nats", "rank")}
    columns["is_best"] = found["best_token"].to_numpy() == found["token_id"].to_numpy()
    rows = {name: np.split(values, ends) for name, values in columns.items()}
    if boundaries:
        before, last = found["boundary_logprob"].to_numpy(), found["last_boundary_logprob"].to_numpy()
        rows[BOUNDARY] = [np.append(row, end) for row, end in zip(np.split(before, ends), last, strict=True)]
    return [{name: values[at] for name, values in rows.items()} for at in range(len(documents))]


def _start(model: LanguageModel) -> str | None:
    return None if model.bos_id is None else str(model.tokenizer.convert_ids_to_tokens(model.bos_id))


def _add_doubts(
    model: LanguageModel,
    texts: Sequence[tuple[str, object, list[int], NDArray[np.int64] | None]],
    first: int,
    kinds: dict[str, list[str]],
) -> None:
    """Name, by kind, the texts whose tokens are not their characters as written."""
    unknown = model.tokenizer.unk_token_id
    special = [str(token) for token in model.tokenizer.convert_ids_to_tokens(sorted(model.special_ids)) if token]
    spelt = re.compile("|".join(map(re.escape, special)) or r"(?!)")
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


def _bos_doubt(model: LanguageModel) -> list[str]:
    bos = _start(model)
    if model.settings.bos != "auto" or not bos or model.tokenizer.bos_token in (None, bos):
        return []
    said = f"not its BOS token {model.tokenizer.bos_token} but {bos} stands before each text"
    return [f"{said}; {Set(f'models.{model.name}.bos')} names another"]


def _around(written: str, text: str) -> str:
    """Some characters of a text as it was changed, from the first that differs."""
    pairs = enumerate(zip(written, text, strict=False))
    same = next((at for at, (a, b) in pairs if a != b), min(len(written), len(text)))
    return written[max(0, same - 5) : same + 5]


def _some_of(names: Sequence[str]) -> str:
    shown = [name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..." for name in names[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
