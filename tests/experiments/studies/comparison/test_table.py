"""``study=comparison_table``: a study written as two tables comes back, and what users get wrong in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.comparison import SimulationSettings, simulate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.studies.comparison.table import comparison_study, comparison_table
from shannon_game.experiments.studies.comparison.table_write import write_comparison_tables
from shannon_game.models.comparison.participant_data import participant_data

SETTINGS = SimulationSettings(n_items=6, n_reference_items=9, n_participants=4, n_candidates=5, vocab_size=80)


def tables(study: xr.Dataset) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write a study the way the config file says, loop by loop."""
    label = {item: f"q{i}" for i, item in enumerate(study["item"].to_numpy().tolist())}
    rows = []
    for i, item in enumerate(label):
        for draw in range(study.sizes["candidate"]):
            row = {"item": label[item], "draw": draw, "context": study["context"].item(i)}
            row |= {"target": study["target_token"].item(i), "candidate": study["candidate_token"][i, draw].item()}
            for model in study["model"].to_numpy().tolist():
                its = study.sel(model=model)
                row[f"target_logprob_{model}"] = its["target_logprob"].item(i)
                row[f"candidate_logprob_{model}"] = its["candidate_logprob"][i, draw].item()
            rows.append(row)
    answers = study[["participant", "response_item", "response_candidate", "report"]].to_pandas()
    answers["response_item"] = answers["response_item"].map(label)
    return pd.DataFrame(rows), answers.rename(columns={"response_item": "item", "response_candidate": "draw"})


@pytest.fixture(scope="module")
def study() -> xr.Dataset:
    return simulate_comparison_study(SETTINGS)


def load(folder: Path, asked: pd.DataFrame, said: pd.DataFrame) -> xr.Dataset:
    asked.to_csv(folder / "pairs.csv", index=False)
    said.to_csv(folder / "answers.csv", index=False)
    return comparison_table(pairs=folder / "pairs.csv", answers=folder / "answers.csv", generator="lm-medium")


def test_tables_that_were_written_are_the_study(study: xr.Dataset, tmp_path: Path) -> None:
    strange = study.copy(deep=True)
    texts = ["", "NA", ' "quoted", with\r\nlines\r and tabs\t', "  spaces  ", "\ufffd", "1.0", "nan", "ünï\u2028cödé"]
    strange["context"].to_numpy()[:8] = texts
    strange["candidate_token"].to_numpy()[0, :5] = ["\n", " ", "null", ",", "\\n"]
    pairs, answers = tmp_path / "pairs.csv", tmp_path / "answers.csv"
    write_comparison_tables(strange, pairs, answers)
    found = comparison_table(pairs=pairs, answers=answers, generator="lm-medium")
    for name in ("context", "target_token", "candidate_token", "target_logprob", "candidate_logprob", "participant"):
        assert found[name].to_numpy().tolist() == strange[name].to_numpy().tolist(), name
    for name in ("response_item", "response_candidate", "report"):
        assert found[name].to_numpy().tolist() == study[name].to_numpy().tolist(), name
    strange["context"].to_numpy()[0] = "a\0b"
    with pytest.raises(InputError, match=r"context: is 'a\\x00b', which a text file cannot hold"):
        write_comparison_tables(strange, pairs)
    with pytest.raises(InputError, match=r"should be a name ending in \.csv"):
        write_comparison_tables(study, tmp_path / "pairs.parquet")


def certain(pairs: pd.DataFrame) -> pd.DataFrame:
    """Two tokens have the whole probability each."""
    return pairs.assign(**dict.fromkeys(("target_logprob_lm-weak", "candidate_logprob_lm-weak"), 0.0))


def changed(table: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    new = table.astype({column: object})
    new.loc[row, column] = value
    return new


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, a: (p.iloc[1:], a), r"pairs\.csv, item: 'q1' has 5 candidates, 'q0' has 4; every item"),
        (lambda p, a: (changed(p, "draw", 1, 0), a), r"draw: is '0' in line 3, which item 'q0' has before"),
        (lambda p, a: (changed(p, "target", 1, "x"), a), r"target: is 'x' in line 3, but '.*' in another row"),
        (lambda p, a: (p.drop(columns="target_logprob_lm-weak"), a), r"b_lm-weak: is missing; did you mean .*; model"),
        (lambda p, a: (p, changed(a, "report", 0, 1)), r"report: is '1' in line 2, should be a prob"),
        (lambda p, a: (certain(p), a), "log-probabilities of lm-weak: item q.: .* have the probability 2 together"),
        (lambda p, a: (p, changed(a, "draw", 0, 77)), r"draw: is '77' in line 2, which item '\w+' does not have in"),
    ],
)  # fmt: skip
def test_bad_tables_are_named(study: xr.Dataset, tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(tmp_path, *change(*tables(study)))


def test_reports_of_nothing_and_everything_stand_for_what_is_said(study: xr.Dataset) -> None:
    asked, said = tables(study)
    slider = said.assign(report=(said["report"] * 100).clip(2, 98))
    slider.loc[[0, 1, 2], "report"] = [0, 100, 0.5]
    found = comparison_study(slider, asked, generator="lm-medium", percent=True, extremes=[1, 99])
    np.testing.assert_allclose(found["report"].to_numpy()[:3], [0.01, 0.99, 0.01])
    np.testing.assert_allclose(found["report"].to_numpy()[3:], slider["report"].to_numpy()[3:] / 100)
    assert {entry["text"]: entry["count"] for entry in notes(found)}[
        "reports moved to 1 and 99, which stand for 0 and 100 (extremes)"
    ] == 3
    plain = comparison_study(changed(said, "report", 0, 1.0), asked, generator="lm-medium", extremes=[0.01, 0.99])
    assert plain["report"].item(0) == 0.99
    with pytest.raises(InputError, match=r"report: is '101' in row 1, should be a percentage from 0 to 100"):
        comparison_study(changed(slider, "report", 0, 101), asked, generator="g", percent=True, extremes=[1, 99])
    with pytest.raises(InputError, match=r"extremes: is .* such as"):
        comparison_study(slider, asked, generator="lm-medium", percent=True, extremes=[0.01, 0.99])


@pytest.fixture(scope="module")
def whole_tables() -> tuple[xr.Dataset, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """A study with the generator's whole distribution, and its three tables."""
    study = simulate_comparison_study(replace(SETTINGS, store_reference=True))
    asked, said = tables(study)
    frame = study["reference_logprob"].to_series().rename("logprob").reset_index()
    return study, asked, said, frame.assign(item="q" + frame["item"].astype(str))


def test_whole_distributions_of_a_third_table(whole_tables: Any, tmp_path: Path) -> None:
    study, asked, said, whole = whole_tables
    found = comparison_study(said, asked, generator="lm-medium", distributions=whole.sample(frac=1, random_state=1))
    expected = study["reference_logprob"].sel(token=found["token"])
    np.testing.assert_array_equal(found["reference_logprob"], expected)
    data, own = participant_data(found), participant_data(study)
    assert data.whole
    np.testing.assert_allclose(data.entropy_nats, own.entropy_nats)
    # items that nobody answered may have no rows
    few = whole[whole["item"].isin([f"q{item}" for item in set(study["response_item"].to_numpy())])]
    assert comparison_study(said, asked, generator="lm-medium", distributions=few)["reference_logprob"].shape[0] == 9
    paths = {name: tmp_path / f"{name}.csv" for name in ("pairs", "answers", "distributions")}
    write_comparison_tables(study, **paths)
    again = comparison_table(**paths, generator="lm-medium")
    np.testing.assert_allclose(
        again["reference_logprob"].sel(token=study["token"]), study["reference_logprob"], atol=1e-6
    )


def test_distributions_without_pairs_are_refused(whole_tables: Any) -> None:
    _, _, said, whole = whole_tables
    with pytest.raises(InputError, match="pairs"):
        comparison_study(said.assign(outcome=1), distributions=whole)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.drop(columns="logprob"), "logprob: is missing"),
        (lambda w: w.iloc[:-5], r"of item 'q8' gives probabilities that sum to 0\.\d+ .*every token"),
        (lambda w: w[w["item"] != "q0"], "of item 'q0' gives probabilities that sum to 0 "),
        (lambda w: w.assign(logprob=w["logprob"] / np.log(2)), "sum to .* with ln p in nats"),
        (lambda w: w.assign(logprob=np.exp(w["logprob"])), "logprob: is '0.*, should be ln p, at most 0"),
        (lambda w: w.assign(item="x" + w["item"]), "item: is 'xq0' in row 1 .* should be an item of the pairs"),
        (
            lambda w: w.assign(token=w["token"].to_numpy()[::-1]),
            "logprob: of token .* of item 'q0' is .*as in the pairs",
        ),
        (lambda w: pd.concat([w, w]), "every row is there more than once"),
    ],
)
def test_malformed_distributions(whole_tables: Any, change: Any, message: str) -> None:
    _, asked, said, whole = whole_tables
    with pytest.raises(InputError, match=message) as raised:
        comparison_study(said, asked, generator="lm-medium", distributions=change(whole))
    assert "\n" not in str(raised.value)
