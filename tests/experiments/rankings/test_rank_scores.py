"""Scores of ``+exp=ranks`` compared: on a study counted by hand, and on the public files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import rank_perplexity, ranks
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.rankings import paired_separation
from shannon_game.estimators.rankings.examples import ranking_study
from shannon_game.experiments.rankings.ranks.scores import easy_tokens, fitted_weights


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
    found = easy_tokens(tokens, ["top_1"])
    # one length: its rows are those of all lengths
    of_length = found[found["context_length"].notna()].drop(columns="context_length").reset_index(drop=True)
    found = found[found["context_length"].isna()]
    pd.testing.assert_frame_equal(of_length, found.drop(columns="context_length").reset_index(drop=True))
    found = found.set_index(["factor", "level"])
    assert found["n_tokens"].to_dict() == {
        ("piece", "whole"): 2,
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


def test_pieces_of_words_are_told_by_their_neighbours() -> None:
    texts = [" the", " eleph", "ant", "s", ".", " Mc", "Donald", " end", "-", "ed", ' "', "Yes", '"', " cut"]
    tokens = pd.DataFrame({"model": "m", "text": "t", "context_length": 8, "window": "w", "reference_token": texts})
    found = easy_tokens(tokens.assign(top_1=1.0), ["top_1"]).query("factor == 'piece' and context_length.isna()")
    # the last token's piece is not known, nor does a hyphen join
    assert found.set_index("level")["n_tokens"].to_dict() == {"whole": 4, "first": 2, "later": 3}


def test_weights_follow_the_log_probability() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((60, 4))
    columns = ["linear", "reciprocal", "exponential_01", "exponential_03"]
    windows = pd.DataFrame(scores, columns=columns).assign(part="main", text="t", context_length=8)
    windows = windows.assign(window=np.arange(60).astype(str), perplexity=np.exp(3 - 2 * scores[:, 1] - scores[:, 3]))
    found = fitted_weights(windows)
    # without noise the fit is exact
    np.testing.assert_allclose(found["weight"], [0, 2 / 3, 0, 1 / 3], atol=1e-9)
    assert found["r_fitted"].iloc[0] == pytest.approx(1)
    assert found["r_equal"].iloc[0] < 1
    # too few windows to fit: nothing is made up
    assert fitted_weights(windows.head(1)).drop(columns="score").isna().all(axis=None)


def test_the_average_has_the_weights_that_are_given() -> None:
    study = ranking_study()
    curves = ranks(study, posterior=False, weights={"linear": 1, "top_1": 3}).tables["score_curves"]
    np.testing.assert_allclose(curves["average"], (curves["linear"] + 3 * curves["top_1"]) / 4)
    plain = ranks(study, posterior=False).tables["score_curves"]
    single = ["linear", "reciprocal", "exponential_01", "exponential_03"]
    np.testing.assert_allclose(plain["average"], plain[single].mean(axis=1))
    with pytest.raises(InputError, match=r"weights: names 'rank'; scores are linear, reciprocal"):
        ranks(study, posterior=False, weights={"rank": 1})
    with pytest.raises(InputError, match="weights: are all 0"):
        ranks(study, posterior=False, weights={"linear": 0})


def test_longer_tokens_are_harder_in_the_public_files(rank_perplexity_root: Path) -> None:
    found = ranks(rank_perplexity(root=rank_perplexity_root), posterior=False)
    shown = found.tables["easy_tokens"].query("factor == 'characters' and score == 'top_1' and context_length.isna()")
    mean = shown.pivot_table(index="level", columns="model", values="mean")
    assert (mean.loc["9+"] < mean.loc["3"]).all()
    # a first guess separates every pair of the four models worst
    pairs = found.tables["separation"]
    assert set(pairs[pairs["place"] == pairs["place"].max()]["score"]) == {"top_1"}
