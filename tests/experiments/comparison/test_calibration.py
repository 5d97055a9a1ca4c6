"""``+exp=calibration`` at a tiny size, its settings, its gate, and (slow) the game's real participants."""

from __future__ import annotations

from pathlib import Path

import pytest

from shannon_game.experiments.comparison.calibration.table import TYPICAL, CalibrationRow
from shannon_game.experiments.harness.job import Job
from shannon_game.experiments.harness.result import ExperimentResult
from shannon_game.inference.posterior.arviz_adapter import group
from tests.experiments.command import COMPILED_FAST, FEW_DIVERGENT, TINY, prepared, run_experiment

SHORT = (*COMPILED_FAST, "sampler.draws=20", "sampler.tune=20")

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
    assert list(table.columns) == [one.name for one in CalibrationRow.columns]
    weights = {name: group(result.posteriors[name], "constant_data")["weight"] for name in ("llo", "game")}
    assert (weights["llo"] == 1).all()
    assert ((weights["game"] > 0) & (weights["game"] < 1)).any()
    people = sorted(set(study["participant"].values))
    assert table["participant"].tolist() == [TYPICAL, *people]
    own = table.iloc[1:]
    assert own["n_responses"].sum() == table["n_responses"].iloc[0]
    assert own["n_favoured"].sum() == table["n_favoured"].iloc[0]
    for name in ("calibration_slope", "calibration_bias_nats", "game_slope", "game_bias_nats"):
        assert (own[f"{name}_lower"] < own[f"{name}_median"]).all()
        assert (own[f"{name}_median"] < own[f"{name}_upper"]).all()


@pytest.mark.slow
@pytest.mark.mcmc
def test_the_game_s_participants(lm_game_root: Path) -> None:
    """1,056 answers on two different tokens. The slopes agree with a plain logistic regression of an early look."""
    settings = ["study=lm_game", f"study.root={lm_game_root}"]
    result = result_of(*settings, FEW_DIVERGENT)
    assert not result.gate_failed
    table = result.table.set_index("participant")
    typical = table.loc[TYPICAL]
    assert (typical["n_responses"], typical["n_favoured"]) == (1056, 982)
    # plain: maximum likelihood .27 for all answers together; weighted .55
    assert typical["calibration_slope_lower"] < 0.27 < typical["calibration_slope_upper"] < 0.6
    assert typical["game_slope_lower"] < 0.55 < typical["game_slope_upper"]
    assert table["accuracy"].max() == pytest.approx(51 / 55)
