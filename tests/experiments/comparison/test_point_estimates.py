"""Estimates of perplexity without a sampler: tiny studies, the published numbers, what users get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game import experiments
from shannon_game.estimators.comparison import ItemTerms, LogMeans
from shannon_game.estimators.comparison.examples import comparison_study
from shannon_game.estimators.comparison.log_means import jackknife_log_mean
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.comparison.estimates import EstimateRow
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import TINY, config, prepared, run_experiment
from tests.oracles.comparison_game import gap_and_errors, nearest, round_half_even_tenths, terms_by_item
from tests.oracles.lm_game import raw_answers

VARIED = ("nothing", "bootstrap", "rounding", "sample_size")
WRITTEN = (*VARIED, "extrapolation", "token_classes")


Run = Callable[..., ExperimentResult]


@pytest.fixture(scope="module")
def real(lm_game_root: Path) -> Run:
    """Run the command on the real data, with these overrides."""
    data = ("study=lm_game", f"study.root={lm_game_root}")
    return lambda *overrides: run_experiment("+exp=perplexity", *data, *overrides)


@pytest.mark.parametrize("vary", WRITTEN)
def test_command_and_notebook_give_the_same_numbers(vary: str, tmp_path: Path) -> None:
    command = ("+exp=perplexity", f"vary={vary}", *TINY)
    job = prepared(*command)
    by_command = job.run()
    assert by_command.figures
    assert by_command.text
    assert vary not in VARIED or np.isfinite(by_command.table["perplexity"]).all()
    # on the command line token classes have the run's rounding
    given = {"rounding": "interface"} if vary == "token_classes" else {}
    by_name = experiments.perplexity(job.study, vary=vary, **given)
    pd.testing.assert_frame_equal(by_command.table, by_name.table)
    if vary in VARIED:
        other = run_experiment(*command, "seed=1").table
        assert not np.allclose(by_command.table["gap_nats"], other["gap_nats"])
    write_outputs(tmp_path, config(*command), job.study, by_command)
    assert list(pd.read_csv(tmp_path / "table.csv").columns) == list(by_command.table.columns)
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        assert json.loads(dataset.attrs["config"])["experiment"]["name"].startswith("perplexity")


def test_every_estimator() -> None:
    plain = run_experiment("+exp=perplexity", *TINY).table
    for estimator in ("naive", "importance", "jackknife", "delta", "psis", "rao_blackwell"):
        table = run_experiment("+exp=perplexity", f"estimator={estimator}", *TINY).table
        assert set(table["estimator"]) == {estimator}
        assert list(table.columns)[: len(EstimateRow.columns)] == [one.name for one in EstimateRow.columns]
        if estimator not in ("naive", "importance"):
            assert not np.allclose(table["gap_nats"], plain["gap_nats"])


def test_default_run_underestimates_the_dissimilar_player_and_says_so() -> None:
    """The embedded study is as treacherous as the real one: by half a nat for lm-weak, over three seeds."""
    errors = []
    for seed in range(3):
        result = run_experiment("+exp=perplexity", f"seed={seed}", "n=10")
        rows = result.table.set_index(["player", "rounding"])
        errors.append(rows.loc[("lm-weak", "none"), "error_nats"])
        assert rows.loc[("lm-weak", "none"), "verdict"] == "too few"
        assert "lm-weak/none" in result.warnings[0]
    # -.73 on 1,000 real items; the mean of three studies of 120 items has a standard error of about .1
    assert np.mean(errors) == pytest.approx(-0.73, abs=0.35)


PUBLISHED = [
    # player, rounding, gap, se_items, se_samples, perplexity
    ("human", "none", 1.802837, 0.274547, 0.056286, 147.917),
    ("human", "coarser", 1.961203, 0.289321, 0.056336, 173.299),
    ("14M", "none", 0.018013, 0.374165, 0.037228, 24.824),
    ("14M", "interface", 0.822463, 0.263280, 0.044921, 55.494),
    ("gpt2-small", "none", 0.0, 0.0, 0.0, 24.381),
    ("gpt2-small", "interface", 0.627039, 0.142483, 0.035323, 45.643),
    ("gpt2-medium", "none", -0.369086, 0.085760, 0.022162, 16.856),
    ("gpt2-medium", "interface", 0.374800, 0.164777, 0.039572, 35.467),
]


def test_published_perplexities(real: Run) -> None:
    table = real("vary=rounding").table.set_index(["player", "rounding"])
    for player, rounding, gap, se_items, se_samples, perplexity in PUBLISHED:
        row = table.loc[(player, rounding)]
        found = row[["gap_nats", "se_items_nats", "se_samples_nats"]].to_numpy(dtype=float)
        np.testing.assert_allclose(found, [gap, se_items, se_samples], atol=6e-7, err_msg=f"{player} {rounding}")
        assert row["perplexity"] == pytest.approx(perplexity, abs=6e-4)
        assert (row["n_items"], row["n_responses"]) == (120, 1640)
    assert table["reference_loss_nats"].unique() == pytest.approx([3.193813847884036], abs=1e-12)
    truth = table.xs("none", level="rounding")["true_loss_nats"]
    assert truth["14M"] == pytest.approx(4.606471, abs=6e-7)
    assert truth["gpt2-medium"] == pytest.approx(2.919429, abs=6e-7)
    assert np.isnan(truth["human"])
    gaps = table.xs("none", level="rounding")["true_gap_nats"]
    assert gaps["14M"] == pytest.approx(0.9188, abs=6e-5)
    assert gaps["gpt2-medium"] == pytest.approx(2.752187 - 3.096527, abs=2e-6)


def test_published_word_tokens_and_the_other_filters(real: Run) -> None:
    words = real("study.items=word_tokens", "players=[human]", "rounding=none")
    row = words.table.iloc[0]
    assert (row["n_items"], row["n_responses"]) == (84, 1156)
    np.testing.assert_allclose(
        row[["gap_nats", "se_items_nats", "se_samples_nats"]].to_numpy(dtype=float),
        [1.953377, 0.278444, 0.067860],
        atol=6e-7,
    )
    assert row["perplexity"] == pytest.approx(171.948, abs=6e-4)
    same = real("study.automatic=drop_different_token", "players=human", "rounding=none")
    row = same.table.iloc[0]
    assert (row["n_items"], row["n_responses"]) == (117, 1640 - 49)
    assert row["gap_nats"] == pytest.approx(1.927905, abs=6e-7)


@pytest.mark.parametrize("rounding", ["none", "interface", "coarse", "coarser"])
def test_real_data_against_loops_over_the_raw_files(lm_game_root: Path, real: Run, rounding: str) -> None:
    """Every player under every rounding, from the JSON files alone."""
    rounder = {
        "none": lambda p: p,
        "interface": round_half_even_tenths,
        "coarse": nearest((0.1, 0.2, 0.5, 0.8, 0.9)),
        "coarser": nearest((0.2, 0.5, 0.8)),
    }[rounding]
    table = real(f"rounding={rounding}").table
    table = table[table["rounding"] == rounding].set_index("player")
    for player, answers in raw_answers(lm_game_root).items():
        terms = terms_by_item([(item, rounder(p), target, candidate) for item, p, target, candidate in answers])
        found = table.loc[player, ["gap_nats", "se_items_nats", "se_samples_nats"]].to_numpy(dtype=float)
        np.testing.assert_allclose(found, gap_and_errors(terms), atol=1e-9, err_msg=player)


def test_other_reference_uncertainty_and_control(real: Run) -> None:
    asked = real("estimator.reference=asked", "rounding=none").table
    assert asked["reference_loss_nats"].unique() == pytest.approx([3.096526837139572], abs=1e-12)
    samples = real("estimator.uncertainty=samples", "rounding=none").table
    row = samples.iloc[0]
    assert row["perplexity_upper"] == pytest.approx(row["perplexity"] * np.exp(1.6448536 * 0.056286), rel=1e-5)
    control = real("generator=gpt2-medium", "generator.control_only=true", "rounding=none").table
    # the loss of the humans on the asked items does not depend on the control, only on which items L_G is taken over
    loss = control.iloc[0]["gap_nats"] + 2.752187
    assert loss == pytest.approx(1.802837 + 3.096527, abs=2e-6)


def test_half_samples_on_real_data(real: Run) -> None:
    """The mean over half-samples lies far below the estimate from everybody: eq. 5's bias grows as n halves."""
    table = real("vary=bootstrap", "players=[human]").table.set_index("bootstrap")
    assert table.loc["half_sample", "n_replicates"] == 100
    # over seeds the mean of 100 half-samples has an sd of about 1.5
    assert table.loc["half_sample", "perplexity"] == pytest.approx(87.5, abs=6)
    assert table.loc["half_sample", "perplexity_full"] == pytest.approx(147.917, abs=6e-4)
    assert table.loc["cluster", "se_bootstrap_nats"] > table.loc["cluster_participants", "se_bootstrap_nats"]


def test_bias_curve_on_real_data(real: Run) -> None:
    """Figure 3: the error shrinks with n, and even all 400 candidates miss a quarter of a nat of the 14M model."""
    table = real("vary=sample_size").table.set_index(["player", "n"])["error_nats"]
    for player in ("14M", "gpt2-medium"):
        assert (np.diff(table[player]) > 0).all()
    # 20 repeats: standard errors .006 and .003 at n = 10
    assert table["14M"][10] == pytest.approx(-0.74, abs=0.03)
    assert table["gpt2-medium"][10] == pytest.approx(-0.0725, abs=0.012)
    assert table["14M"][400] == pytest.approx(-0.274, abs=0.012)


def test_derived_columns_follow_from_the_replicates() -> None:
    result = run_experiment("+exp=perplexity", "vary=bootstrap", *TINY, "experiment.interval=.8")
    for row, record in enumerate(result.table.to_dict("records")):
        gaps = result.dataset["gap_nats"].to_numpy()[row]
        gaps = gaps[np.isfinite(gaps)]
        perplexity = np.exp(gaps + record["reference_loss_nats"])
        assert record["gap_nats"] == pytest.approx(gaps.mean())
        assert record["error_nats"] == pytest.approx(gaps.mean() - record["true_gap_nats"])
        assert record["se_bootstrap_nats"] == pytest.approx(gaps.std(ddof=1))
        assert record["perplexity"] == pytest.approx(perplexity.mean())
        assert record["perplexity_lower"] == pytest.approx(np.quantile(perplexity, 0.1))
        assert record["perplexity_upper"] == pytest.approx(np.quantile(perplexity, 0.9))
    assert result.warnings


def a_pair(terms: ItemTerms) -> LogMeans:
    return terms, 1  # type: ignore[return-value] - a mistake


def test_a_log_mean_of_your_own_has_its_name_everywhere() -> None:
    for own in (jackknife_log_mean, {"log_mean": "shannon_game.estimators.comparison.log_means.jackknife_log_mean"}):
        result = experiments.perplexity(comparison_study(), estimator=own)
        assert set(result.table["estimator"]) == {"jackknife_log_mean"}
        assert "jackknife_log_mean" in result.figures["perplexity"].get_suptitle()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("shannon_game.estimators.comparison.log_means.jacknife_log_mean", "did you mean 'jackknife_log_mean'"),
        (a_pair, "estimator 'a_pair': returned a tuple, should return LogMeans"),
    ],
)
def test_what_is_no_log_mean(own: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        experiments.perplexity(comparison_study(), estimator={"log_mean": own} if isinstance(own, str) else own)


def test_rounding_experiment_takes_the_chosen_scheme_too() -> None:
    table = run_experiment("+exp=perplexity", "vary=rounding", "rounding=fine_ends", *TINY).table
    assert list(dict.fromkeys(table["rounding"])) == ["none", "interface", "coarse", "coarser", "fine_ends"]


def test_derived_columns_follow_from_the_repeats() -> None:
    result = run_experiment("+exp=perplexity", "vary=sample_size", *TINY, "experiment.interval=.8")
    for record in result.table.to_dict("records"):
        errors = result.dataset["error_nats"].sel(player=record["player"], n=record["n"]).to_numpy()
        truth, base = record["true_gap_nats"], record["reference_loss_nats"]
        assert record["error_nats"] == pytest.approx(errors.mean())
        assert record["gap_nats"] == pytest.approx(truth + errors.mean())
        assert record["error_lower_nats"] == pytest.approx(np.quantile(errors, 0.1))
        assert record["perplexity_lower"] == pytest.approx(np.exp(truth + base + np.quantile(errors, 0.1)))
        assert record["perplexity_upper"] == pytest.approx(np.exp(truth + base + np.quantile(errors, 0.9)))
