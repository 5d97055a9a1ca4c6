"""The Provo Corpus's own table of predictability norms: one row per context and answer."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.experiments.studies.cloze.rows import cloze_dataset
from shannon_game.experiments.studies.parsing import Note, add_notes, objects
from shannon_game.experiments.studies.plain_table import Table, finished, specification
from shannon_game.experiments.studies.table_file import TableFile, text_columns

NORMS_FILE = "Provo_Corpus-Predictability_Norms.csv"
_OFF_TOTAL = "contexts whose counts do not sum to Total_Response_Count; the counts are used"
_SPEC = specification(
    id="Text_ID",
    text_or_empty="Text Word Response",
    whole="Word_Number Response_Count",
    whole_or_empty="Total_Response_Count",
)


def parse_norms(content: bytes, where: str) -> xr.Dataset:
    """Read ``Provo_Corpus-Predictability_Norms.csv`` (OSF ``sjefs``).

    Needs the columns Text_ID, Text (the whole passage), Word_Number (of the word asked for), Word, Response and
    Response_Count; Total_Response_Count, where it is there, has to be the sum of the counts or the difference is
    noted. The context is the first Word_Number - 1 space-separated tokens of the passage.
    """
    table = _table(content, where)
    of = table.groups("Text_ID", "Word_Number", what="context")
    number = table["Word_Number"][of.first].astype(np.int32)
    tokens = [re.split(" +", text.strip()) for text in table["Text"][of.first].tolist()]
    length = np.array(list(map(len, tokens)))[of.of_row]
    beyond = (table["Word_Number"] < 2) | (table["Word_Number"] > length + 1)
    table.wrong(beyond, "Word_Number", "the number of a word of the passage after its first")
    words = [word.strip() for word in table["Word"][of.first].tolist()]
    printed = [own[at - 1] if at <= len(own) else "" for own, at in zip(tokens, number.tolist(), strict=True)]
    same = [_letters(word) == _letters(own) for word, own in zip(words, printed, strict=True)]
    said, texts = pd.factorize(table["Response"])
    count = table["Response_Count"].astype(np.int32)
    off = 0
    if "Total_Response_Count" in table:
        total = pd.Series(table["Total_Response_Count"]).groupby(of.of_row).last().dropna()
        off = int((total != np.bincount(of.of_row, weights=count)[total.index]).sum())
    blank = sum(not text.strip() for text in table["Response"].tolist())
    target = "contexts where Word is not the token of Text at Word_Number; Word is taken as the target"
    counted = (
        Note("blank answers, kept as blank strings that no analysis counts as a word", blank),
        Note(_OFF_TOTAL, off, "warning"),
        Note(target, same.count(False), "warning"),
    )
    text_id = table["Text_ID"][of.first]
    notes = [*table.notes, Note(f"contexts, from {len(set(text_id.tolist()))} passages", len(of))]
    arrays = {
        "item": np.arange(len(of)),
        "text_id": text_id,
        "word_num": number,
        "context": objects([" ".join(own[: at - 1]) for own, at in zip(tokens, number.tolist(), strict=True)]),
        "target_word": objects([own if right else word for word, own, right in zip(words, printed, same, strict=True)]),
        "response_item": of.of_row.astype(np.int32),
        "response_word": said.astype(np.int32),
        "response_count": count,
        "word_text": objects(list(texts)),
    }
    study = cloze_dataset(arrays, {"published": "{}"})
    add_notes(study, [*notes, *(note for note in counted if note.count)])
    return study


def _table(content: bytes, where: str) -> Table:
    notes: list[Note] = []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        notes.append(Note("the table is not UTF-8; read as Windows-1252", 1))
    found = text_columns(text, Path(where), TableFile(separator="comma"), (), notes)
    cells = pd.DataFrame({name: objects(column) for name, column in found.columns.items()}, dtype=object)
    table = finished(Table(cells, where, "", found.lines, "line", notes=found.notes), of="answer", once=False)
    return table.named({name: name for name in _SPEC}, _SPEC, optional=["Total_Response_Count"])


def _letters(word: str) -> str:
    return re.sub(r"\W", "", word).lower()
