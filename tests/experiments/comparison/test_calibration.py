"""``+exp=calibration`` at a tiny size, its settings, its gate, and (slow) the game's real participants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.comparison.calibration.figures import (
    participants_figure,
    reliability_figure,
    reports_figure,
)
from shannon_game.experiments.comparison.calibration.table import CALIBRATION_COLUMNS, TYPICAL, summary, unusual
from shannon_game.experiments.harness.job import Job
from shannon_game.experiments.harness.outputs import write_outputs
from shannon_game.experiments.harness.result import ExperimentResult
from tests.experiments.command import COMPILED_FAST, FEW_DIVERGENT, TINY, config, prepared, run_experiment

SHORT = (*COMPILED_FAST, "sampler.draws=20", "sampler.tune=20", "experiment.n_predictive=40")

Run = tuple[Job, ExperimentResult]


def result_of(*overrides: str) -> ExperimentResult:
    return run_experiment("+exp=calibration", *overrides)


@pytest.fixture(scope="module")
def tiny(seed_offset: int) -> Run:
    job = prepared("+exp=calibration", *TINY, *SHORT, f"seed={seed_offset}")
    return job, job.run()


@pytest.mark.mcmc
def test_table_has_the_typical_participant_and_everyone(tiny: Run) -> None:
    study, result = tiny[0].study, tiny[1]
    table = result.table
    assert tuple(table.columns) == CALIBRATION_COLUMNS
    people = sorted(set(study["participant"].values))
    assert table["participant"].tolist() == [TYPICAL, *people]
    own = table.iloc[1:]
    assert own["n_responses"].sum() == table["n_responses"].iloc[0]
    assert own["n_favoured"].sum() == table["n_favoured"].iloc[0]
    for name in ("bias_nats", "slope", "noise_nats", "lapse", "calibration_slope", "game_slope"):
        assert (own[f"{name}_lower"] < own[f"{name}_median"]).all()
        assert (own[f"{name}_median"] < own[f"{name}_upper"]).all()
    # no bias of the typical participant: it is 0 by the centring
    assert np.isnan(table["bias_nats_median"].iloc[0])
    assert own["true_bias_nats"].mean() == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(np.log(own["true_relative_slope"]).mean(), 0, atol=1e-12)


@pytest.mark.mcmc
def test_accuracy_and_confidence_are_those_of_the_answers(tiny: Run) -> None:
    study, result = tiny[0].study, tiny[1]
    row = result.table.iloc[1]
    mine = (study["participant"] == row["participant"]).to_numpy() & ~study["automatic"].to_numpy()
    report = study["report"].to_numpy()[mine]
    sided = report[report != 0.5]
    assert row["n_favoured"] == sided.size
    assert row["accuracy"] == pytest.approx((sided > 0.5).mean())
    assert row["confidence"] == pytest.approx(np.maximum(sided, 1 - sided).mean())


@pytest.mark.mcmc
def test_an_unconverged_posterior_is_said_wherever_a_reader_looks(tiny: Run) -> None:
    result = tiny[1]
    assert result.gate_failed
    assert not result.table["converged"].any()
    assert any(text.startswith("the posterior did not converge, do not use it: reports") for text in result.warnings)
    assert "did NOT converge" in result.text


@pytest.mark.mcmc
def test_outputs_can_be_drawn_again_from_the_files(tiny: Run, tmp_path: Path) -> None:
    job, result = tiny
    write_outputs(tmp_path, config("+exp=calibration", *TINY, *SHORT), job.study, result)
    assert (tmp_path / "posterior_reports.nc").is_file()
    table = pd.read_csv(tmp_path / "table.csv")
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        loaded = dataset.load()
        assert loaded["predicted_share"].sizes == {"quantile": 3, "box": 11}
        assert float(loaded["observed_share"].sum()) == pytest.approx(1)
    assert summary(table, loaded) == result.text
    for figure in (reliability_figure(loaded), participants_figure(table), reports_figure(loaded)):
        figure.savefig(tmp_path / "again.png", dpi=30)
    assert {path.stem for path in (tmp_path / "figures").glob("*.png")} == {"reliability", "participants", "reports"}


def test_unusual_participants_have_a_large_bias_or_live_at_the_ends() -> None:
    table = pd.DataFrame(
        {
            "participant": [TYPICAL, "biased", "small", "unsure", "ends"],
            "bias_nats_median": [np.nan, -2.0, 0.2, 1.0, 0.1],
            "bias_nats_lower": [np.nan, -3.0, 0.1, -0.2, -0.1],
            "bias_nats_upper": [np.nan, -1.0, 0.3, 2.0, 0.3],
            "share_ends": [0.2, 0.1, 0.1, 0.1, 0.6],
        }
    )
    assert unusual(table)["participant"].tolist() == ["biased", "ends"]


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("players=[lm-weak]", "players: does nothing: calibration reads of the run's settings seed"),
        ("+experiment.priors.sigma=1", "sigma"),
        ("+experiment.priors.noise_median=-1", "noise_median"),
        ("rounding=coarse", "no value of the rounding"),
    ],
)
def test_mistakes_are_named(override: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        result_of(*TINY, override)


@pytest.mark.slow
@pytest.mark.mcmc
def test_the_game_s_participants(lm_game_root: Path, public_cache: Path) -> None:
    """1,056 answers on two different tokens. The slopes agree with a plain logistic regression of an early look."""
    settings = ["study=lm_game", f"study.root={lm_game_root}", f"study.cache_dir={public_cache}"]
    result = result_of(*settings, FEW_DIVERGENT)
    assert not result.gate_failed
    table = result.table.set_index("participant")
    typical = table.loc[TYPICAL]
    assert (typical["n_responses"], typical["n_favoured"]) == (1056, 982)
    # plain: maximum likelihood .27 for all answers together; weighted .55
    assert typical["calibration_slope_lower"] < 0.27 < typical["calibration_slope_upper"] < 0.6
    assert typical["game_slope_lower"] < 0.55 < typical["game_slope_upper"]
    odd = unusual(result.table)["participant"].iloc[0]
    assert table.loc[odd, "accuracy"] == pytest.approx(51 / 55)
    assert table.loc[odd, "bias_nats_lower"] > 3


@pytest.mark.slow
@pytest.mark.mcmc
def test_simulated_participants_against_their_truth() -> None:
    """29 people, 120 items. The evidence is not normal there, so that coverage is asked for loosely: half of 29."""
    table = result_of("study=simulated", "sampler.cores=2").table.iloc[1:]
    for name in ("bias_nats", "lapse"):
        truth = table[f"true_{name}"]
        inside = (table[f"{name}_lower"] <= truth) & (truth <= table[f"{name}_upper"])
        assert inside.sum() >= 15, name
    relation = np.corrcoef(np.log(table["relative_slope_median"]), np.log(table["true_relative_slope"]))[0, 1]
    assert relation > 0.7
