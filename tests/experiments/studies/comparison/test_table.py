"""``study=comparison_table``: a study written as two tables comes back, and what users get wrong in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import perplexity
from shannon_game.estimators.comparison import SimulationSettings, estimate_perplexity, simulate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.harness.job import load_study
from shannon_game.experiments.studies.comparison.table import comparison_study, comparison_table
from shannon_game.experiments.studies.comparison.table_write import write_comparison_tables
from tests.experiments.command import config

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


def load(
    folder: Path, asked: pd.DataFrame, said: pd.DataFrame | None, ending: str = "csv", **settings: Any
) -> xr.Dataset:
    separator = "\t" if ending == "tsv" else ","
    given: dict[str, Any] = {"pairs": str(folder / f"pairs.{ending}")}
    asked.to_csv(given["pairs"], index=False, sep=separator)
    if said is not None:
        given["answers"] = str(folder / f"answers.{ending}")
        said.to_csv(given["answers"], index=False, sep=separator)
    return comparison_table(**{"generator": "lm-medium", **given, **settings})


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


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_study_comes_back(study: xr.Dataset, tmp_path: Path, ending: str) -> None:
    pairs, answers = tables(study)
    # rows in any order
    found = load(tmp_path, pairs.sample(frac=1, random_state=1).sort_values("item"), answers, ending)
    draw = {
        q: list(rows["draw"]) for q, rows in pairs.sample(frac=1, random_state=1).sort_values("item").groupby("item")
    }
    order = np.array([draw[name] for name in found["item_id"].to_numpy().tolist()])
    for name in ("context", "target_token", "in_reference"):
        assert found[name].to_numpy().tolist() == study[name].to_numpy().tolist(), name
    for name in ("target_logprob", "candidate_logprob"):
        theirs = study[name].to_numpy()
        if name == "candidate_logprob":
            theirs = np.stack([np.take_along_axis(its, order, axis=1) for its in theirs])
        np.testing.assert_array_equal(found[name].to_numpy(), theirs)
    assert found.sizes["response"] == study.sizes["response"]
    for player in ("human", "lm-weak"):
        ours, theirs = (estimate_perplexity(its, player).perplexity for its in (found, study))
        assert ours == pytest.approx(theirs, rel=1e-12)
    said = {entry["text"]: entry["count"] for entry in notes(found)}
    assert said["items that nobody answered: reference items only"] == 3
    assert int(found["automatic"].sum()) == int(study["automatic"].sum())


def test_other_names_percentages_and_strange_strings(study: xr.Dataset, tmp_path: Path) -> None:
    pairs, answers = tables(study)
    pairs["context"] = pairs["context"].map({text: text for text in pairs["context"]}).where(pairs["item"] != "q0", "")
    pairs["candidate"] = pairs["candidate"].where(pairs.index != 0, "NA")
    answers["report"] *= 100
    columns = {"item": "question", "report": "percent", "participant": "worker"}
    found = load(
        tmp_path,
        # a column of the table that has the name of another field
        pairs.rename(columns=columns).assign(item="x"),
        answers.rename(columns=columns),
        percent=True,
        columns=columns,
    )
    assert found["candidate_token"].to_numpy()[0, 0] == "NA"
    assert found["context"].to_numpy()[0] == ""
    np.testing.assert_allclose(found["report"].to_numpy(), study["report"].to_numpy(), rtol=1e-12)


def test_models_alone(study: xr.Dataset, tmp_path: Path) -> None:
    found = load(tmp_path, tables(study)[0], None)
    assert found.sizes["response"] == 0
    assert set(found["item_set"].to_numpy().tolist()) == {"answered"}
    assert estimate_perplexity(found, "lm-weak").gap.n_responses == 9 * 5


def test_it_is_a_study_of_the_command(study: xr.Dataset, tmp_path: Path) -> None:
    load(tmp_path, *tables(study))
    cfg = config(
        *("+exp=perplexity", "study=comparison_table", f"study.pairs={tmp_path / 'pairs.csv'}"),
        *(f"study.answers={tmp_path / 'answers.csv'}", "study.generator=lm-medium"),
    )
    assert load_study(cfg.study, kind="comparison").attrs["name"] == "pairs"


def test_data_frames_are_the_study_of_their_files(study: xr.Dataset, tmp_path: Path) -> None:
    asked, said = tables(study)
    of_files = load(tmp_path, asked, said)
    frames = comparison_study(said, asked, generator="lm-medium", name="pairs")
    xr.testing.assert_identical(frames.drop_attrs(), of_files.drop_attrs())
    assert notes(frames) == notes(of_files)
    ours, theirs = (perplexity(its, rounding="none").table for its in (frames, study))
    np.testing.assert_allclose(ours["perplexity"], theirs["perplexity"], rtol=1e-12)


def test_names_of_any_type_survive(study: xr.Dataset) -> None:
    asked, said = tables(study)
    number = {name: at + 100 for at, name in enumerate(dict.fromkeys(asked["item"]))}
    # a column with a gap makes pandas write whole numbers as 3.0
    asked["question"] = asked.pop("item").map(number).astype(float)
    said["question"] = said.pop("item").map(number)
    said["worker"] = pd.Categorical(said.pop("participant"))
    columns = {"item": "question", "participant": "worker"}
    found = comparison_study(said, asked, generator="lm-medium", columns=columns)
    assert found["item_id"].to_numpy().tolist() == [str(value) for value in number.values()]
    assert found["participant"].to_numpy().tolist() == study["participant"].to_numpy().tolist()
    alone = comparison_study(None, asked, generator="lm-medium", columns=columns)
    assert alone.sizes["response"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda p, a: ([1], a),
            r"candidates: is a list, should be a pandas\.DataFrame with one row a candidate and",
        ),
        (lambda p, a: (p, {}), r"answers: is a dict, should be a pandas\.DataFrame"),
        (
            lambda p, a: (p, a.rename(columns={"report": "reports"})),
            r"answers, report: is missing; did you mean 'reports'\? the table has participant, item.*"
            r"columns=\{'report': NAME\} says which",
        ),
        (lambda p, a: (p, changed(a, "report", 1, np.nan)), r"answers, report: is empty in row 2 \(1 such rows\)"),
        (lambda p, a: (p, changed(a, "participant", 0, None)), r"answers, participant: is empty in row 1"),
        (lambda p, a: (changed(p, "target_logprob_lm-weak", 1, np.inf), a), r"is 'inf' in row 2, should be a number"),
        (lambda p, a: (pd.concat([p, p[["draw"]]], axis=1), a), r"candidates, draw: is the name of more than one"),
        (lambda p, a: (p, a.iloc[:0]), r"answers: holds no answer"),
        (lambda p, a: (changed(p, "context", 2, "a \ud83d"), a), r"context: is 'a \\ud83d' in row 3, half of a surr"),
    ],
)
def test_bad_data_frames_are_named(study: xr.Dataset, change: Any, message: str) -> None:
    asked, said = change(*tables(study))
    with pytest.raises(InputError, match=message):
        comparison_study(said, asked, generator="lm-medium")


def changed(table: pd.DataFrame, column: str, row: int, value: Any) -> pd.DataFrame:
    new = table.astype({column: object})
    new.loc[row, column] = value
    return new


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, a: (p.drop(columns="draw"), a), r"pairs\.csv, draw: is missing; the table has item, context"),
        (lambda p, a: (p, a.drop(columns="report")), r"answers\.csv, report: is missing; .*columns\.report=NAME"),
        (lambda p, a: (p.iloc[1:], a), r"pairs\.csv, item: 'q1' has 5 candidates, 'q0' has 4; every item"),
        (lambda p, a: (changed(p, "draw", 1, 0), a), r"draw: is '0' in line 3, which item 'q0' has before"),
        (lambda p, a: (changed(p, "target", 1, "x"), a), r"target: is 'x' in line 3, but '.*' in another row"),
        (lambda p, a: (changed(p, "target_logprob_lm-weak", 1, -1), a), r"_lm-weak: is .* in another row"),
        (lambda p, a: (changed(p, "candidate_logprob_lm-weak", 3, "x"), a), r"is 'x' in line 5, should be a number"),
        (lambda p, a: (changed(p, "candidate_logprob_lm-weak", 3, 0.5), a), r"csv, .*is '0\.5' in line 5.*ln p"),
        (lambda p, a: (p.drop(columns="target_logprob_lm-weak"), a), r"b_lm-weak: is missing; did you mean .*; model"),
        (lambda p, a: (p.filter(regex="^(?!.*logprob)"), a), r"names no language model"),
        (lambda p, a: (changed(p, "candidate", 2, ""), a), r"candidate: is empty in line 4 \(1 such rows\)"),
        (lambda p, a: (p, changed(a, "report", 0, 1)), r"report: is '1' in line 2, should be a prob"),
        (lambda p, a: (p, changed(a, "report", 0, "high")), r"report: is 'high' in line 2, should be a number"),
        (lambda p, a: (p, changed(a, "draw", 0, 77)), r"draw: line 2 answers draw '77' of item '\w+', which the pairs"),
        (lambda p, a: (p, changed(a, "participant", 0, "")), r"participant: is empty in line 2"),
        (lambda p, a: (p, a.iloc[:0]), r"answers\.csv: holds no answer"),
    ],
)  # fmt: skip
def test_bad_tables_are_named(study: xr.Dataset, tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(tmp_path, *change(*tables(study)))


def test_the_hash_of_data_frames_follows_their_cells(study: xr.Dataset) -> None:
    asked, said = tables(study)
    who = changed(said, "participant", 0, "somebody")
    other = changed(said, "report", 0, 0.123)
    found = [comparison_study(each, asked, generator="lm-medium").attrs["data_sha256"] for each in (said, who, other)]
    assert len(set(found)) == 3
    again = comparison_study(said.set_axis(said.index + 5), asked.copy(), generator="lm-medium")
    assert again.attrs["data_sha256"] == found[0]


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
    with pytest.raises(InputError, match=r"report: is '101' in row 1, should be a percentage strictly between 0 and"):
        comparison_study(changed(slider, "report", 0, 101), asked, generator="g", percent=True, extremes=[1, 99])


def test_answers_without_a_report_can_be_left_out(study: xr.Dataset) -> None:
    asked, said = tables(study)
    gaps = changed(changed(said, "report", 1, np.nan), "participant", 3, "")
    found = comparison_study(gaps, asked, generator="lm-medium", missing="drop")
    assert found.sizes["response"] == len(said) - 2
    (note,) = [entry for entry in notes(found) if "left out" in entry["text"]]
    assert (note["count"], note["level"]) == (2, "warning")
    with pytest.raises(InputError, match="holds no answer without an empty cell"):
        comparison_study(said.assign(report=np.nan), asked, generator="lm-medium", missing="drop")


def test_answers_have_names_of_their_own(study: xr.Dataset, tmp_path: Path) -> None:
    asked, said = tables(study)
    theirs = said.rename(columns={"item": "Item", "draw": "Pair"})
    columns = {"answers": {"item": "Item", "draw": "Pair"}}
    found = load(tmp_path, asked, theirs, columns=columns)
    xr.testing.assert_identical(found.drop_attrs(), load(tmp_path, asked, said).drop_attrs())
    with pytest.raises(InputError, match=r"item: is missing; did you mean 'Item'\? .*columns\.answers\.item=NAME says"):
        load(tmp_path, asked, theirs)


def test_german_excel(study: xr.Dataset, tmp_path: Path) -> None:
    asked, said = tables(study)
    asked.to_csv(tmp_path / "pairs.csv", index=False)
    said.to_csv(tmp_path / "answers.csv", index=False, sep=";", decimal=",", encoding="utf-8-sig")
    found = comparison_table(pairs=tmp_path / "pairs.csv", answers=tmp_path / "answers.csv", generator="lm-medium")
    np.testing.assert_allclose(found["report"].to_numpy(), study["report"].to_numpy())
    assert any("decimal comma in column report" in entry["text"] for entry in notes(found))


def test_the_same_answer_twice_is_a_warning(study: xr.Dataset) -> None:
    asked, said = tables(study)
    found = comparison_study(pd.concat([said, said.iloc[:2]]), asked, generator="lm-medium")
    (note,) = [entry for entry in notes(found) if "answered before" in entry["text"]]
    assert (note["count"], note["level"]) == (2, "warning")


def logprobs(table: pd.DataFrame, change: Any) -> pd.DataFrame:
    mine = table.copy()
    for name in ("target_logprob_lm-weak", "candidate_logprob_lm-weak"):
        mine[name] = change(mine[name])
    return mine


def of_equal_strings(table: pd.DataFrame, to: str) -> pd.DataFrame:
    """The first two candidates of the first item are one string, with different log-probabilities."""
    mine = table.copy()
    mine.loc[[0, 1], "candidate"] = to
    mine.loc[[0, 1], "candidate_logprob_lm-weak"] = [-3.0, -4.0]
    return mine


@pytest.mark.parametrize(("value", "total"), [(0.0, "2"), (np.log(0.95), r"1\.9")])
def test_two_tokens_with_more_than_the_whole_probability(study: xr.Dataset, value: float, total: str) -> None:
    asked, said = tables(study)
    message = rf"candidates, log-probabilities of lm-weak: item q\d: .* have the probability {total} together"
    with pytest.raises(InputError, match=message):
        comparison_study(said, logprobs(asked, lambda x: x * 0 + value), generator="lm-medium")


@pytest.mark.parametrize("of_target", [False, True])
def test_one_string_with_several_log_probabilities_is_counted(study: xr.Dataset, of_target: bool) -> None:
    asked, said = tables(study)
    mine = of_equal_strings(asked, asked["target"][0] if of_target else "zzz")
    assert not any("several" in entry["text"] for entry in notes(comparison_study(said, asked, generator="lm-medium")))
    found = notes(comparison_study(said, mine, generator="lm-medium"))
    (note,) = [entry for entry in found if "string has several log-probabilities of lm-weak" in entry["text"]]
    assert note["count"] >= 2
    assert note["level"] == "warning"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"percent": True}, "report: is at most .*, but percent=True says that these are percentages"),
        (
            {"extremes": [1, 99]},
            "should be two rising numbers between 0 and 1; percent=true takes",
        ),
        ({"extremes": [0.9, 0.1]}, "should be two rising numbers"),
        ({"extremes": [0.1]}, "extremes.1.: has no value yet"),
        ({"missing": "dropp"}, "missing: is 'dropp', should be one of error, drop"),
    ],
)
def test_settings_that_do_not_fit_the_reports(study: xr.Dataset, settings: dict[str, Any], message: str) -> None:
    asked, said = tables(study)
    with pytest.raises(InputError, match=message):
        comparison_study(said, asked, generator="lm-medium", **settings)
