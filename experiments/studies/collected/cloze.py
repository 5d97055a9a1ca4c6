"""A cloze study of a collection: what was typed in each context, as it was typed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import xarray as xr

from shannon_game.experiments.studies.cloze.table import cloze_study
from shannon_game.experiments.studies.collected.answers import Collected, response_variables
from shannon_game.experiments.studies.collected.settings import CollectedSettings
from shannon_game.experiments.studies.table_file import read_table

__all__ = ["collected_words"]

_MODEL_COLUMNS = ("item", "model", "word", "count")


def collected_words(found: Collected, settings: CollectedSettings) -> xr.Dataset:
    """Make a cloze study of what a database holds."""
    answers = found.answers
    rows = pd.DataFrame(
        {
            "context_id": answers["item"],
            "context": answers["context"],
            "target": answers["target"],
            "participant": answers["participant"],
            "response": answers["word"],
        }
    )
    if (answers["document"] != "").all():
        rows = rows.assign(text_id=answers["document"], word_num=answers["position"].astype(int))
    if settings.model_words is not None:
        rows = pd.concat([rows.assign(model="", count=1), _model_rows(settings, rows)], ignore_index=True)
    columns = {name: name for name in rows.columns}
    study = cloze_study(rows, name=found.name, columns=columns, word_rules=settings.word_rules)
    return study.assign(response_variables(answers))


def _model_rows(settings: CollectedSettings, rows: pd.DataFrame) -> pd.DataFrame:
    """Words of language models on the contexts that people answered."""
    table = read_table(Path(str(settings.model_words)), of="word", wanted=_MODEL_COLUMNS)
    for name in _MODEL_COLUMNS:
        table.check_column(name, name, hint=f"study.model_words is a table with {', '.join(_MODEL_COLUMNS)}")
    given = pd.DataFrame({name: table.ids(name) for name in ("item", "model")})
    given = given.assign(word=table.texts("word"), count=table.whole("count").astype(int))
    of_item = rows.drop(columns=["participant", "response"]).drop_duplicates("context_id")
    merged = given.merge(of_item, left_on="item", right_on="context_id")
    return pd.DataFrame(
        {
            **{name: merged[name] for name in of_item.columns},
            "participant": "",
            "response": merged["word"],
            "model": merged["model"],
            "count": merged["count"],
        }
    )
