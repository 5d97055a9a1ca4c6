"""Loaders of ranking studies, and the thesis's numbers from the stored rankings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.estimators.rankings.study import conditioned_on_other_text, score_study
from shannon_game.experiments.studies.rankings.rank_perplexity import rank_perplexity
from shannon_game.experiments.studies.rankings.table import ranking_table, write_ranking_table
from tests.experiments.studies.rankings import tiny_ranks
from tests.oracles.rank_perplexity import perplexity
from tests.oracles.rank_perplexity import scores as plain_scores

SCORES = ("linear", "reciprocal", "exponential_01", "exponential_03")


def scores_of(study: xr.Dataset) -> pd.DataFrame:
    scores = score_study(study)
    return pd.DataFrame(
        {
            **{name: study[name].to_numpy() for name in ("part", "text", "context_length", "window", "model")},
            "linear": scores.linear,
            "reciprocal": scores.reciprocal,
            "exponential_01": scores.exponential[0],
            "exponential_03": scores.exponential[1],
            "average": scores.average,
            "logprob": scores.logprob_nats,
        }
    )


# --------------------------------------------------------------------------------------------- published data


@pytest.fixture(scope="module")
def published_study(rank_perplexity_root: Path) -> xr.Dataset:
    return rank_perplexity(root=str(rank_perplexity_root))


def test_every_stored_row_score(published_study: xr.Dataset) -> None:
    """3,120 rows, from the rankings alone."""
    table = scores_of(published_study)
    assert len(table) == 3120
    for name in SCORES:
        np.testing.assert_allclose(table[name], published_study[f"stored_{name}"], rtol=0, atol=1e-12)
    stored = published_study["stored_perplexity"].to_numpy()
    keys = ["text", "context_length", "window", "model"]
    ours = np.exp(-table.groupby(keys)["logprob"].transform("mean"))
    np.testing.assert_allclose(ours, stored, rtol=1e-12)


def test_facts_of_the_data(published_study: xr.Dataset) -> None:
    main = published_study.isel(token=np.flatnonzero(published_study["part"] == "main"))
    assert main.sizes["token"] == 1920
    assert conditioned_on_other_text(main).sum() == 117
    stripped = [len({str(token).strip() for token in row}) for row in published_study["ranked_token"].to_numpy()]
    assert sum(length < 20 for length in stripped) == 1494
    lower = score_study(main).average.mean() - score_study(main, match="exact").average.mean()
    assert lower == pytest.approx(0.179, abs=5e-4)
    assert not any("archives that are not" in note["text"] for note in notes(published_study))


# ---------------------------------------------------------------------------------------------------- loader


@pytest.fixture(scope="module")
def tiny_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_ranks.write(tmp_path_factory.mktemp("ranks"))


def test_tiny_copy(tiny_root: Path) -> None:
    study = rank_perplexity(root=str(tiny_root))
    assert study.sizes["token"] == (2 * 4 + 2 * 2) * 4 * tiny_ranks.N_TOKENS
    table = scores_of(study)
    for row, (reference, ranked) in enumerate(
        zip(study["reference_token"].to_numpy(), study["ranked_token"].to_numpy(), strict=True)
    ):
        for name, value in plain_scores(reference, ranked).items():
            assert table[name][row] == pytest.approx(value, abs=1e-15)
    keys = ["text", "context_length", "window", "model"]
    for _, rows in table.groupby(keys):
        at = rows.index.to_numpy()
        logprobs = study["ranked_logprob"].to_numpy()[at]
        expected = perplexity(study["reference_token"].to_numpy()[at], study["ranked_token"].to_numpy()[at], logprobs)
        assert np.exp(-rows["logprob"].mean()) == pytest.approx(expected, rel=1e-12)
    assert "\n" in study["reference_token"].to_numpy()
    assert any("not the published ones" in note["text"] and note["count"] == 4 for note in notes(study))


# ----------------------------------------------------------------------------------------------------- table


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "table.parquet"])
def test_a_table_comes_back_as_it_was(tmp_path: Path, tiny_root: Path, name: str) -> None:
    study = rank_perplexity(root=str(tiny_root))
    ids = np.arange(study.sizes["token"] * 8).reshape(-1, 8)
    study = study.assign(
        reference_id=("token", ids[:, 0]),
        ranked_id=(("token", "rank"), ids),
        reference_logprob=("token", np.linspace(-9, -1, study.sizes["token"])),
        reference_rank=("token", np.arange(study.sizes["token"]) + 1.5),
    )
    study["ranked_token"][3, 5:] = None
    study["ranked_logprob"][3, 5:] = np.nan
    study["ranked_id"][3, 5:] = -1
    write_ranking_table(study, tmp_path / name)
    back = ranking_table(path=tmp_path / name)
    order = sorted(
        range(study.sizes["token"]),
        key=lambda row: tuple(
            study[key].to_numpy()[row] for key in ("model", "text", "context_length", "window", "position")
        ),
    )
    for variable in back.data_vars:
        want = study[variable].to_numpy()[order]
        got = back[variable].to_numpy()
        if variable == "ranked_token":
            want, got = (np.where([[isinstance(x, str) for x in row] for row in v], v, "") for v in (want, got))
        np.testing.assert_array_equal(got, want, err_msg=str(variable))
    assert set(back.data_vars) >= {"generated_token", "reference_id", "ranked_id", "reference_logprob"}


ROWS = {
    "model": ["m"] * 3,
    "text": ["t"] * 3,
    "context_length": [8] * 3,
    "window": ["1"] * 3,
    "position": [0, 0, 1],
    "reference_token": [" NA", " NA", "null"],
    "rank": [1, 2, 1],
    "token": ["NA", "", "\r\n"],
    "logprob_nats": [-0.5, -1.5, -0.1],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": [1, 3, 1]}, "rank: is '3' in .* where 2 should follow.*position 0"),
        (
            {"reference_token": [" NA", "other", "null"]},
            "reference_token: is 'other' in .*, but ' NA' in another row of the same reference token",
        ),
        (
            {"logprob_nats": [-0.1, -0.2, -0.1]},
            r"logprob_nats: the probabilities add up to 1\.72 for one reference token",
        ),
        (
            {"token_id": [1, 1, 3], "reference_id": [1, 1, 2]},
            "token_id: is '1' in line 3, again for one reference token",
        ),
    ],
)
def test_malformed_tables(tmp_path: Path, change: dict, message: str) -> None:
    columns = {name: values for name, values in {**ROWS, **change}.items() if values is not None}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=message):
        ranking_table(path=str(tmp_path / "t.csv"))
