"""From the files of the top-1 game to checked arrays, before any filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.files import MissingFilesError
from shannon_game.experiments.studies.lm_game_archive import DOCUMENT_FOLDER, RESULT_FOLDER, GameFiles, parse_document
from shannon_game.experiments.studies.parsing import (
    Name,
    Note,
    Real,
    Text,
    Whole,
    checked,
    objects,
    parse_json,
    whole_characters,
)

__all__ = [
    "N_DOCUMENTS",
    "RESPONSE_FILE",
    "Rows",
    "document_exists",
    "document_file",
    "parse_rows",
    "read_documents",
    "read_stored",
]

RESPONSE_FILE = f"{RESULT_FOLDER}/res_accuracy_anonym.json"

_ROW_FIELDS = ("row_id", "user", "guess", "answer", "guessed_token_idx", "doc_id")
N_DOCUMENTS = 10_000  # the site's first training rounds had other texts, with numbers from here on
_ROWS = TypeAdapter(list[tuple[Whole, Name, Text, Any, Whole, Whole]])
_ACCURACIES = TypeAdapter(dict[str, Annotated[Real, Field(ge=0, le=1)]])
_SAMPLED = 1000  # guesses on which the authors' script asked each language model
# file -> which tokens it is of, and on how many guesses (0: unknown; those shares are of no round number)
_STORED: Mapping[str, tuple[str, int]] = {
    "model_perfs.json": ("visible", _SAMPLED),
    "model_perfs_origin.json": ("visible", 0),
    "model_perfs_new_new_orig.json": ("visible", _SAMPLED),
    "model_perfs_new_new_new_orig.json": ("visible", _SAMPLED),
    "model_perfs_new.json": ("word", _SAMPLED),
    "model_perfs_new_new.json": ("word", _SAMPLED),
    "model_perfs_new_new_new.json": ("word", _SAMPLED),
}


@dataclass(frozen=True)
class Rows:
    """Guesses in the order in which they were given (that of ``row_id``)."""

    row_id: NDArray[np.int64]
    participant: NDArray[np.str_]
    guess: NDArray[np.object_]
    position: NDArray[np.int64]  # of the target, from 0
    document: NDArray[np.int64]


def document_file(number: int) -> str:
    """Name of one document's file."""
    return f"{DOCUMENT_FOLDER}/doc{number}.json"


def read_documents(game: GameFiles, numbers: Sequence[int]) -> dict[int, list[str]]:
    """Tokens of documents by number; InputError names the file and the place of what is no token."""
    documents = {}
    for number, (name, content) in zip(numbers, game.read([document_file(number) for number in numbers]), strict=True):
        tokens = parse_document(content, game.where(name))
        if not tokens:
            raise InputError("is empty, should be a list of the document's tokens", source=game.where(name))
        # half of a surrogate pair becomes U+FFFD, as any other part of a character
        documents[number] = [whole_characters(token) for token in tokens]
    return documents


def parse_rows(content: bytes, source: str) -> tuple[Rows, list[Note]]:
    """Guesses of everybody, sorted by ``row_id``, and what is to be noted of them; InputError names row and field."""
    data = checked(_ROWS.validate_python, parse_json(content, source), source, _ROW_FIELDS)
    if not data:
        raise InputError(f"is an empty list, should hold [{', '.join(_ROW_FIELDS)}]", source=source)
    rows = sorted(data, key=lambda row: row[0])
    found = Rows(
        row_id=np.array([row[0] for row in rows], dtype=np.int64),
        participant=np.array([str(row[1]) for row in rows]),
        guess=objects([whole_characters(row[2]) for row in rows]),
        position=np.array([row[4] for row in rows], dtype=np.int64) - 1,
        document=np.array([row[5] for row in rows], dtype=np.int64),
    )
    notes = [Note("guesses in the file, by everybody who tried", len(rows))]
    repeated = len(rows) - np.unique(found.row_id).size
    if repeated:
        text = "rows with a row_id that was there before; kept, but which came first is not known"
        notes.append(Note(text, repeated, "warning"))
    return found, notes


def read_stored(game: GameFiles) -> tuple[dict[str, Any], list[str]]:
    """Variables of the accuracies that the files hold, and the files that are not there."""
    entries: list[tuple[str, float, str, int, str]] = []
    missing = []
    for name, (tokens, n) in _STORED.items():
        path = f"{RESULT_FOLDER}/{name}"
        try:
            [(_, content)] = game.read([path])
        except MissingFilesError:
            missing.append(name)
            continue
        source = game.where(path)
        data = checked(_ACCURACIES.validate_python, parse_json(content, source), source)
        entries += [(model, accuracy, tokens, n, name) for model, accuracy in data.items()]
    if not entries:
        return {}, missing
    model, accuracy, of, count, source_of = zip(*entries, strict=True)
    return {
        "stored_model": ("stored", np.array(model, dtype=object)),
        "stored_accuracy": ("stored", np.array(accuracy)),
        "stored_tokens": ("stored", np.array(of, dtype=object)),
        "stored_n": ("stored", np.array(count, dtype=np.int64)),
        "stored_source": ("stored", np.array(source_of, dtype=object)),
    }, missing


def document_exists(rows: Rows) -> NDArray[np.bool_]:
    """Which guesses are on documents that exist, by their number."""
    known: NDArray[np.bool_] = (rows.document >= 0) & (rows.document < N_DOCUMENTS)
    return known
