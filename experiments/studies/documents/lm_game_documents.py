"""The documents of the top-1 game: OpenWebText as lists of GPT-2 tokens, joined to texts.

``docs/doc{i}.json`` of the public layout is a list of token strings. A character that the tokenizer cut apart is
U+FFFD there, so that the joined text is not the original in those places; how many documents have it is noted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.harness.result import loader
from shannon_game.experiments.studies.documents.tokens import Document, documents_study
from shannon_game.experiments.studies.lm_game_archive import (
    DOCUMENT_FOLDER,
    GameFiles,
    GameSettings,
    Span,
    parse_document,
)

_NAME = re.compile(rf"{DOCUMENT_FOLDER}/doc(\d+)\.json")


class LmGameDocumentsSettings(GameSettings):
    documents: Span | None = None
    """Numbers of the first and the last document; null takes all that are there."""
    tokens: bool = False
    """Keep the GPT-2 token strings beside the text."""
    duplicates: Literal["keep", "drop", "error"] = "keep"
    """What to do with a document that has the same text as another; kept and dropped ones are counted."""


@loader(LmGameDocumentsSettings)
def lm_game_documents(settings: LmGameDocumentsSettings) -> xr.Dataset:
    """Load the documents of the top-1 game as a documents study.

    Documents in the order of their numbers.
    """
    game = GameFiles.open(settings, (DOCUMENT_FOLDER,))
    names, others = _names(game, settings)
    documents = []
    for name, content in game.read(names):
        tokens = parse_document(content, game.where(name))
        documents.append(Document(Path(name).stem, "".join(tokens), tokens=tuple(tokens) if settings.tokens else None))
    notes = [
        (f"files in {DOCUMENT_FOLDER}/ that are no doc{{i}}.json, not read", others),
        ("documents that differ from the published ones of that name", len(game.changed())),
    ]
    return documents_study(
        "lm_game_documents",
        documents,
        game.digests,
        source=str(game.files.root),
        duplicates=settings.duplicates,
        notes=notes,
    )


def _names(game: GameFiles, settings: LmGameDocumentsSettings) -> tuple[list[str], int]:
    there = list(game.manifest) if game.verify else game.files.listed(DOCUMENT_FOLDER)
    numbers = {name: int(found[1]) for name in there if (found := _NAME.fullmatch(name))}
    others = 0 if game.verify else len(there) - len(numbers)
    span = settings.documents
    names = [name for name in numbers if span is None or span[0] <= numbers[name] <= span[1]]
    if not names:
        raise InputError(
            f"has no document {DOCUMENT_FOLDER}/doc{{i}}.json"
            + (f" with i from {span[0]} to {span[1]}; it has {len(numbers)} others" if span else ""),
            source=str(game.files.root),
            field=Set("study.documents") if span else None,
        )
    return sorted(names, key=numbers.__getitem__), others
