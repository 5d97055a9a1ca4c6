"""``+exp=belief`` at a tiny size, on the real data against the known truth, and what its gate does to the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import experiments
from estimators.errors import InputError
from experiments.comparison.belief import BELIEF_COLUMNS
from experiments.comparison.estimates import TABLE_COLUMNS
from experiments.harness.outputs import write_outputs
from experiments.harness.result import ExperimentResult
from inference.posterior.arviz_adapter import group_names
from tests.experiments.command import FEW_DIVERGENT, TINY, config, prepared, run, run_experiment

SHORT = ("sampler.draws=100", "sampler.tune=200", "sampler.chains=2", "sampler.cores=2")


ALL_GROUPS = ("posterior", "log_likelihood", "prior", "prior_predictive", "posterior_predictive", "observed_data")


def result_of(*overrides: str) -> ExperimentResult:
    return run_experiment("+exp=belief", *overrides)


@pytest.mark.mcmc
def test_tiny_study(tmp_path: Path, seed_offset: int) -> None:
    settings = (*TINY, *SHORT, f"seed={seed_offset}", "players=[lm-weak,lm-medium]", "rounding=none")
    job = prepared("+exp=belief", *settings)
    result = job.run()
    assert list(result.table.columns) == [*TABLE_COLUMNS, *BELIEF_COLUMNS]
    weak, itself = (result.table.iloc[row] for row in (0, 1))
    assert weak["gap_lower_nats"] < weak["gap_median_nats"] < weak["gap_upper_nats"]
    # 200 draws cannot pass the gate, and that is said wherever a reader looks
    assert not weak["converged"]
    assert result.gate_failed
    assert "lm-weak/none" in result.warnings[0]
    assert "did NOT converge" in result.text
    # the generator as a player without rounding is exact
    assert itself["gap_median_nats"] == itself["gap_lower_nats"] == itself["gap_upper_nats"] == 0
    assert itself["converged"]
    assert "nothing was fitted" in result.text
    assert "not for humans" in " ".join(result.text.split())
    assert set(ALL_GROUPS) <= set(group_names(result.posterior))
    write_outputs(tmp_path, config("+exp=belief", *settings), job.study, result)
    assert list(pd.read_csv(tmp_path / "table.csv").columns) == list(result.table.columns)
    with xr.open_dataset(tmp_path / "results.nc", engine="h5netcdf") as dataset:
        assert dataset["gap_draws_nats"].sizes == {"estimate": 2, "draw": 200}
        median = np.median(dataset["gap_draws_nats"].values, axis=1)
        np.testing.assert_allclose(median, result.table["gap_median_nats"])


FAILED_GATE = """
import dataclasses, functools
import experiments.comparison.perplexity as module
real = module.perplexity
@functools.wraps(real)
def doubtful(study, settings):
    return dataclasses.replace(real(study, settings), gate_failed=True, warnings=("no convergence",))
module.perplexity = doubtful
"""


@pytest.mark.subprocess
def test_a_failed_gate_is_the_exit_code_and_keeps_the_outputs(tmp_path: Path) -> None:
    done = run(tmp_path, *TINY, "+exp=perplexity", "hydra.run.dir=out", patch=FAILED_GATE)
    assert done.returncode == 3, done.stderr
    status = json.loads((tmp_path / "out" / "status.json").read_text(encoding="utf-8"))
    assert status["status"] == "ok"
    assert status["gate_failed"]
    assert status["warnings"][-1] == "no convergence"
    assert (tmp_path / "out" / "table.csv").is_file()
    assert "a check failed" in done.stderr


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("players=[human]", "without noise"),
        ("sampler.draws=many", "sampler.draws"),
        ("sampler.name=gibbs", "sampler.name: is 'gibbs', should be one of nutpie"),
        ("+experiment.gate.rhat=1", "rhat"),
        ("+experiment.priors.sigmas=1", "sigmas"),
        ("experiment.interval=2", "experiment.interval"),
        ("experiment.allow_unconverged=1", "allow_unconverged"),
    ],
)
def test_mistakes_are_named(override: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        result_of(*TINY, override)


def test_the_notebook_door_names_players_and_saves_nothing_unasked() -> None:
    study = prepared("+exp=perplexity", *TINY).study
    result = experiments.belief(study, players="lm-medium", rounding="none")
    assert result.table["gap_median_nats"].tolist() == [0]
    assert not result.posteriors
    with pytest.raises(InputError, match="players: names 'human', but the belief model is for players without noise"):
        experiments.belief(study, players="human")


def test_unconverged_can_be_allowed_and_the_exact_player_never_fails() -> None:
    result = result_of(*TINY, "players=[lm-medium]", "rounding=none", "experiment.allow_unconverged=true")
    assert not result.gate_failed
    assert not result.warnings


@pytest.fixture(scope="module")
def paper(lm_game_root: Path, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Players on the paper's 120 items, with the settings of the experiment."""
    settings = ["study=lm_game", f"study.root={lm_game_root}", f"study.cache_dir={tmp_path_factory.mktemp('cache')}"]
    return result_of(*settings, FEW_DIVERGENT).table.set_index(["player", "rounding"])


@pytest.mark.slow
def test_players_of_the_paper_converge_and_are_near_their_known_truth(paper: pd.DataFrame) -> None:
    assert paper["true_gap_nats"].round(3).unique().tolist() == [0.919, 0, -0.344]
    assert paper["converged"].all()
    error = paper["error_median_nats"].abs()
    assert error["gpt2-small", "interface"] < 0.01
    assert error["gpt2-medium", "none"] < 0.1
    # .106 in the run that the README shows
    assert error["gpt2-medium", "interface"] < 0.12
    # the intervals of GPT-2 medium end within a few thousandths of the truth, on either side by the seed
    assert (paper["gap_lower_nats"] - paper["true_gap_nats"]).loc[["gpt2-small", "gpt2-medium"]].max() < 0.01
    assert (paper["true_gap_nats"] <= paper["gap_upper_nats"]).loc[["gpt2-small", "gpt2-medium"]].all()
    # equation 5 misses by a wide margin
    assert abs(paper["error_nats"]["14M", "none"]) > 0.5
    assert abs(paper["error_nats"]["gpt2-medium", "interface"]) > 0.5


@pytest.mark.slow
@pytest.mark.xfail(
    strict=True,
    reason="known miss: the 14M model is better on this study's nearly certain questions than on others like them",
)
def test_the_14m_model_of_the_paper_is_inside_its_interval(paper: pd.DataFrame) -> None:
    row = paper.loc[("14M", "none")]
    assert row["gap_lower_nats"] <= row["true_gap_nats"] <= row["gap_upper_nats"]
