"""Scores of ``+exp=ranks`` compared: on a study counted by hand, and on the public files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shannon_game import ranks
from shannon_game.estimators.rankings import paired_separation
from shannon_game.estimators.rankings.examples import ranking_study
from shannon_game.experiments.rankings.ranks.scores import easy_tokens


def test_pairs_are_compared_on_their_windows() -> None:
    study = ranking_study()
    table = ranks(study, posterior=False).tables["separation"]
    # a first guess is right or not: counted by hand
    tokens = pd.DataFrame({name: study[name].to_numpy() for name in ("model", "text", "context_length")})
    tokens["hit"] = study["reference_rank"].to_numpy() == 1
    means = tokens.pivot_table(index=["text", "context_length"], columns="model", values="hit")
    expected = paired_separation(means["large"], means["small"])
    row = table[table["score"] == "top_1"].iloc[0]
    assert (row["first"], row["second"], row["n_windows"]) == ("large", "small", 6)
    for name in ("difference", "se", "effect", "windows_needed"):
        assert row[name] == pytest.approx(getattr(expected, name))
    assert sorted(table["place"]) == list(range(1, len(table) + 1))
    effects = table.sort_values("place")["effect"].abs().to_numpy()
    assert (np.diff(effects) <= 0).all()


def test_tokens_stand_in_the_class_of_their_length() -> None:
    tokens = pd.DataFrame(
        {
            "model": "m",
            "text": "t",
            "context_length": 8,
            "window": ["a", "a", "b", "b"],
            "reference_token": [" the", "\n", " elephants", ","],
            "top_1": [1.0, 0.0, 0.0, 1.0],
        }
    )
    found = easy_tokens(tokens, ["top_1"]).set_index(["factor", "level"])
    assert found["n_tokens"].to_dict() == {
        ("characters", "1"): 2,
        ("characters", "3"): 1,
        ("characters", "9+"): 1,
        ("class", "word"): 2,
        ("class", "punctuation"): 1,
        ("class", "line break"): 1,
    }
    ones = found.loc[("characters", "1")]
    # window a has 0, window b has 1: deviations -.5 and .5, two windows, two tokens
    assert ones["mean"] == 0.5
    assert ones["se"] == pytest.approx(np.sqrt(2 / 1 * 0.5) / 2)
    assert np.isnan(found.loc[("characters", "3"), "se"])
