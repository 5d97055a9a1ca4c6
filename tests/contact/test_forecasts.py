"""Forecasts that somebody brings without any language model: the numbers of a plain loop, or one line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import shannon_game as sg
from shannon_game.estimators import comparison
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import notes
from shannon_game.experiments.comparison.practice import practice_answers
from shannon_game.experiments.studies.comparison.table_write import write_comparison_tables
from shannon_game.models.comparison.calibration_data import favoured_outcomes, informative_responses
from tests.experiments.command import COMPILED_FAST, environment, run_experiment

Forecast = tuple[str, str, float, int]
RNG = np.random.default_rng(3)
ROWS: list[Forecast] = [
    (f"p{person}", f"event {item}", round(float(RNG.uniform(0.01, 0.99)), 2), int(RNG.random() < 0.6))
    for person in range(4)
    for item in range(9)
] + [("p0", "event 9", 0.5, 1), ("p1", "event 9", 0.5, 0)]
TABLE = pd.DataFrame(ROWS, columns=["participant", "item", "report", "outcome"])


def plain(rows: Iterable[Forecast]) -> dict[str, tuple[int, float, float]]:
    """Number, mean confidence and accuracy of each participant's forecasts, by a loop over the rows."""
    mine: dict[str, list[tuple[float, bool]]] = {}
    for who, _, stated, came in rows:
        if stated != 0.5:
            mine.setdefault(who, []).append((max(stated, 1 - stated), (stated > 0.5) == bool(came)))
    return {who: (len(its), *map(float, np.mean(its, axis=0))) for who, its in mine.items()}


def found(study: xr.Dataset) -> dict[str, tuple[int, float, float]]:
    data = favoured_outcomes(study)
    table = pd.DataFrame({"who": data.participant[data.person], "sure": data.report, "right": data.outcome})
    return {str(who): (len(its), its["sure"].mean(), its["right"].mean()) for who, its in table.groupby("who")}


def agree(study: xr.Dataset, rows: Iterable[Forecast]) -> None:
    right = plain(rows)
    assert set(found(study)) == set(right)
    for who, numbers in found(study).items():
        assert numbers == pytest.approx(right[who], rel=1e-12)


def test_forecasts_in_pandas_keep_what_was_stated_and_what_came_true() -> None:
    study = sg.comparison_study(TABLE.rename(columns={"item": "prompt"}), columns={"item": "prompt"})
    agree(study, ROWS)
    outcome = study["outcome"].to_numpy()
    np.testing.assert_allclose(np.where(outcome, study["report"], 1 - study["report"]), TABLE["report"], rtol=1e-14)
    assert outcome.tolist() == [bool(row[3]) for row in ROWS]
    score = [np.log(stated if came else 1 - stated) for _, _, stated, came in ROWS]
    np.testing.assert_allclose(practice_answers(study)["log_score"], score)


def test_the_correct_one_of_two_tokens() -> None:
    tokens = TABLE.assign(option=" sat", other=[" ran"] * 37 + [" sat"])
    named = tokens.assign(outcome=np.where(tokens["outcome"] == 1, tokens["option"], tokens["other"]))
    for given in (tokens, named):
        study = sg.comparison_study(given)
        agree(study, ROWS[:-1])
        assert study["automatic"].to_numpy().tolist() == [False] * 37 + [True]
        assert informative_responses(study).size == 37
    with pytest.raises(
        InputError, match="outcome: is 'hopped' in row 1, should be the token that came true, ' sat' or"
    ):
        sg.comparison_study(named.assign(outcome=["hopped", *named["outcome"][1:]]))
    digits = TABLE.assign(option="0", other="1")
    with pytest.raises(InputError, match=r"outcome: .* names a token and says yes or no: write true or false"):
        sg.comparison_study(digits)
    agree(sg.comparison_study(digits.replace({"outcome": {1: "true", 0: "false"}})), ROWS)


# as write.csv of R writes it: names of rows, strings in quotes, TRUE and FALSE, NA
FROM_R = '"","participant","item","p","correct"\n' + "".join(
    f'"{n}","{who}","{item}",{"NA" if n == 5 else stated},{"NA" if n == 7 else ("FALSE", "TRUE")[came]}\n'
    for n, (who, item, stated, came) in enumerate(ROWS, start=1)
)
COLUMNS = {"report": "p", "outcome": "correct"}


def test_a_table_of_r_with_missing_reports_and_outcomes(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(FROM_R)
    given = {"answers": tmp_path / "r.csv", "columns": COLUMNS, "empty": ["NA"]}
    with pytest.raises(InputError, match="p: is empty in line 6"):
        sg.comparison_table(**given)
    study = sg.comparison_table(**given, missing="drop")
    agree(study, [row for number, row in enumerate(ROWS, start=1) if number not in (5, 7)])
    assert [note["count"] for note in notes(study) if "left out" in note["text"]] == [2]


def test_a_part_of_a_study() -> None:
    study = sg.comparison_study(TABLE)
    mine = study.isel(response=np.flatnonzero(study["participant"].to_numpy() == "p2")[::-1])
    agree(mine, [row for row in ROWS if row[0] == "p2"])
    agree(study.isel(item=slice(None, None, -1)), ROWS)
    with pytest.raises(InputError, match=r"response_item: .*no such item"):
        comparison.validate_forecast_study(study.isel(item=[0, 1]))
    kept = comparison.subsample_responses(study, 2, np.random.default_rng(0))
    assert np.bincount(kept["response_item"]).tolist() == [2] * 10


READ = """
import json, sys
import shannon_game as sg, xarray as xr
from shannon_game.models.comparison.calibration_data import favoured_outcomes
study = xr.open_dataset(sys.argv[1])
data = favoured_outcomes(study)
print(json.dumps([data.report.tolist(), data.outcome.tolist(), sg.practice(study).table["slope_nats"].tolist()]))
"""


@pytest.mark.subprocess
def test_a_saved_study_in_another_process(tmp_path: Path) -> None:
    study = sg.comparison_study(TABLE)
    study.to_netcdf(tmp_path / "study.nc", engine="h5netcdf")
    line = [sys.executable, "-c", READ, str(tmp_path / "study.nc")]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=True)
    data, table = favoured_outcomes(study), sg.practice(study).table
    assert json.loads(done.stdout) == [data.report.tolist(), data.outcome.tolist(), table["slope_nats"].tolist()]


@pytest.mark.mcmc
def test_calibration_of_a_bare_table_is_that_beside_a_generator(tmp_path: Path) -> None:
    whole = sg.simulated(n_items=10, n_participants=4, vocab_size=100, n_candidates=5, n_reference_items=10)
    write_comparison_tables(whole, tmp_path / "pairs.csv", tmp_path / "answers.csv")
    asked = pd.read_csv(tmp_path / "answers.csv", dtype={"participant": str})[~whole["automatic"].to_numpy()]
    asked.to_csv(tmp_path / "bare.csv", index=False)
    common = ("+exp=calibration", "study=comparison_table", *COMPILED_FAST, "sampler.draws=20", "sampler.tune=20")
    bare = run_experiment(*common, f"study.answers={tmp_path / 'bare.csv'}", "study.columns.outcome=null")
    tables = [f"study.{name}={tmp_path / name}.csv" for name in ("pairs", "answers")]
    beside = run_experiment(*common, *tables, "study.generator=lm-medium")
    stated = [(row.participant, row.item, row.report, 1) for row in asked.itertuples()]
    own = bare.table.set_index("participant")
    for who, numbers in plain(stated).items():
        assert own.loc[who, ["n_favoured", "confidence", "accuracy"]].tolist() == pytest.approx(numbers)
    # the fits of outcomes alone have the same data and seeds
    shared = [name for name in bare.table if not name.startswith(("r_hat", "ess", "bfmi", "n_diverg", "converged"))]
    assert "game_slope_median" in beside.table
    assert not [name for name in shared if name.startswith("game")]
    pd.testing.assert_frame_equal(bare.table[shared], beside.table[shared])
    for name in ("llo_curve", "beta_curve", "point_report", "point_frequency", "point_count"):
        np.testing.assert_array_equal(bare.dataset[name], beside.dataset[name])
    assert set(bare.posteriors) == {"llo", "beta"}


@pytest.mark.parametrize(
    "question", ["perplexity", "human_loss", "shared_belief", "text_players", "recovery", "design"]
)
def test_what_needs_a_generator_says_so(question: str) -> None:
    with pytest.raises(
        InputError, match=rf"{question} takes comparison; forecasts have no generator: comparison_table"
    ):
        getattr(sg, question)(sg.comparison_study(TABLE))


def test_estimators_and_the_command_say_so_too(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is 'forecast', should be 'comparison'; .*generator=NAME"):
        comparison.estimate_perplexity(sg.comparison_study(TABLE), "human")
    TABLE.to_csv(tmp_path / "f.csv", index=False)
    given = "study=comparison_table", f"study.answers={tmp_path / 'f.csv'}"
    with pytest.raises(InputError, match=r"forecasts have no generator: study=comparison_table study\.pairs=FILE"):
        run_experiment("+exp=perplexity", *given)
    with pytest.raises(InputError, match=r"study\.pairs: is missing: it holds candidates"):
        run_experiment("+exp=calibration", *given, "study.generator=gpt2")


def test_comparisons_of_two_candidates_have_no_outcome() -> None:
    study = comparison.examples.comparison_study()
    reference = np.full(study.sizes["response"], -1)
    reference[:10] = (study["response_candidate"].to_numpy()[:10] + 1) % study.sizes["candidate"]
    between = comparison.validate_comparison_study(study.assign(response_reference=("response", reference)))
    assert favoured_outcomes(between).row.tolist() == [row for row in favoured_outcomes(study).row if row >= 10]
