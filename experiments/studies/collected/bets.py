"""A bet study of a collection: words that were named, and the chips on them and on anything else."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from shannon_game.experiments.collect.games.bets import CHIPS, N_WORDS
from shannon_game.experiments.studies.bets.table import bet_study
from shannon_game.experiments.studies.collected.answers import Collected, response_variables

__all__ = ["collected_bets"]


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
