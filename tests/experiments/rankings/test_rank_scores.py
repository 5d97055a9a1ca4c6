"""``+exp=rank_scores`` on a tiny copy of the archives, on a study counted by hand, and on the public files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shannon_game import rank_perplexity, rank_scores
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.rankings import paired_separation
from shannon_game.estimators.rankings.examples import ranking_study
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.rankings.rank_scores.experiment import EASY_COLUMNS, SEPARATION_COLUMNS, easy_tokens
from tests.experiments.command import config, prepared
from tests.experiments.studies.rankings import tiny_ranks


def test_what_a_run_writes(tmp_path: Path) -> None:
    root = tiny_ranks.write(tmp_path / "ranks")
    arguments = ("+exp=rank_scores", f"study.root={root}", "experiment.decays=[0.1,0.5]", "output.dpi=40")
    job = prepared(*arguments)
    result = job.run()
    assert tuple(result.table.columns) == SEPARATION_COLUMNS
    n_scores = 6
    assert len(result.table) == n_scores * len(tiny_ranks.MODELS) * (len(tiny_ranks.MODELS) - 1) / 2
    assert "exponential_05" in set(result.table["score"])
    write_outputs(tmp_path, config(*arguments), job.study, result)
    easy = pd.read_csv(tmp_path / "easy_tokens.csv")
    assert tuple(easy.columns) == EASY_COLUMNS
    whole = easy[easy["score"] == "top_1"].groupby(["factor", "model"])["n_tokens"].sum()
    assert set(whole) == {job.study.sizes["token"] // len(tiny_ranks.MODELS)}
    for name in ("score_curves", "separation", "easy_tokens"):
        assert (tmp_path / "figures" / f"{name}.png").is_file()


def test_pairs_are_compared_on_their_windows() -> None:
    study = ranking_study()
    table = rank_scores(study).table
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


def test_the_average_has_the_weights_that_are_given() -> None:
    study = ranking_study()
    curves = rank_scores(study, weights={"linear": 1, "top_1": 3}).tables["score_curves"]
    np.testing.assert_allclose(curves["average"], (curves["linear"] + 3 * curves["top_1"]) / 4)
    plain = rank_scores(study).tables["score_curves"]
    single = ["linear", "reciprocal", "exponential_01", "exponential_03"]
    np.testing.assert_allclose(plain["average"], plain[single].mean(axis=1))
    with pytest.raises(InputError, match=r"weights: names 'rank'; scores are linear, reciprocal"):
        rank_scores(study, weights={"rank": 1})
    with pytest.raises(InputError, match="weights: are all 0"):
        rank_scores(study, weights={"linear": 0})


def test_one_model_is_compared_with_nothing() -> None:
    study = ranking_study()
    result = rank_scores(study.isel(token=(study["model"] == "large").to_numpy()))
    assert result.table.empty
    assert "nothing to separate" in result.warnings[0]


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


def test_longer_tokens_are_harder_in_the_public_files(rank_perplexity_root: Path) -> None:
    found = rank_scores(rank_perplexity(root=rank_perplexity_root))
    shown = found.tables["easy_tokens"].query("factor == 'characters' and score == 'top_1'")
    mean = shown.pivot_table(index="level", columns="model", values="mean")
    assert (mean.loc["9+"] < mean.loc["3"]).all()
    # a first guess separates every pair of the four models worst
    last = found.table.groupby(["first", "second"])["place"].max().iloc[0]
    assert set(found.table[found.table["place"] == last]["score"]) == {"top_1"}
