"""What loaders of documents share: line ends, characters and duplicates, each repaired or refused, and counted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from shannon_game.estimators.documents import validate_documents_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.parsing import Note, add_notes, counting, objects, some_of, whole_characters

ALL = "all"
"""The split of documents that have none."""

_LISTED = 3


@dataclass(frozen=True)
class Document:
    """One document as read, with its tokens where it came cut into them."""

    name: str
    text: str
    split: str = ALL
    tokens: tuple[str, ...] | None = None
    group: str | None = None
    regions: tuple[tuple[int, int], ...] = ()
    """First character of each region of interest, and the one after its last."""


def documents_study(
    name: str,
    documents: Sequence[Document],
    digests: Mapping[str, str],
    *,
    source: str,
    duplicates: str = "keep",
    notes: Sequence[tuple[str, int]] = (),
    of_reader: Sequence[Note] = (),
) -> xr.Dataset:
    """Build a documents study; what is repaired, dropped or doubtful becomes a note.

    `of_reader` are notes of whoever read the table. Documents with nothing but white space are dropped. Of a pair of
    surrogates that was cut apart each half becomes U+FFFD.
    """
    found = [Note(text, count, "warning") for text, count in notes]
    kept = [document for document in documents if document.text.strip()]
    empty = [document.name for document in documents if not document.text.strip()]
    if not kept:
        raise InputError(f"holds no text ({len(documents)} read: {some_of(empty, _LISTED)})", source=source)
    whole = [_whole(document) for document in kept]
    repaired = sum(new.text != old.text for new, old in zip(whole, kept, strict=True))
    cut = sum("\ufffd" in document.text for document in whole)
    found += [
        Note(f"documents without text, left out: {some_of(empty, _LISTED)}", len(empty), "warning"),
        Note(
            "documents with half of a surrogate pair, which no file can hold; it was made U+FFFD", repaired, "warning"
        ),
        Note(
            "documents with U+FFFD, where characters were lost or cut apart before this study read them", cut, "warning"
        ),
    ]
    chosen = _without_duplicates(whole, duplicates, source, found)
    study = _dataset(name, chosen, digests)
    add_notes(study, [Note("documents used", len(chosen)), *of_reader, *counting(*found)])
    return validate_documents_study(study)


def _whole(document: Document) -> Document:
    if document.text.isascii():
        return document
    tokens = document.tokens
    if tokens is not None and whole_characters(document.text) != document.text:
        tokens = tuple(map(whole_characters, tokens))
        return replace(document, text="".join(tokens), tokens=tokens)
    return replace(document, text=whole_characters(document.text))


def _without_duplicates(documents: list[Document], duplicates: str, source: str, notes: list[Note]) -> list[Document]:
    first: dict[str, str] = {}
    pairs = [(document.name, first.setdefault(document.text, document.name)) for document in documents]
    again = [(name, before) for name, before in pairs if name != before]
    if not again:
        return documents
    if duplicates == "error":
        raise InputError(
            f"{again[0][0]!r} has the same text as {again[0][1]!r} ({len(again)} such); "
            f"{Set('study.duplicates', 'keep')} or drop says what to do",
            source=source,
        )
    said = some_of([f"{name} as {before}" for name, before in again], _LISTED)
    if duplicates == "drop":
        notes.append(Note(f"documents left out whose text was there before: {said}", len(again), "warning"))
        dropped = {name for name, _ in again}
        return [document for document in documents if document.name not in dropped]
    text = f"documents whose text was there before, kept; intervals take them for independent: {said}"
    notes.append(Note(text, len(again), "warning"))
    return documents


def _dataset(name: str, documents: Sequence[Document], digests: Mapping[str, str]) -> xr.Dataset:
    lines = "".join(f"{file} {digest}\n" for file, digest in sorted(digests.items()))
    study = xr.Dataset(
        {
            "text": ("document", objects([document.text for document in documents])),
            "split": ("document", objects([document.split for document in documents])),
        },
        coords={"document": objects([document.name for document in documents])},
        attrs={"name": name, "data_sha256": hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()},
    )
    groups = [document.group for document in documents if document.group is not None]
    if len(groups) == len(documents):
        study["group"] = "document", objects(groups)
    regions = [(at, *region) for at, document in enumerate(documents) for region in document.regions]
    for what, values in zip(("document", "start", "stop"), zip(*regions, strict=True), strict=False):
        study[f"region_{what}"] = "region", np.array(values, dtype=np.int64)
    if all(document.tokens is not None for document in documents):
        tokens = [document.tokens or () for document in documents]
        study["token"] = ("position", objects([token for part in tokens for token in part]))
        study["token_document"] = ("position", np.repeat(np.arange(len(tokens)), [len(part) for part in tokens]))
    return study
