"""Cloze, guess and bet studies of a collection: one response an answer, or a guess where several are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.layout import add_note, notes
from shannon_game.estimators.messages import Set
from shannon_game.experiments.collect.games.bets import CHIPS, N_WORDS
from shannon_game.experiments.studies.bets.table import bet_study
from shannon_game.experiments.studies.cloze.table import cloze_study
from shannon_game.experiments.studies.collected.answers import Collected, response_variables
from shannon_game.experiments.studies.collected.settings import CollectedSettings
from shannon_game.experiments.studies.guesses.table import REPEATED, guess_study
from shannon_game.experiments.studies.table_file import read_table

_MODEL_COLUMNS = ("item", "model", "word", "count")


def collected_words(found: Collected, settings: CollectedSettings) -> xr.Dataset:
    """Make a cloze study of what a database holds."""
    # contexts come in the study's order, whoever was asked first about what
    place = {question["item"]: at for at, question in enumerate(found.questions)}
    answers = found.answers.sort_values("item", key=lambda items: items.map(place), kind="stable", ignore_index=True)
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
    table = read_table(Path(str(settings.model_words)), of="word", wanted=_MODEL_COLUMNS)
    hint = f"{Set('study.model_words')} is a table with {', '.join(_MODEL_COLUMNS)}"
    table.check_columns({name: name for name in _MODEL_COLUMNS}, hint)
    given = pd.DataFrame({name: table.ids(name) for name in ("item", "model")})
    given = given.assign(word=table.texts("word"), count=table.numbers("count", kind="whole").astype(int))
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


def collected_guesses(found: Collected) -> xr.Dataset:
    """Make a guess study of what a database holds."""
    answers = found.answers
    document = answers["document"].where(answers["document"] != "", answers["item"])
    right = answers["right"] if "right" in answers else answers["correct"]
    rows = pd.DataFrame(
        {
            "participant": answers["participant"],
            "document": document,
            "position": answers["position"].astype(int),
            "target": answers["target"],
            "guess": answers["guess"],
            "correct": right.astype(bool).map({True: "1", False: "0"}),
            "order": np.arange(len(answers)),
        }
    )
    study = guess_study(rows, columns={"correct": "correct", "order": "order"}, name=found.name)
    if "right" in answers:
        # a table that holds several guesses at a place may be wrong; this game asks for them
        kept = [note for note in notes(study) if note["text"] != REPEATED]
        study.attrs["notes"] = json.dumps(kept)
        n_further = len(answers) - len(answers.drop_duplicates(["session", "order"]))
        add_note(study, "further guesses at a place, after wrong ones, as the game asks for", count=n_further)
    return study.assign(response_variables(answers))


def collected_bets(found: Collected) -> xr.Dataset:
    """Make a bet study of what a database holds."""
    answers = found.answers
    named = answers["word"].notna()
    rows = pd.DataFrame(
        {
            "participant": answers["participant"],
            "item": answers["item"],
            "context": answers["context"],
            "target": answers["target"],
            "word": answers["word"]
            .where(~answers["right"].astype(bool), answers["target"])
            .where(named, "")
            .str.strip(),
            "stake": answers["chips"].astype("Int64").astype("string").fillna("").astype(object),
            "other": answers["other_chips"].astype(int),
        }
    )
    columns = {"other": "other", "context": "context"}
    study = bet_study(rows, columns=columns, total=float(CHIPS), name=found.name)
    # the points spread what lies on anything else over so many words
    study.attrs.setdefault("vocab_size", N_WORDS)
    return study.assign(response_variables(answers.drop_duplicates(["participant", "item"])))
