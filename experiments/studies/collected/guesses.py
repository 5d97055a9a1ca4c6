"""A guess study of a collection: of the top-1 game, or of guessing until right, where every guess is a response."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import xarray as xr

from shannon_game.estimators.layout import add_note, notes
from shannon_game.experiments.studies.collected.answers import Collected, response_variables
from shannon_game.experiments.studies.guesses.table import REPEATED, guess_study

__all__ = ["collected_guesses"]


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
