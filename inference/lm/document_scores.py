"""Scores of texts under causal models that run here, through the store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.inference.lm.alignment import character_places, token_places, written_places
from shannon_game.inference.lm.language_model import LanguageModel, encode, model_record, token_strings
from shannon_game.inference.lm.scored import BOUNDARY, Scored, Scoring, units_of
from shannon_game.inference.lm.scoring import score_documents
from shannon_game.inference.lm.stored import Work, batches_by_tokens
from shannon_game.inference.lm.vocabulary import writes_bytes
from shannon_game.inference.store.keys import operation_key, result_key
from shannon_game.inference.store.store import ragged

_SHOWN = 3
_LONGEST = 80


def score_texts(
    work: Work, model: LanguageModel, texts: Sequence[str], how: Scoring, heads: Sequence[list[int]] | None = None
) -> Scored:
    """Score texts under a model, with `how.has_words` also where words end, if its tokens say it.

    `heads` are tokens before each text, such as a user's turn, in place of the BOS token.
    """
    tokens = all_tokens = encode(model, texts, source="study", names=how.names)
    if how.max_tokens is not None:
        tokens = [document[: how.max_tokens] for document in tokens]
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
    window = model.max_tokens if how.window is None else how.window
    stride = max(1, window // 2) if how.stride is None else how.stride
    has_ends = how.has_words and writes_bytes(model)

    def compute(batch: list[list[int]]) -> dict[str, NDArray[Any]]:
        rows = document_rows(model, batch, window=window, stride=stride, boundaries=has_ends)
        return {name: ragged([row[name] for row in rows]) for name in rows[0]}

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
    if how.has_words and not has_ends:
        found = {**found, BOUNDARY: ragged([np.full(its.size + 1, np.nan) for its in found["logprob"]])}
    n_cut = sum(len(its) < len(before) for its, before in zip(tokens, all_tokens, strict=True))
    written = [written_places(model, text, its) for text, its in zip(texts, all_tokens, strict=True)]
    notes = _doubts(model, list(zip(texts, how.names, all_tokens, written, strict=True)), first)
    if n_cut:
        limit = Set("experiment.max_tokens")
        notes.append(f"{n_cut} documents were scored up to their token {how.max_tokens} only ({limit})")
    if how.has_words and not has_ends:
        notes.append("its tokens do not say where a word ends: words have the sum over their tokens alone (sum_bits)")
    all_places = [token_places(model, texts[i], all_tokens[i]) if written[i] is None else written[i] for i in document]
    pieces = iter(token_strings(model, [token for its in own for token in its[first:]]) if how.has_words else ())
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
        units=np.array([units_of(content, how.boundaries) for content in contents]),
        notes=tuple(notes),
        window=window,
        stride=stride,
        n_long=sum(len(its) - (first if heads is None else 0) > window for its in items),
        bos="the chat template" if heads is not None else _start(model) or "none",
        tokens=[list(islice(pieces, len(its) - first)) for its in own] if how.has_words else [],
        revision=model.revision or model.weights_sha256,
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
    notes = [f"{len(those)} documents {kind}: {_some_of(those)}" for kind, those in kinds.items()]
    if model.settings.bos == "auto" and bos and model.tokenizer.bos_token not in (None, bos):
        said = f"not its BOS token {model.tokenizer.bos_token} but {bos} stands before each text"
        notes.append(f"{said}; {Set(f'models.{model.name}.bos')} names another")
    return notes


def _around(written: str, text: str) -> str:
    """Some characters of a text as it was changed, from the first that differs."""
    pairs = enumerate(zip(written, text, strict=False))
    same = next((at for at, (a, b) in pairs if a != b), min(len(written), len(text)))
    return written[max(0, same - 5) : same + 5]


def _some_of(names: Sequence[str]) -> str:
    shown = [name if len(name) <= _LONGEST else name[: _LONGEST - 3] + "..." for name in names[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
