"""What loaders of documents share: line ends, characters and duplicates, each repaired or refused, and counted."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from shannon_game.estimators.display import INVISIBLE
from shannon_game.estimators.documents import validate_documents_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.studies.parsing import Note, add_notes, counting, objects, some_of, whole_characters

ALL = "all"
"""The split of documents that have none."""

_LISTED = 3
_ODD = {
    "invisible characters": INVISIBLE,
    "spaces other than U+0020": re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f]"),
    "several spaces in a row": re.compile(r"(?<=\S)[ \t]{2,}(?=\S)"),
    "spaces at an end": re.compile(r"\A[ \t]+|[ \t]+(?=[\r\n]*\Z)"),
}
"""What readers do not see and language models do."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document as read, with its tokens where it came cut into them."""

    name: str
    text: str
    split: str = ALL
    tokens: tuple[str, ...] | None = None
    group: str | None = None
    regions: tuple[tuple[int, int], ...] = ()
    """First character of each region of interest, and the one after its last."""
    given: str | None = None
    """The text before its line ends were changed."""


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
    found += _odd_notes(kept)
    changed = [document.name for document in kept if "\r" in document.text and document.tokens is None]
    lines = (
        "texts whose lines end with a carriage return (Windows, old Mac); the ends were made \\n, and start and stop "
    )
    found.append(
        Note(f"{lines}are still those of the text given: {some_of(changed, _LISTED)}", len(changed), "warning")
    )
    kept = [_with_line_ends(document) for document in kept]
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


def _odd_notes(documents: Sequence[Document]) -> list[Note]:
    """Where texts hold what their readers did not see; nothing is changed."""
    places: dict[str, list[str]] = {}
    for document in documents:
        text = document.text
        # of texts that came cut into tokens nobody can change a character
        if document.tokens is not None:
            continue
        for kind, pattern in _ODD.items():
            found = None if text.isascii() and kind in list(_ODD)[:2] else pattern.search(text)
            if found:
                code = f" (U+{ord(found[0][0]):04X})" if found[0][0] != " " else ""
                places.setdefault(kind, []).append(f"{document.name} at {found.start()}{code}")
        composed = unicodedata.normalize("NFC", text)
        if composed != text:
            at = next((at for at, pair in enumerate(zip(composed, text, strict=False)) if pair[0] != pair[1]), 0)
            places.setdefault("accents apart from their letters (not NFC)", []).append(f"{document.name} at {at}")
    why = "scored as given, at tens of bits a word under most models; take them out if readers saw none"
    return [
        Note(f"texts with {kind}, {why}: {some_of(where, _LISTED)}", len(where), "warning")
        for kind, where in places.items()
    ]


def _with_line_ends(document: Document) -> Document:
    """Make all ends of lines those of Unix; regions stay where they are in the text."""
    text = document.text
    if "\r" not in text or document.tokens is not None:
        return document
    regions = tuple((a - text.count("\r\n", 0, a), b - text.count("\r\n", 0, b)) for a, b in document.regions)
    return replace(document, text=text.replace("\r\n", "\n").replace("\r", "\n"), regions=regions, given=text)


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
    if any(document.given is not None for document in documents):
        study["given"] = "document", objects([document.given or document.text for document in documents])
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
