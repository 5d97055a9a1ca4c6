"""Words of texts as questions, for games that go through a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shannon_game.estimators.cloze.study import context_labels
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.collect.games.protocol import CUT, Game, QuestionRow

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.collect.settings import CollectSettings

_WORD = re.compile(r"\S+")
_ENDS = tuple(",;:.!?)")


def texts_of(study: xr.Dataset) -> dict[str, str]:
    """Whole texts of a study by name: of a documents study, or of a comparison study with ``document_text``."""
    name, text = ("document_name", "document_text") if "document_text" in study else ("document", "text")
    if text not in study or study[text].dims != study[name].dims:
        return {}
    return dict(zip(study[name].values.astype(str).tolist(), study[text].values.tolist(), strict=True))


def items_alone(study: xr.Dataset) -> xr.Dataset:
    """Leave out a study's whole texts, so that games on words ask at its items alone."""
    return study.drop_vars(["document_text", "token_document"], errors="ignore")


class WordGame(Game):
    """A game that asks for the next word; a word is what stands between blanks."""

    needs_word = True
    """Whether the word of the text has to be known."""

    def questions(self, study: xr.Dataset, settings: CollectSettings, /) -> list[QuestionRow]:
        """Make a question of every region, of every word of whole texts but the first, or of an item.

        Of a comparison study without texts those count whose target begins a word, and the target stands for the word.
        """
        rows = [_shown(row, settings) for row in marked_cuts(list(_places(study)), texts_of(study))]
        gap = next((row.item_id for row in rows if self.needs_word and not row.content["target"]), None)
        if gap is not None:
            problem = f"has a gap without its word at {gap}; this game needs the word, cloze does not"
            raise InputError(problem, source=f"study {study.attrs.get('name')!r}", field="game")
        if settings.order == "cumulative":
            first = {row.document: row.position for row in reversed(rows)}
            rows = [replace(row, opens=row.position == first[row.document]) for row in rows]
        if not rows:
            source = f"study {study.attrs.get('name')!r}"
            raise InputError("has no word that could be asked for", source=source, field="game")
        return rows


def marked_cuts(rows: Sequence[QuestionRow], texts: Mapping[str, str]) -> list[QuestionRow]:
    """Mark the contexts that begin inside their text, so that pages can say so."""
    found = []
    for row in rows:
        start, text = row.content["context"].lstrip(), texts.get(row.document)
        known = text is not None and not text.lstrip().startswith(start)
        is_cut = known or (text is None and (start[:1].islower() or start[:1] in _ENDS))
        found.append(replace(row, content={**row.content, CUT: True}) if start and is_cut else row)
    return found


def _places(study: xr.Dataset) -> Iterator[QuestionRow]:
    texts = texts_of(study)
    if "region_start" in study:
        yield from _regions(study, list(texts.items()))
    elif texts:
        for document, text in texts.items():
            for position, found in enumerate(_WORD.finditer(text)):
                if position:
                    content = {"context": text[: found.start()].rstrip(" "), "target": found[0]}
                    yield QuestionRow(f"{document}:{position}", content, document, position)
    elif "target_word" in study:
        columns = (context_labels(study).tolist(), *(study[name].values.tolist() for name in _CLOZE))
        for item, context, target, document, position in zip(*columns, strict=True):
            yield QuestionRow(item, {"context": context, "target": target}, str(document), int(position))
    else:
        for row in item_places(study):
            token = row.content["target"]
            if token.startswith(" ") and token.strip():
                yield replace(row, content={**row.content, "target": token.strip()})


def _regions(study: xr.Dataset, texts: Sequence[tuple[str, str]]) -> Iterator[QuestionRow]:
    """Places of a study's regions: the first word of each; a region of signs alone is a gap whose word is not known."""
    columns = [study[f"region_{name}"].values.tolist() for name in ("document", "start", "stop")]
    for at, start, stop in zip(*columns, strict=True):
        document, text = texts[at]
        words, context = text[start:stop].split(), text[:start].rstrip(" ")
        target = words[0] if any(map(str.isalnum, text[start:stop])) else ""
        name = document if columns[0].count(at) == 1 else f"{document}:{len(context.split())}"
        yield QuestionRow(name, {"context": context, "target": target}, document, len(context.split()))


def item_places(study: xr.Dataset) -> Iterator[QuestionRow]:
    """Places of a comparison study's items, each with its target token."""
    n_items = study.sizes["item"]
    documents = study["document"].values.astype(str).tolist() if "document" in study else [""] * n_items
    positions = study["target_position"].values.tolist() if "target_position" in study else range(n_items)
    names, contexts = item_labels(study).astype(str).tolist(), study["context"].values.tolist()
    for item, context, token, document, position in zip(
        names, contexts, study["target_token"].values.tolist(), documents, positions, strict=True
    ):
        yield QuestionRow(item, {"context": context, "target": token}, document, int(position))


_CLOZE = ("context", "target_word", "text_id", "word_num")


def _shown(row: QuestionRow, settings: CollectSettings) -> QuestionRow:
    """Cut the context to the words that are shown."""
    words = list(_WORD.finditer(row.content["context"]))
    most = settings.max_context_words
    if settings.order == "cumulative" or most is None or len(words) <= most:
        return row
    context = row.content["context"][words[-most].start() :]
    return replace(row, content={**row.content, "context": context, CUT: True})
